"""NVTX ranges and marks of an nvprof database.

A range is two records with one ``id``; only the first has the name. Its object distinguishes ranges of a thread (push
and pop) from those of the process (start and end, perhaps on two threads).

::

    flags   | start, id 7, "step" |  ...  | end, id 7 |        | instant, id 8, "saved" |
    nvtx    |--------------- step ----------------|            ^ saved
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.nvprof import constants
from traceviz.parsers.nvprof.identity import Identity, Survey
from traceviz.parsers.nvprof.mapping import MARKERS
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.columns import recoded
from traceviz.parsers.shared.events.names import UNKNOWN, look_up
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.shared.nvtx import nvtx_table, ordered
from traceviz.trace.schema import NVTX_KINDS

_DATA = constants.PREFIX + "MARKER_DATA"
_COLUMNS = ("flags", "timestamp", "id", "objectKind", "processId", "threadId", "name", "domain")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """Records of markers as columns. Missing columns and nulls count as 0."""

    columns: Mapping[str, Numbers]

    def where(self, mask: npt.NDArray[np.bool_]) -> _Records:
        """Return the records at which ``mask`` is true."""
        return _Records({name: values[mask] for name, values in self.columns.items()})

    def __getitem__(self, name: str) -> Numbers:
        return self.columns[name]


def read_markers(raw: NvprofTables, survey: Survey, identity: Identity, notes: Notes) -> pa.Table:
    """Return table ``nvtx``, sorted by start (the longer range first if equal), with the nesting of push/pop ranges."""
    present = [name for name in _COLUMNS if name in raw.columns(MARKERS.table)]
    batches = list(raw.stream(MARKERS.table, present))
    table = pa.Table.from_batches(batches, pa.schema([(name, pa.int64()) for name in present]))
    table = table.filter(table["timestamp"].is_valid())
    nothing = np.zeros(table.num_rows, np.int64)
    records = _Records(
        {name: pc.fill_null(table[name], 0).to_numpy() if name in present else nothing for name in _COLUMNS}
    )
    if survey.clock.window is not None:
        records = records.where(survey.clock.window.has(records["timestamp"]))
    flags = records["flags"]
    begins = records.where((flags & constants.MARKER_START) != 0)
    ends = records.where((flags & constants.MARKER_END) != 0)
    marks = records.where((flags & constants.MARKER_INSTANT) != 0)
    partner = _partners(begins, ends)
    paired = partner[partner >= 0]
    notes.add("range-not-begun", "info", "nvtx: ends of ranges that began earlier.", len(ends["id"]) - len(paired))
    open_ranges = len(begins["id"]) - len(paired)
    notes.add("range-not-ended", "info", "nvtx: ranges that did not end during the capture.", open_ranges)
    if len(paired):
        negative = int((ends["timestamp"][paired] < begins["timestamp"][partner >= 0]).sum())
        message = "nvtx: rows that end before they start, kept without a duration."
        notes.add("negative-duration", "warning", message, negative)
    rows = _rows(raw, identity, begins, ends, partner, marks, survey.clock.zero_ns)
    return nvtx_table(rows, survey.clock.last_ns - survey.clock.zero_ns)


def _partners(begins: _Records, ends: _Records) -> Numbers:
    """Return the index of the end of each start, -1 if there is none.

    Ids may be reused: the n-th end with an id belongs to the n-th start with it.
    """
    if not len(begins["id"]) or not len(ends["id"]):
        return np.full(len(begins["id"]), -1, np.int64)
    _, codes = np.unique(np.concatenate([begins["id"], ends["id"]]), return_inverse=True)
    width = len(codes)
    first = _rank_in_code(codes[: len(begins["id"])], begins["timestamp"], width)
    second = _rank_in_code(codes[len(begins["id"]) :], ends["timestamp"], width)
    order = np.argsort(second)
    position = np.minimum(np.searchsorted(second[order], first), len(second) - 1)
    return np.where(second[order][position] == first, order[position], -1)


def _rank_in_code(codes: Numbers, times: Numbers, width: int) -> Numbers:
    """Return one number for a code and its place in time among equal codes."""
    order = np.lexsort((times, codes))
    in_order = codes[order]
    heads = np.flatnonzero(np.diff(in_order, prepend=-1))
    runs = np.diff(np.append(heads, len(codes)))
    numbered = np.empty(len(codes), np.int64)
    numbered[order] = in_order * width + np.arange(len(codes)) - np.repeat(heads, runs)
    return numbered


def _rows(  # noqa: PLR0917 (the three kinds of records, and the sources of their names and places)
    raw: NvprofTables,
    identity: Identity,
    begins: _Records,
    ends: _Records,
    partner: Numbers,
    marks: _Records,
    zero_ns: int,
) -> pa.Table:
    """Return columns of table ``nvtx`` without the derived ones, in its order."""
    both = {name: np.concatenate([begins[name], marks[name]]) for name in _COLUMNS}
    pids, tids = pa.array(both["processId"]), pa.array(both["threadId"])
    count, has_end = len(begins["id"]), partner >= 0
    durations = np.zeros(len(both["id"]), np.int64)  # of ranges, then of marks
    durations[:count][has_end] = ends["timestamp"][partner[has_end]] - begins["timestamp"][has_end]
    known = np.zeros(len(both["id"]), bool)
    known[:count] = has_end & (durations[:count] >= 0)
    of_process = both["objectKind"] == constants.OBJECT_PROCESS
    # Ranges that end on another thread than they started on are ranges of the process too.
    of_process[:count][has_end] |= ends["threadId"][partner[has_end]] != begins["threadId"][has_end]
    is_mark = np.arange(len(durations)) >= count
    kinds = np.where(is_mark, 2, np.where(of_process, 1, 0))
    # Categories are numbers, as their names are not stored; null if a marker has none.
    rows = raw.small(_DATA, ("id", "category"))
    stated = {row["id"]: row["category"] for row in rows if row["id"] is not None and row["category"]}
    positions = pc.index_in(pa.array(both["id"]), value_set=pa.array(list(stated), pa.int64()))
    categories = recoded([f"[category {number}]" for number in stated.values()], positions)
    columns: dict[str, Array] = {
        "start_ns": pa.array(both["timestamp"] - zero_ns),
        "dur_ns": pa.array(durations, mask=~known),
        "process_id": identity.process_ids(pids),
        "thread_id": identity.thread_ids(pids, tids),
        "kind": pa.DictionaryArray.from_arrays(pa.array(kinds, pa.int32()), pa.array(NVTX_KINDS)),
        "name": _strings(raw, both["name"], UNKNOWN),
        "domain": _strings(raw, both["domain"], ""),
        "category": categories,
    }
    return ordered(pa.table(columns))


def _strings(raw: NvprofTables, ids: Numbers, otherwise: str) -> Array:
    """Return strings by id as a dictionary; ``otherwise`` for the id that stands for none."""
    encoded = pa.array(ids).dictionary_encode()
    return recoded(pc.fill_null(look_up(raw, encoded.dictionary), otherwise).to_pylist(), encoded.indices)
