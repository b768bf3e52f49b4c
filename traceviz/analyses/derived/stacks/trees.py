"""The tree of interned stacks: the innermost frames and the meaning of each, computed by passes over arrays.

::

    stack 0   train.py:90 main                    parent null
    stack 1     train.py:41 decode_jpeg           parent 0
    stack 2       PIL/Image.py:3000 open          parent 1
    stack 3         read                          parent 2, native
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.calls.short_names import IMPORTED, SCRIPT
from traceviz.analyses.derived.stacks.kinds import STANDARD, is_import, purpose_frames, with_activity, with_purpose
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array

Mask = npt.NDArray[np.bool_]

DEEPEST = 256
"""Maximum number of frames of a stack; in deeper stacks, the outer frames are ignored."""
_TEXTS = ("function", "file", "origin")
_MADE = "<string>"
_NAMELESS = r"<(listcomp|dictcomp|setcomp|genexpr|lambda)>$"


@dataclass(frozen=True, slots=True, eq=False)
class StackTree:
    """Stacks by row, each with the row of its caller's stack.

    Args:
        frames: ``stack_id, function, file, line, origin`` of the innermost frame of each stack, text as text.
        parent: Row of the caller's stack, lower than its own, or -1.
    """

    frames: pl.DataFrame
    parent: Array

    def around(self, selected: Mask) -> Array:
        """Return, for each stack, the row of the innermost ``selected`` frame that is its own or around it, or -1."""
        return self._climb(selected, np.arange(self.parent.size))

    def outermost(self, selected: Mask) -> Array:
        """Return, for each stack, the row of the outermost ``selected`` frame, or -1."""
        row = self.around(selected)
        found = row.copy()
        while (row >= 0).any():  # at most once per frame of the deepest stack
            outer = np.where(row >= 0, self.parent[np.maximum(row, 0)], -1)
            row = self._climb(selected, outer)
            found = np.where(row >= 0, row, found)
        return found

    def repeats(self, key: Array) -> Mask:
        """Return which frames have one with the same ``key`` around them: calls within calls of the same function."""
        found = np.zeros(self.parent.size, dtype=bool)
        row = self.parent
        while (row >= 0).any():
            above = np.maximum(row, 0)
            found |= (row >= 0) & (key[above] == key)
            row = np.where((row >= 0) & ~found, self.parent[above], -1)
        return found

    def totals(self, values: Array) -> Array:
        """Return, for each stack, its own value plus those of all stacks below it."""
        total = values.astype(np.int64, copy=True)
        depth, row = np.zeros(self.parent.size, np.int64), self.parent
        while (row >= 0).any():
            depth[row >= 0] += 1
            row = np.where(row >= 0, self.parent[np.maximum(row, 0)], -1)
        for level in range(int(depth.max(initial=0)), 0, -1):  # once per frame of the deepest stack
            rows = np.flatnonzero(depth == level)
            np.add.at(total, self.parent[rows], total[rows])
        return total

    def _climb(self, selected: Mask, row: Array) -> Array:
        """Return the first ``selected`` row from each of ``row`` outwards."""
        row = row.astype(np.int64, copy=True)
        while (further := (row >= 0) & ~selected[np.maximum(row, 0)]).any():
            row[further] = self.parent[row[further]]
        return row


@once_per_trace
def stack_tree(trace: TraceView) -> StackTree:
    """Return all stacks of the trace."""
    texts = (pl.col(name).cast(pl.String) for name in _TEXTS)
    frames = trace.frame("stack_frames", "stack_id", "parent_id", "line", *texts)
    frames = frames.unique("stack_id", keep="first").sort("stack_id")
    ids, parents = frames["stack_id"].to_numpy(), frames["parent_id"].fill_null(-1).to_numpy()
    row = np.minimum(np.searchsorted(ids, parents), max(ids.size - 1, 0))
    own = np.arange(ids.size)
    known = (ids[row] == parents) & (row < own) if ids.size else np.empty(0, dtype=bool)
    parent = np.where(known, row, -1).astype(np.int64)
    ancestor = parent
    for _ in range(DEEPEST):  # cut deeper stacks, so that a hostile one cannot take hours
        if not (ancestor >= 0).any():
            break
        ancestor = np.where(ancestor >= 0, parent[np.maximum(ancestor, 0)], -1)
    return StackTree(frames.drop("parent_id"), np.where(ancestor >= 0, -1, parent))


@once_per_trace
def stack_meanings(trace: TraceView) -> pl.DataFrame:
    """Return the meaning of each stack: ``stack_id, purpose, activity, inside, location, function, leaf``.

    ``location`` is the innermost frame of the program itself, ``train.py:41 decode_jpeg``, else of a library, else the
    innermost one; ``function`` the same without the line; ``leaf`` the innermost frame. ``purpose`` may be null.
    ``inside`` is true if the location is the program's and serves the purpose itself, not only through its callees.
    """
    tree = stack_tree(trace)
    frames = tree.frames
    distinct = with_activity(with_purpose(frames.select(_TEXTS).unique()))
    frames = frames.join(distinct, on=list(_TEXTS), how="left", maintain_order="left", nulls_equal=True)
    imports, is_module, own, library = (
        frames.select(mask.fill_null(value=False)).to_series().to_numpy()
        for mask in (
            is_import(),
            pl.col("function") == SCRIPT,
            pl.col("origin") == "program",
            pl.col("origin") == "library",
        )
    )
    for_import = tree.around(imports) > tree.around(own & ~is_module)
    frames = frames.with_columns(function_names(tree))
    serves = purpose_frames(
        tree.parent,
        has=frames["purpose"].is_not_null().to_numpy(),
        alone=frames["alone"].fill_null(value=False).to_numpy(),
        until_program=frames["until_program"].fill_null(value=False).to_numpy(),
        program=own,
    )
    purpose = _gathered(frames["purpose"], serves)
    purpose = pl.select(pl.when(pl.Series(for_import)).then(pl.lit("import")).otherwise(purpose)).to_series()
    written = own & (frames["file"] != _MADE).to_numpy()  # generated code of libraries has no file to open
    place = np.arange(frames.height)
    for mask in (library, own, written):  # the last one that is known counts
        around = tree.around(mask)
        place = np.where(around >= 0, around, place)
    frames = frames.with_columns(_enclosing_functions(StackTree(frames, tree.parent), own).alias("function"))
    texts = frames.select(
        pl.format("{}:{} {}", "file", "line", "function")
        .fill_null(pl.format("{} {}", "file", "function"))
        .str.strip_chars(" ")
        .alias("location"),
        pl.format("{} {}", "file", "function").str.strip_chars(" ").alias("function"),
    )
    return pl.DataFrame(
        [
            frames["stack_id"],
            purpose.alias("purpose"),
            _activities(frames, tree),
            pl.Series("inside", (serves >= 0) & (tree.around(own) >= serves)),
            *(_gathered(texts[name], place) for name in ("location", "function")),
            texts["location"].alias("leaf"),
        ]
    )


def _activities(frames: pl.DataFrame, tree: StackTree) -> pl.Series:
    """Return the activity of each stack: that of its innermost frame with one; else Python, if Python is in it."""
    known = _gathered(frames["activity"], tree.around(frames["activity"].is_not_null().to_numpy()))
    is_python = tree.around((frames["origin"] == STANDARD).fill_null(value=False).to_numpy()) >= 0
    python = pl.when(pl.Series(is_python)).then(pl.lit("python"))
    return pl.select(pl.coalesce(known, python).alias("activity")).to_series()


def function_names(tree: StackTree) -> pl.Series:
    """Return names of functions; the top level of an imported file gets another name than that of the script."""
    frames = tree.frames
    imports = frames.select(is_import().fill_null(value=False)).to_series().to_numpy()
    is_module = (frames["function"] == SCRIPT).fill_null(value=False).to_numpy()
    imported = is_module & (tree.around(imports) >= 0)
    return pl.select(
        pl.when(pl.Series(imported)).then(pl.lit(IMPORTED)).otherwise(frames["function"]).alias("function")
    ).to_series()


def _enclosing_functions(tree: StackTree, own: Mask) -> pl.Series:
    """Return function names; nameless functions of the program get the name of their enclosing function."""
    names, files = tree.frames["function"], tree.frames["file"]
    nameless = names.str.contains(_NAMELESS).to_numpy() & own
    around = tree.around(own & ~nameless)
    row = np.where(nameless & (around >= 0), around, np.arange(names.len()))
    is_same = (_gathered(files, row) == files).to_numpy()
    return _gathered(names, np.where(is_same, row, np.arange(names.len())))


def _gathered(column: pl.Series, rows: Array) -> pl.Series:
    index = pl.Series(rows, dtype=pl.Int64)
    return column.gather(index.set(index < 0, None))
