"""API calls that an export holds twice.

Some injections record a call of the runtime library themselves, and CUPTI records it again under its versioned name::

    cudaMalloc        |----------|      correlation id 135
    cudaMalloc_v3020   |--------|       correlation id 135
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from traceviz.parsers.base import ReadOptions
from traceviz.parsers.shared.notes import Notes

CALLS = "cuda_api"
_ID = "correlation_id"


def with_ids(options: ReadOptions) -> ReadOptions:
    """``options`` that ask for what :func:`once` looks at: which calls there are does not depend on the question."""
    if CALLS not in options.columns:
        return options
    return replace(options, columns={**options.columns, CALLS: options.columns[CALLS] | {_ID}})


def once(calls: pa.Table, notes: Notes) -> pa.Table:
    """Table ``cuda_api`` without calls that lie inside one of the same name, thread and correlation id."""
    ids = _numbers(calls, _ID)
    if not _has_neighbours(ids):
        return calls
    again = _repeated(calls, ids)
    notes.add("calls-recorded-twice", "info", "Calls inside the same call, recorded twice; counted once.", again.size)
    kept = np.ones(calls.num_rows, dtype=bool)
    kept[again] = False
    return calls.filter(pa.array(kept)) if again.size else calls


def _has_neighbours(ids: npt.NDArray[np.int64]) -> bool:
    """Whether two calls in a row have the same id, as the first of those recorded twice have: a quick look."""
    return bool(((ids[1:] == ids[:-1]) & (ids[1:] > 0)).any())


def _repeated(calls: pa.Table, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Positions of the calls that lie inside an equal one."""
    names = calls["name"].cast(pa.string()).combine_chunks().dictionary_encode().indices
    keys = [ids, calls["thread_id"].to_numpy(), names.to_numpy()]
    starts = calls["start_ns"].to_numpy()
    ends = starts + _numbers(calls, "dur_ns")
    order = np.lexsort((-ends, starts, *keys))
    same = np.concatenate([[False], np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)])
    same &= ids[order] > 0
    group = np.cumsum(~same) - 1
    first_end = ends[order][~same][group]
    again: npt.NDArray[np.intp] = order[same & (ends[order] <= first_end)]
    return again


def _numbers(calls: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """A column of integers, with 0 where there is none."""
    column = calls[name]
    return column.to_numpy() if not column.null_count else pl.Series(column).fill_null(0).to_numpy()
