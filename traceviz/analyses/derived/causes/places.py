"""The place of an event in the program: the range, module, operator and line of Python around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.frames import codes
from traceviz.analyses.derived.patterns import matches, replaced
from traceviz.core.arrays.nested import Codes, Rows, alike, nearest, topmost

MODULE = r"^nn\.Module: "
"""Names of Python frames that are calls of a model's module."""

_LIBRARY = (
    r"site-packages/|dist-packages/|/lib/python\d|^(torch|torchvision|transformers|jax|tensorflow|keras|numpy)/"
    r"|^(threading|contextlib|functools|importlib|multiprocessing|selectors|runpy|concurrent|asyncio|queue|socket)[/.]"
    r"|^<|^nn\.Module: |^\$<unknown>"
    r"|^\$(profiler|api|pjit|pxla|array|core|interpreter|traceback_util|builtins|threading)\b"
)
"""Python frames of libraries, where the program cannot be changed."""
_TORCH_FRAME = r"^([^()]*\.py)\((\d+)\): (.*)$"
_JAX_FRAME = r"^\$([^ ]+:\d+) (.*)$"

PLACES = ("operator", "module", "range", "location")
"""Columns of :func:`places`."""
PARTS = ("operator", "module", "range", "line", "library")
"""Parts that an event may stand for: an operator, a module, a range, or a line of the program or of a library."""
_PART = pl.Enum(PARTS)


def part_of_program(source: pl.Expr, category: pl.Expr, name: pl.Expr) -> pl.Expr:
    """Return the part of the program that an event stands for: one of :data:`PARTS`, or null."""
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
    """Return, for each call, the names of its place: of the call itself and of events around it; null if unknown.

    Args:
        tree: Calls with ``name``, and ``part`` from :func:`part_of_program`.

    Returns:
        ``operator``: the outermost operator of the framework; ``module``: the innermost ``nn.Module``; ``range``: the
        innermost range or annotation; ``location``: the innermost Python function outside libraries, else the innermost
        function.
    """
    around = places_around(tree)
    every = np.arange(tree.calls.height)
    return pl.DataFrame({place: names_of(tree, around.rows(place, every)) for place in PLACES})


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """Events around calls. They are the same for all calls of a context.

    Args:
        contexts: The context of each call.
        first: The first call of each context.
        names: For each of :data:`PLACES`, the call that names it in each context, or -1.
    """

    contexts: Codes
    first: Codes
    names: dict[str, Rows]

    def rows(self, place: str, calls: Rows) -> Rows:
        """Return, for each of ``calls``, the row of the call that names its place, or -1 (also for a call of -1)."""
        return chosen(self.names[place], chosen(self.contexts, calls))


def chosen(values: Rows, rows: Rows) -> Rows:
    """Return ``values`` of these rows; -1 for rows of -1."""
    return np.where(rows >= 0, values[rows], -1) if values.size else np.full(rows.size, -1)


def places_around(tree: CallTree) -> Around:
    """Return the events that are, or are around, the calls of ``tree``."""
    names, parts = codes(tree.calls["name"]), codes(tree.calls["part"].cast(_PART))
    contexts = tree.contexts(_numbered(names, parts))
    parent, part = contexts.parent, parts[contexts.first]
    operator, module, range_, line, library = (part == number for number in range(len(PARTS)))
    location = nearest(parent, line)
    location = np.where(location >= 0, location, nearest(parent, library))
    found = (topmost(parent, operator), nearest(parent, module), nearest(parent, range_), location)
    named = {place: chosen(contexts.first, rows) for place, rows in zip(PLACES, found, strict=True)}
    return Around(contexts.of_call, contexts.first, named)


def _numbered(names: Codes, parts: Codes) -> Codes:
    """Return one number for each pair of a name and a part."""
    width = len(PARTS) + 1
    if int(names.max(initial=0)) >= np.iinfo(np.int32).max // width - 1:
        return alike(names, parts)[0]
    return np.asarray((names + np.int32(1)) * np.int32(width) + parts)


def names_of(tree: CallTree, rows: Rows) -> pl.Series:
    """Return names of the calls in ``rows`` of the tree, as they are stored; null for -1."""
    index = pl.Series(rows, dtype=pl.Int64)
    return tree.calls["name"].gather(index.set(index < 0, None))


def located(frame: pl.Expr) -> pl.Expr:
    """Convert profiler frame names (``train.py(41): load``, ``$train.py:41 load``) to ``train.py:41 load``."""
    return replaced(replaced(frame, _TORCH_FRAME, "${1}:${2} ${3}"), _JAX_FRAME, "${1} ${2}")
