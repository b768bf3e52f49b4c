"""Where in the program an event happened: the range, module, operator and line of Python around it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.patterns import matches, replaced

MODULE = r"^nn\.Module: "
"""Python frames that are calls of a module of the model."""

_LIBRARY = (
    r"site-packages/|dist-packages/|/lib/python\d|^(torch|torchvision|transformers|jax|tensorflow|keras|numpy)/"
    r"|^(threading|contextlib|functools|importlib|multiprocessing|selectors|runpy|concurrent|asyncio|queue|socket)[/.]"
    r"|^<|^nn\.Module: |^\$<unknown>"
    r"|^\$(profiler|api|pjit|pxla|array|core|interpreter|traceback_util|builtins|threading)\b"
)
"""Python frames of libraries, which are not where a program can be changed."""
_TORCH_FRAME = r"^([^()]*\.py)\((\d+)\): (.*)$"
_JAX_FRAME = r"^\$([^ ]+:\d+) (.*)$"

PLACES = ("operator", "module", "range", "location")
"""Columns of :func:`places`."""
PARTS = ("operator", "module", "range", "line", "library")
"""What an event may say of a place: its operator, module or range, or its line in the program or in a library."""

Mask = npt.NDArray[np.bool_]


def part_of_program(source: pl.Expr, category: pl.Expr, name: pl.Expr) -> pl.Expr:
    """What an event says of the place in the program: one of :data:`PARTS`, null for nothing."""
    python = category == "python"
    rules = (
        (python & matches(name, MODULE), "module"),
        (python & matches(name, _LIBRARY), "library"),
        (python, "line"),
        ((source == "nvtx") | (category == "annotation"), "range"),
        (category == "op", "operator"),
    )
    return pl.coalesce([pl.when(holds.fill_null(value=False)).then(pl.lit(part)) for holds, part in rules])


def places(tree: CallTree) -> pl.DataFrame:
    """For each call, what is around it or is it, by name; null where there is none of the kind.

    Args:
        tree: Calls with ``name`` and ``part``, of :func:`part_of_program`.

    Returns:
        ``operator``: the outermost operator of the framework; ``module``: the innermost ``nn.Module``; ``range``: the
        innermost range or annotation; ``location``: the innermost Python function outside of libraries, else the
        innermost one.
    """
    return pl.DataFrame({place: names_of(tree, rows) for place, rows in place_rows(tree).items()})


def place_rows(tree: CallTree) -> dict[str, npt.NDArray[np.signedinteger[Any]]]:
    """For each of :data:`PLACES`, the row of the call that names it of each call; -1 where there is none."""
    part = tree.calls["part"]
    operator, module, range_, line, library = (
        (part == key).fill_null(value=False).to_numpy() for key in ("operator", "module", "range", "line", "library")
    )
    location = _nearest(tree, line)
    if library.any():
        location = np.where(location >= 0, location, tree.nearest(library))
    return {
        "operator": _nearest(tree, outermost(tree, operator) if operator.any() else operator),
        "module": _nearest(tree, module),
        "range": _nearest(tree, range_),
        "location": location,
    }


def _nearest(tree: CallTree, selected: Mask) -> npt.NDArray[np.signedinteger[Any]]:
    """As ``tree.nearest``; where nothing is selected, the answer takes little memory."""
    return tree.nearest(selected) if selected.any() else np.full(selected.size, -1, np.int8)


def names_of(tree: CallTree, rows: npt.NDArray[np.signedinteger[Any]]) -> pl.Series:
    """Names of the calls in ``rows`` of the tree, as they are stored; null for -1."""
    index = pl.Series(rows, dtype=pl.Int64)
    return tree.calls["name"].gather(index.set(index < 0, None))


def outermost(tree: CallTree, selected: Mask) -> Mask:
    """Those of the ``selected`` calls that lie in no other of them."""
    nearest = tree.nearest(selected)
    around = np.where(tree.parent >= 0, nearest[tree.parent], -1)
    return np.asarray(selected & (around < 0))


def located(frame: pl.Expr) -> pl.Expr:
    """``train.py:41 load`` of the names that profilers give it: ``train.py(41): load``, ``$train.py:41 load``."""
    return replaced(replaced(frame, _TORCH_FRAME, "${1}:${2} ${3}"), _JAX_FRAME, "${1} ${2}")
