"""Purposes of functions by name: programs without hooks save and validate in their own functions."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.stacks.kinds import with_purpose
from traceviz.analyses.derived.stacks.trees import Mask, StackTree

SAVING = r"(?i)(?:^|[_.])(?:save|saving|checkpoint|checkpointing|ckpt|snapshot)(?:_|$)|(?:^|[_.])(?-i:save[A-Z])"
"""Functions of the program that write a checkpoint or a model."""
NOT_SAVING = r"(?i)load|restor|resum|read|forward|init|should|need|path|name|folder|dir(?:_|$)"
"""Exceptions: functions that read it or only decide its path. Activation checkpointing is a forward pass."""
VALIDATION = (
    r"(?i)(?:^|[_.])(?:eval|evaluate|evaluation|val|valid|validate|validation)(?:_(?:loop|epoch|one_epoch|step|run))?$"
    r"|(?:^|[_.])(?:eval|evaluate|validate)_|(?:^|[_.])run_(?:eval|val|test)|^test(?:_(?:loop|epoch|step|model))?$"
)
"""Functions of the program that evaluate the model."""

NAMELESS = r"<(?:listcomp|dictcomp|setcomp|genexpr|lambda)>$"
"""Functions without a name."""


def saves(tree: StackTree) -> Mask:
    """Return which frames write a checkpoint or a model."""
    texts = ["function", "file", "origin"]
    distinct = with_purpose(tree.frames.select(texts).unique())
    purposes = tree.frames.select(texts).join(distinct, on=texts, how="left", maintain_order="left")["purpose"]
    by_name = is_program() & _is("function", SAVING) & ~_is("function", NOT_SAVING)
    return _mask(tree, by_name | (purposes == "saving"))


def validates(tree: StackTree) -> Mask:
    """Return which frames evaluate the model."""
    return _mask(tree, is_program() & _is("function", VALIDATION))


def is_own(tree: StackTree) -> Mask:
    """Return which frames are functions of the program; nameless functions count as part of their enclosing one."""
    return _mask(tree, is_program() & ~_is("function", NAMELESS))


def is_program() -> pl.Expr:
    """Return whether a frame is the program's own."""
    return pl.col("origin") == "program"


def _is(text: str, pattern: str) -> pl.Expr:
    return pl.col(text).str.contains(pattern)


def _mask(tree: StackTree, expression: pl.Expr) -> Mask:
    return tree.frames.select(expression.fill_null(value=False).alias("is"))["is"].to_numpy()
