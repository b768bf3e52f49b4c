"""Limits of a capture: times, durations, amounts and counts beyond them are left out, and a note reports it.

A single damaged cell must not move a whole trace. So readers ask :func:`window_of` which starts are plausible before
they determine time zero. Every table that leaves a reader passes :func:`checked`, which knows the possible values of a
column from its declaration. Both look only at the smallest and the greatest value of a healthy trace.

The limits are far beyond what any profiler records, and fixed, so that the same file always reads the same.
``docs/definitions.md`` gives the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.core.lazy_module import Later
from traceviz.trace import schema
from traceviz.trace.rows_to_table import NoteTaker, rows_to_table

pc: Any = Later("pyarrow.compute")
"""Untyped: the stubs of pyarrow refuse Python numbers as arguments of compute functions."""

TIMES_NOTE, DURATIONS_NOTE, VALUES_NOTE = "times-out-of-range", "durations-out-of-range", "values-out-of-range"
"""Codes of the notes on rows left out for their start, on durations, and on other values left out."""

LONGEST_NS = 30 * 24 * 3600 * 10**9
"""A month: an event that is longer, or further from most other events, was not recorded with them."""
FARTHEST_NS = 2**62 - 1
"""146 years: times of day lie below it until 2116, and the difference of two of them fits into 64 bits."""
MOST = 2**50
"""A pebibyte, a thousand times more than the largest machine holds in one memory, or moves in a second."""
MOST_UNITS = 2**16
"""More processors, threads of one processor, or devices than any machine has."""
LARGEST_SUM = 2**62
"""Largest sum of all durations or amounts of a table: sums are taken in 64 bits."""
MOST_SAMPLES = 2**32
"""Most samples of one stack in a row: those of a month, at a thousand per second."""
MOST_FRAMES = 1000
"""Most frames of one stack: Python's own limit."""
LARGEST_READING = 2.0**64
"""Largest reading: readings are numbers of any kind, and counters have 64 bits."""

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Column = Any
"""A column of a table."""

_OWN_NUMBERS = {"nvtx": "range_id", "host_ops": "op_id"}
_UNITS = {"bytes": MOST, "bytes/s": MOST, "Hz": MOST}
_COLUMNS = {
    "dur_ns": LONGEST_NS,
    "cpu_ns": LONGEST_NS,
    "t0_unix_ns": FARTHEST_NS,
    "total_ns": LARGEST_SUM,
    "mean_ns": LONGEST_NS,
    "min_ns": LONGEST_NS,
    "max_ns": LONGEST_NS,
    "calls": MOST,
    "in_elements": MOST,
    "out_elements": MOST,
    "sm_count": MOST_UNITS,
    "max_threads_per_sm": MOST_UNITS,
    "ordinal": MOST_UNITS,
    **dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 2**31),
    **dict.fromkeys(("registers_per_thread", "group_size"), 2**31),
}
"""Greatest plausible value of columns without negative values; for columns with a unit, see :data:`_UNITS`."""
_SUMMED = frozenset({"dur_ns", "cpu_ns", "total_ns", "bytes"})
_BESIDE_EVENTS = frozenset({"samples", "stacks", "phases", "metrics", "windows"})
"""Tables whose times may lie before the first event and after the last."""

# Starts, before time zero is known ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """Plausible starts in one file, on its own clock: from ``first`` to ``last``, both included."""

    first: int
    last: int

    def has(self, times: Numbers) -> Flags:
        """Return which of ``times`` lie in it."""
        inside: Flags = (times >= self.first) & (times <= self.last)
        return inside


def is_strange(smallest: int, greatest: int) -> bool:
    """Return whether times from ``smallest`` to ``greatest`` are more than one capture can hold."""
    return greatest - smallest > LONGEST_NS or smallest < -FARTHEST_NS or greatest > FARTHEST_NS


def window_of(starts: Numbers) -> Window | None:
    """Return the window of plausible ``starts`` of a file; ``None`` if all of them are plausible.

    Starts more than :data:`LONGEST_NS` from the median are not plausible. If less than half of the events are damaged,
    the median lies within the range of the others.
    """
    if not starts.size or not is_strange(int(starts.min()), int(starts.max())):
        return None
    return around(starts)


def around(starts: Numbers) -> Window:
    """Return the window around the median of ``starts``, which must not be empty."""
    middle = (starts.size - 1) // 2
    median = int(np.partition(np.clip(starts, -FARTHEST_NS, FARTHEST_NS), middle)[middle])
    return Window(max(median - LONGEST_NS, -FARTHEST_NS), min(median + LONGEST_NS, FARTHEST_NS))


def elapsed(starts: Numbers, ends: Numbers) -> Numbers:
    """Return ``ends - starts``. Times more than 146 years from zero are clipped, so that no result exceeds 64 bits."""
    return np.clip(ends, -FARTHEST_NS, FARTHEST_NS) - np.clip(starts, -FARTHEST_NS, FARTHEST_NS)


def since(zero_ns: int, times: Column) -> Column:
    """Return ``times - zero_ns`` as a column; see :func:`elapsed`."""
    bounds = _bounds(times)
    if bounds is None or -FARTHEST_NS <= bounds[0] <= bounds[1] <= FARTHEST_NS:
        return pc.subtract(times, zero_ns)
    return pc.subtract(_near(times), zero_ns)


def since_each(starts: Column, ends: Column) -> Column:
    """Return ``ends - starts`` as a column; either may be null. See :func:`elapsed`. All ``starts`` are plausible."""
    bounds = _bounds(ends)
    if bounds is None or -FARTHEST_NS <= bounds[0] <= bounds[1] <= FARTHEST_NS:
        return pc.subtract(ends, starts)
    return pc.subtract(_near(ends), starts)


def plausible_durations(durations: Column) -> Column:
    """Return ``durations``, null if longer than :data:`LONGEST_NS`."""
    return pc.if_else(pc.less_equal(durations, LONGEST_NS), durations, pa.scalar(None, pa.int64()))


def _near(times: Column) -> Column:
    """Return ``times``, clipped to 146 years from zero."""
    not_after = pc.min_element_wise(times, FARTHEST_NS, skip_nulls=False)
    return pc.max_element_wise(not_after, -FARTHEST_NS, skip_nulls=False)


def note_times(notes: NoteTaker, table: str, wrong: Numbers) -> None:
    """Note the starts whose rows of ``table`` were left out."""
    if wrong.size:
        message = f"{table}: rows at times that no capture holds together, left out, such as {int(wrong[0])} ns."
        notes.add(TIMES_NOTE, "warning", message, int(wrong.size))


def note_durations(notes: NoteTaker, table: str, wrong: Numbers) -> None:
    """Note the durations that were left out of ``table``."""
    if wrong.size:
        shown = f"kept without a duration, such as {int(wrong[0])} ns."
        message = f"{table}: rows that last longer than any capture, or less than nothing, {shown}"
        notes.add(DURATIONS_NOTE, "warning", message, int(wrong.size))


# Tables, as they leave a reader ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Notes:
    """Collector of rows of table ``notes``."""

    rows: list[dict[str, Any]]

    def add(self, code: str, severity: str, message: str, count: int | None = None) -> None:
        """Add a note."""
        self.rows.append({"code": code, "severity": severity, "message": message, "count": count})


def checked(tables: Iterator[tuple[str, pa.Table]], *, states_span: bool = False) -> Iterator[tuple[str, pa.Table]]:
    """Yield the same tables of one trace, ``notes`` last, without values that no capture can hold.

    Such a value becomes null. If the column must have a value, its row is removed. Ranges and operations after such a
    row
    get new numbers, and so do the columns that refer to them.

    Args:
        tables: Names and tables.
        states_span: If true, table ``run`` states the length of the capture independently of the events. Then events
            that
            start or end after it are left out as well.
    """
    notes = _Notes([])
    numbers: dict[str, Column] = {}
    span = None
    for name, table in tables:
        if name == "notes":
            yield name, pa.concat_tables([table, rows_to_table("notes", notes.rows)]) if notes.rows else table
            continue
        if name == "run" and states_span:
            bounds = _bounds(table["span_ns"])
            span = None if bounds is None else bounds[1]
        last = None if name in _BESIDE_EVENTS else span
        made = [_without_rows(name, table, notes, numbers, last)]
        del table
        made.append(_without_values(name, made.pop(), notes, last))
        yield name, made.pop()  # the caller may release it: no reference is left here


def _with_column(table: pa.Table, name: str, values: Column) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), values)


def _without_rows(
    name: str, table: pa.Table, notes: NoteTaker, numbers: dict[str, Column], last: int | None
) -> pa.Table:
    """Return ``table`` without rows that have no plausible start, a start after ``last``, or no finite reading."""
    if "start_ns" in table.column_names and schema.table(name).is_events:
        table = _at_plausible_times(name, table, notes, numbers, 2 * LONGEST_NS if last is None else last)
    if name == "samples" and (kept := _finite(table["value"])) is not None:
        wrong = table["value"].filter(pc.invert(kept))
        message = f"samples.value: readings that are no finite number, left out, such as {wrong[0].as_py()}."
        notes.add(VALUES_NOTE, "warning", message, len(wrong))
        table = table.filter(kept)
    if name == "stack_frames":
        table, numbers[name] = sound_frames(table, notes)
    if name == "stacks":
        table = _of_known_stacks(table, notes, numbers.get("stack_frames"))
    if name == "op_args" and "host_ops" in numbers:
        table = _with_column(table, "op_id", _position(table["op_id"], numbers["host_ops"]))
        table = table.filter(table["op_id"].is_valid())
    return table


def _at_plausible_times(
    name: str, table: pa.Table, notes: NoteTaker, numbers: dict[str, Column], last: int
) -> pa.Table:
    bounds = _bounds(table["start_ns"])
    if bounds is None or (bounds[0] >= -2 * LONGEST_NS and bounds[1] <= last):
        return table
    starts = table["start_ns"].to_numpy()
    plausible = (starts >= -2 * LONGEST_NS) & (starts <= 2 * LONGEST_NS)
    kept = plausible & (starts <= last)
    note_times(notes, name, starts[~plausible])
    _note_after(TIMES_NOTE, f"{name}: rows that begin after the capture, left out", starts[plausible & ~kept], notes)
    table = table.filter(pa.array(kept))
    if name not in _OWN_NUMBERS:
        return table
    # The remaining rows get their positions as numbers; references to removed parents become null.
    numbers[name] = table[_OWN_NUMBERS[name]].combine_chunks()
    table = _with_column(table, "parent_id", _position(table["parent_id"], numbers[name]))
    return _with_column(table, _OWN_NUMBERS[name], pa.array(np.arange(table.num_rows)))


def _position(values: Column, among: Column) -> Column:
    """Return the position of each of ``values`` ``among`` others, in any order; null if it is not one of them."""
    return pc.index_in(values, value_set=among, skip_nulls=True).cast(pa.int64())


def sound_frames(table: pa.Table, notes: NoteTaker) -> tuple[pa.Table, Column]:
    """Return ``table`` of stack frames without endless chains of callers, and its original numbers.

    Numbers become positions, and callers have lower ones; an impossible caller becomes null. Of a stack that is deeper
    than
    the limit, the innermost frames stay.
    """
    ids = table["stack_id"].combine_chunks()
    parents = table["parent_id"]
    rows = np.arange(table.num_rows)
    if np.array_equal(ids.to_numpy(), rows):
        outer = pc.fill_null(parents, -1).to_numpy()
        if np.all((outer < rows) & (outer >= -1)) and _depths(outer).max(initial=0) < MOST_FRAMES:
            return table, ids
    order = np.argsort(ids.to_numpy(), kind="stable")
    _, first = np.unique(ids.to_numpy()[order], return_index=True)
    table = table.take(order[first])
    ids = table["stack_id"].combine_chunks()
    stated = pc.fill_null(_position(table["parent_id"], ids), -1).to_numpy()
    rows = np.arange(table.num_rows)
    outer = np.where(stated < rows, stated, -1)
    deep = _depths(outer) % MOST_FRAMES == 0
    outer = np.where(deep, -1, outer)
    lost = int(np.sum((outer < 0) & table["parent_id"].is_valid().to_numpy()))
    message = "stack_frames: frames whose caller is not known, or is a frame that they called, without one."
    if lost:
        notes.add(VALUES_NOTE, "warning", message, lost)
    table = _with_column(table, "parent_id", pa.chunked_array([pa.array(outer, mask=outer < 0)]))
    return _with_column(table, "stack_id", pa.chunked_array([pa.array(rows)])), ids


def _depths(parents: Numbers) -> Numbers:
    """Return the number of frames around each. ``parents`` are lower positions, or -1. Takes log2(depth) iterations."""
    depths = (parents >= 0).astype(np.int64)
    above = parents.copy()
    while (up := above >= 0).any():
        depths[up] += depths[above[up]]
        above[up] = above[above[up]]
    return depths


def _of_known_stacks(table: pa.Table, notes: NoteTaker, known: Column | None) -> pa.Table:
    """Return ``table`` of samples with the new frame numbers, without unknown stacks and impossible counts."""
    counts = table["samples"]
    bounds = _bounds(counts)
    kept = None
    if bounds is not None and not 0 <= bounds[0] <= bounds[1] <= MOST_SAMPLES:
        kept = pc.and_(pc.greater_equal(counts, 0), pc.less_equal(counts, MOST_SAMPLES))
    if known is not None:
        # Frames mostly have all numbers from 0 on: then the smallest and the greatest id show whether all are known.
        ids, is_whole = _bounds(table["stack_id"]), _bounds(known) == (0, len(known) - 1)
        if ids is not None and not (is_whole and 0 <= ids[0] <= ids[1] < len(known)):
            places = _position(table["stack_id"], known)
            if places.null_count:
                kept = places.is_valid() if kept is None else pc.and_(kept, places.is_valid())
            table = _with_column(table, "stack_id", places)
    if kept is None:
        return table
    message = "stacks: samples of stacks that no frame describes, or more than any capture has, left out."
    notes.add(VALUES_NOTE, "warning", message, len(table) - pc.sum(kept).as_py())
    return table.filter(kept)


def _without_values(name: str, table: pa.Table, notes: NoteTaker, last: int | None) -> pa.Table:
    """Return ``table`` with nulls for implausible values, and for durations of events that end after ``last``."""
    for column in schema.table(name).columns:
        if column.nullable and column.name in table.column_names and name != "op_args":
            most = _COLUMNS.get(column.name, _UNITS.get(column.unit))
            values = table[column.name]
            if pa.types.is_floating(column.type):
                kept = _finite(values)
            else:
                kept = None if most is None else _within(values, most, summed=column.name in _SUMMED)
            if kept is None:
                continue
            wrong = values.filter(pc.invert(kept))
            if column.name == "dur_ns":
                note_durations(notes, name, wrong.to_numpy())
            else:
                message = (
                    f"{name}.{column.name}: values that no capture can hold, left out, such as {wrong[0].as_py()}."
                )
                notes.add(VALUES_NOTE, "warning", message, len(wrong))
            table = _only(kept, table, column.name)
    if last is None or "dur_ns" not in table.column_names:
        return table
    ends = pc.add(table["start_ns"], table["dur_ns"])  # all rows have a plausible start
    in_time = pc.fill_null(pc.less_equal(ends, last), fill_value=True)
    if not pc.all(in_time).as_py():
        late = table["dur_ns"].filter(pc.invert(in_time)).to_numpy()
        _note_after(DURATIONS_NOTE, f"{name}: rows that end after the capture, kept without a duration", late, notes)
        table = _only(in_time, table, "dur_ns")
    return table


def _only(kept: Column, table: pa.Table, column: str) -> pa.Table:
    """Return ``table`` with nulls for the values of a column that are not ``kept``."""
    values = table[column]
    return _with_column(table, column, pc.if_else(kept, values, pa.scalar(None, values.type)))


def _note_after(code: str, what: str, wrong: Numbers, notes: NoteTaker) -> None:
    if wrong.size:
        notes.add(code, "warning", f"{what}, such as {int(wrong[0])} ns.", int(wrong.size))


def _bounds(values: Column) -> tuple[Any, Any] | None:
    found = pc.min_max(values).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def _within(values: Column, most: int, *, summed: bool) -> Column | None:
    """Return which of ``values`` are from 0 to ``most``, and together small enough to be summed; ``None`` if all are.

    If the sum would exceed :data:`LARGEST_SUM`, values above an equal share of that limit are excluded.
    """
    bounds = _bounds(values)
    if bounds is None:
        return None
    smallest, greatest = bounds
    kept = None
    if smallest < 0 or greatest > most:
        kept = pc.fill_null(pc.and_(pc.greater_equal(values, 0), pc.less_equal(values, most)), fill_value=True)
        values = values.filter(kept)
    is_large = summed and min(greatest, most) * len(values) > LARGEST_SUM
    if is_large and (pc.sum(pc.cast(values, pa.float64())).as_py() or 0.0) > LARGEST_SUM:
        share = LARGEST_SUM // len(values)
        fits = pc.fill_null(pc.less_equal(values, share), fill_value=True)
        if kept is None:
            return fits
        flags = kept.to_numpy().copy()
        flags[flags] = fits.to_numpy()  # one value for each kept row
        return pa.chunked_array([pa.array(flags)])
    return kept


def _finite(values: Column) -> Column | None:
    """Return which readings are finite numbers; ``None`` if all are."""
    bounds = _bounds(values)
    if bounds is None and not len(values) > values.null_count:
        return None
    # Minimum and maximum skip values that are not a number, and a sum does not.
    total = pc.sum(values).as_py()
    if bounds is not None and np.isfinite(total) and -LARGEST_READING <= bounds[0] <= bounds[1] <= LARGEST_READING:
        return None
    within = pc.less_equal(pc.abs(values), LARGEST_READING)  # false for values that are not a number
    kept = pc.fill_null(within, fill_value=True)
    return None if pc.all(kept).as_py() else kept
