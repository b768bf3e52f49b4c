"""API calls that an export holds twice.

Some injections record a call of the runtime library themselves, and CUPTI records it again under its versioned name::

    cudaMalloc        |----------|      correlation id 135
    cudaMalloc_v3020   |--------|       correlation id 135
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.shared.arrays.arrow import DictionaryArray, pc
from traceviz.parsers.shared.notes import Notes

CALLS = "cuda_api"
_ID = "correlation_id"


def with_ids(options: ReadRequest) -> ReadRequest:
    """Return ``options`` with the column that :func:`drop_repeated_calls` needs, for any request."""
    if CALLS not in options.columns:
        return options
    return replace(options, columns={**options.columns, CALLS: options.columns[CALLS] | {_ID}})


def drop_repeated_calls(calls: pa.Table, notes: Notes) -> pa.Table:
    """Return table ``cuda_api`` without calls that lie inside one of the same name, thread and correlation id."""
    ids = _numbers(calls, _ID)
    if not _has_equal_neighbours(ids):
        return calls
    again = _repeated(calls, ids)
    notes.add("calls-recorded-twice", "info", "Calls inside the same call, recorded twice; counted once.", again.size)
    kept = np.ones(calls.num_rows, dtype=bool)
    kept[again] = False
    return calls.filter(pa.array(kept)) if again.size else calls


@dataclass(slots=True)
class Neighbours:
    """Checks calls piece by piece, in the order of the file.

    Args:
        last: The id of the last call of the piece before.
    """

    last: int = 0

    def are_in(self, calls: pa.Table) -> bool:
        """Return whether :func:`drop_repeated_calls` has to check all calls."""
        ids = np.append(self.last, _numbers(calls, _ID))
        self.last = int(ids[-1])
        return _has_equal_neighbours(ids)


def _has_equal_neighbours(ids: npt.NDArray[np.int64]) -> bool:
    """Return whether two calls in a row have the same id, as calls recorded twice do: a quick test."""
    return bool(((ids[1:] == ids[:-1]) & (ids[1:] > 0)).any())


def _repeated(calls: pa.Table, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return the positions of calls that lie inside an equal one. Only calls that share their id are compared."""
    order = np.argsort(ids, kind="stable")  # nearly in order: a merge sort finds the sorted runs
    sorted_ids = ids[order]
    equal = (sorted_ids[1:] == sorted_ids[:-1]) & (sorted_ids[1:] > 0)  # 0 and negative ids are none
    shared: npt.NDArray[np.intp] = np.sort(order[np.append(equal, False) | np.append(False, equal)])
    unified = calls["name"].unify_dictionaries()
    coded: DictionaryArray = unified.chunk(0) if unified.num_chunks == 1 else unified.combine_chunks()
    names = coded.indices.to_numpy()
    keys = [column[shared] for column in (ids, calls["thread_id"].to_numpy(), names)]
    starts = calls["start_ns"].to_numpy()[shared]
    ends = starts + _numbers(calls, "dur_ns")[shared]
    order = np.lexsort((-ends, starts, *keys))
    same = np.zeros(order.size, np.bool_)
    same[1:] = np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
    group = np.cumsum(~same) - 1
    first_end = ends[order][~same][group]
    again: npt.NDArray[np.intp] = shared[order[same & (ends[order] <= first_end)]]
    return again


def _numbers(calls: pa.Table, name: str) -> npt.NDArray[np.int64]:
    """Return a column of integers, with 0 for null."""
    column = calls[name]
    return column.to_numpy() if not column.null_count else pc.fill_null(column, 0).to_numpy()
