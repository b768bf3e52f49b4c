"""Stacks in the form of table ``stack_frames`` holds them: each row is a frame and all frames around it.

::

    0  main                 main
    1  main > load          ├ load            the stack of a sample is one number, that of its innermost frame
    2  main > load > read   │ └ read
    3  main > save          └ save
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.arrays.operations import NONE
from traceviz.parsers.shared.arrays.operations import Array as Numbers
from traceviz.parsers.shared.events.columns import nullable, with_column
from traceviz.trace import schema

_FRAME = ("function", "file", "line", "origin")
"""Columns that identify a frame, without the frames around it."""


def united(tables: Sequence[pa.Table]) -> tuple[pa.Table, list[Numbers]]:
    """Merge several tables ``stack_frames``. Equal stacks become one row.

    Args:
        tables: The tables, whose numbers are those of their rows; parents come before their children.

    Returns:
        The table, and for each of ``tables`` the new number of each of its rows.
    """
    together = pa.concat_tables(tables or [schema.table("stack_frames").empty()]).unify_dictionaries()
    counts = [table.num_rows for table in tables]
    begins = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    parents = pc.fill_null(together["parent_id"], NONE).to_numpy().copy()
    parents[parents >= 0] += np.repeat(begins[:-1], counts)[parents >= 0]
    frames, numbers = _numbers_of_frames(together), np.full(parents.size, NONE, np.int64)
    kept, free = [], 0
    # Level by level from the outermost: parents are merged first. A loop over single stacks takes minutes.
    level = np.flatnonzero(parents < 0)
    by_parent = np.argsort(parents, kind="stable")
    sorted_parents = parents[by_parent]
    while level.size:
        around = np.where(parents[level] < 0, NONE, numbers[parents[level]])
        keys = (around + 1) * (parents.size + 1) + frames[level]
        _, first, same = np.unique(keys, return_index=True, return_inverse=True)
        numbers[level] = free + same
        kept.append(level[first])
        free += first.size
        level = _find_children(level, by_parent, sorted_parents)
    rows = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    outer = parents[rows]
    table = together.take(rows)
    table = with_column(table, "stack_id", pa.chunked_array([pa.array(np.arange(rows.size))]))
    outer = np.where(outer >= 0, numbers[outer], NONE) if outer.size else outer
    table = with_column(table, "parent_id", pa.chunked_array([nullable(outer, pa.int64())]))
    return table, [numbers[begin:end] for begin, end in pairwise(begins.tolist())]


def _find_children(level: Numbers, by_parent: Numbers, sorted_parents: Numbers) -> Numbers:
    """Return rows whose parent is one of ``level``, which need not be sorted."""
    parents = np.sort(level)
    first, last = np.searchsorted(sorted_parents, parents), np.searchsorted(sorted_parents, parents, side="right")
    counts = last - first
    offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_parent[np.repeat(first, counts) + offsets])


def _numbers_of_frames(table: pa.Table) -> Numbers:
    """Return a number for each row (int64), equal for equal frames."""
    numbers = np.zeros(table.num_rows, np.int64)
    for name in _FRAME:
        column = table[name].combine_chunks()
        words: Any = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        codes = pc.fill_null(words.indices, NONE).to_numpy().astype(np.int64)
        numbers = np.unique(numbers * (codes.max(initial=0) + 2) + codes, return_inverse=True)[1]
    return numbers
