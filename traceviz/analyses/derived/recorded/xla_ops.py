"""Roles of XLA operations on a TPU, by category and name: most compute, some wait or move data."""

from __future__ import annotations

from typing import Literal

import polars as pl

XlaRole = Literal["infeed", "outfeed", "communication", "transfer", "compute"]

_PATTERNS: tuple[tuple[XlaRole, str], ...] = (
    ("infeed", r"^%?infeed"),
    ("outfeed", r"^%?outfeed"),
    ("communication", r"^%?(async-)?(all-(reduce|gather|to-all)|ragged-all-to-all|reduce-scatter|collective-)"),
    ("transfer", r"^%?(async-)?(copy|send|recv|host-send|host-recv)-?(start|done)|^%?(send|recv)(\.\d+)?$"),
)


def xla_roles(operations: pl.DataFrame) -> pl.DataFrame:
    """Return the role of each distinct operation.

    Args:
        operations: ``name`` and ``category`` as text; if the category does not determine the role, the name does.

    Returns:
        ``name, category, role``, one row for each distinct pair.
    """
    return operations[["name", "category"]].unique().with_columns(role_expr().alias("role"))


def role_expr() -> pl.Expr:
    """Return the role (see :data:`XlaRole`) from text columns ``name`` and ``category``."""
    role: pl.Expr = pl.lit("compute")
    for name, pattern in reversed(_PATTERNS):
        matches = pl.col("category").fill_null("").str.contains(pattern) | pl.col("name").str.contains(pattern)
        role = pl.when(matches).then(pl.lit(name)).otherwise(role)
    return role
