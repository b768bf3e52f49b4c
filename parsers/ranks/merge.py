"""Merging of the traces of several ranks: common numbers, one clock, every rank by its number.

::

    rank 0   |--- trace ---|            run.t0_unix_ns is the start of each trace: all are put on one clock,
    rank 1      |--- trace ---|         on which the earliest starts at 0.
    bundle   |----------------|

The result is a trace like any other: it can be analysed, written as a folder, and combined again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.core.errors import UsageError
from traceviz.parsers.ranks.identity import Identity, Member, Rows, identify, merged_notes, merged_settings, run_row
from traceviz.parsers.shared.arrays.arrow import Array, ChunkedArray, pc
from traceviz.parsers.shared.events.columns import with_column
from traceviz.parsers.shared.stacks import united
from traceviz.trace import schema
from traceviz.trace.rows_to_table import rows_to_table

OWN_NUMBERS = {"nvtx": "range_id", "host_ops": "op_id"}
"""Tables whose rows carry their own row number, and its column; ``parent_id`` refers to it."""

_OTHER_SHAPES = (*schema.REQUIRED, "settings")
"""Tables that are not simply concatenated."""


def combine(parts: Sequence[Mapping[str, pa.Table]], names: Sequence[str]) -> dict[str, pa.Table]:
    """Return the tables of one trace that holds several, which are captures of different ranks of one job.

    Args:
        parts: The tables of each trace, with at least :data:`traceviz.trace.schema.REQUIRED`.
        names: Their names, for ranks that the traces do not state, and for messages.

    Returns:
        Tables by name. Processes, threads, devices, ranges, operations and groups are renumbered in the order of the
        ranks; correlation ids stay, which are unique only within a process. Notes state the sources of ranks and
        clocks, and the tables that ranks lack. A single trace is returned unchanged.

    Raises:
        UsageError: two traces are captures of the same rank, or are runs at different times, or there is no trace.
        SchemaError: a table does not match its declaration.
    """
    return dict(merged([dict(part) for part in parts], names))


def merged(
    parts: Sequence[dict[str, pa.Table]], names: Sequence[str], *, one_clock: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of :func:`combine`, one at a time, ``notes`` last.

    Each table is taken out of ``parts`` when it is merged: no more than one is in memory twice.

    Args:
        parts: The tables of each trace.
        names: Their names.
        one_clock: True if the times of all traces are on one clock already.
    """
    if not parts:
        raise UsageError("There is no trace to read.", fix="Name at least one.")
    if len(parts) == 1:
        yield from parts[0].items()
        return
    _refuse_other_runs(parts)
    identity = identify(parts, names)
    clock = _align_clocks(parts, identity.members, one_clock=one_clock)
    lacking = _note_lacking(parts, identity.members)
    runs = [run_row(part) for part in parts]
    row: dict[str, Any] = {}
    for column in schema.table("run").columns:  # common facts once, different ones joined
        values = sorted({run[column.name] for run in runs if run.get(column.name) is not None}, key=str)
        row[column.name] = " + ".join(map(str, values)) if values else None
    yield "run", rows_to_table("run", [row | {"t0_unix_ns": clock.t0_unix_ns, "span_ns": clock.span_ns}])
    yield "devices", rows_to_table("devices", identity.devices)
    yield "processes", rows_to_table("processes", identity.processes)
    yield "threads", rows_to_table("threads", identity.threads)
    yield from events(parts, identity, clock)
    if any("settings" in part for part in parts):
        yield "settings", rows_to_table("settings", merged_settings(_take_by_member(parts, identity, "settings")))
    notes = [*identity.notes, *clock.notes, *lacking, *merged_notes(_take_by_member(parts, identity, "notes"))]
    yield "notes", rows_to_table("notes", notes)


def _take_by_member(parts: Sequence[dict[str, pa.Table]], identity: Identity, name: str) -> list[tuple[Member, Rows]]:
    taken = ((member, parts[member.position].pop(name, None)) for member in identity.members)
    return [(member, table.to_pylist() if table is not None else []) for member, table in taken]


# Clocks


@dataclass(frozen=True, slots=True)
class Clock:
    """The common clock.

    Args:
        starts: Start of each trace on it, in the order of the traces as given.
        t0_unix_ns: Wall-clock time of its zero; ``None`` if the traces do not share a wall clock.
        span_ns: End of the last trace.
        notes: Notes about it.
    """

    starts: tuple[int, ...]
    t0_unix_ns: int | None
    span_ns: int
    notes: Rows


def _align_clocks(parts: Sequence[Mapping[str, pa.Table]], members: Iterable[Member], *, one_clock: bool) -> Clock:
    """Put all traces on the wall clock, or let all start at 0 if that is unknown or implausible."""
    runs = [run_row(part) for part in parts]
    spans = [int(run.get("span_ns") or 0) for run in runs]
    if one_clock:
        return Clock((0,) * len(parts), runs[0].get("t0_unix_ns"), max(spans), [])
    begins = [run.get("t0_unix_ns") for run in runs]
    known = [begin for begin in begins if begin is not None]
    if len(known) == len(parts) and _connected(known, spans):
        first = min(known)
        starts = tuple(begin - first for begin in known)
        return Clock(starts, first, max(start + span for start, span in zip(starts, spans, strict=True)), [])
    without = [member.label for member in members if begins[member.position] is None]
    hint = ""
    if without:
        shown = ", ".join(without[:4]) + (f" and {len(without) - 4} more" if len(without) > 4 else "")
        why = f"the time of day at which the capture began is not known of {shown}"
    else:
        why = "by their times of day the captures do not overlap"
        hint = " Runs that are not ranks of one job: traceviz compare."
    note = {
        "code": "ranks-begin-together",
        "severity": "warning",
        "count": len(without) or None,
        "message": f"All ranks were put to begin at the same time, since {why}: times of different ranks do not "
        f"compare, except where collectives align them.{hint}",
    }
    return Clock((0,) * len(parts), None, max(spans), [note])


def _refuse_other_runs(parts: Sequence[Mapping[str, pa.Table]]) -> None:
    """Raise for runs at different times without ranks: ranks of one job run at the same time.

    Raises:
        UsageError: the traces are such runs of ``traceviz collect``.
    """
    runs = [run_row(part) for part in parts]
    begins = [run["t0_unix_ns"] for run in runs if run.get("t0_unix_ns") is not None]
    stated = any(part["processes"]["rank"].null_count < part["processes"].num_rows for part in parts)
    of_collect = all(run.get("format") == "run" for run in runs) and len(begins) == len(runs)
    if of_collect and not stated and not _connected(begins, [int(run.get("span_ns") or 0) for run in runs]):
        raise UsageError(
            f"These are {len(runs)} runs, not the ranks of one job: they were recorded one after the other.",
            "Several traces are read as one only where they are of one job.",
            "Compare them with `traceviz compare`, or report on each by itself.",
        )


def _connected(begins: Sequence[int], spans: Sequence[int]) -> bool:
    """Return whether the captures, each from its start for its span, leave no gap between them."""
    order = np.argsort(begins, kind="stable")
    starts, ends = np.asarray(begins)[order], (np.asarray(begins) + np.asarray(spans))[order]
    return bool(np.all(starts[1:] <= np.maximum.accumulate(ends)[:-1]))


def _note_lacking(parts: Sequence[Mapping[str, pa.Table]], members: Iterable[Member]) -> Rows:
    """Return one note per set of tables that some ranks have and others do not."""
    everything = {name for part in parts for name in part if name not in schema.REQUIRED}
    groups: dict[tuple[str, ...], list[str]] = {}
    for member in members:
        absent = tuple(name for name in schema.TABLES if name in everything and name not in parts[member.position])
        if absent:
            groups.setdefault(absent, []).append(member.label)
    return [
        {
            "code": "rank-lacks-tables",
            "severity": "warning",
            "count": len(labels),
            "message": f"Not recorded of {', '.join(labels[:4])}{f' and {len(labels) - 4} more' * (len(labels) > 4)}, "
            f"but of other ranks: {', '.join(absent)}.",
        }
        for absent, labels in groups.items()
    ]


# Events


def events(parts: Sequence[dict[str, pa.Table]], identity: Identity, clock: Clock) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of events, sorted by start, and the properties of operations after the operations.

    Args:
        parts: The tables of each trace; they are taken out as they are merged.
        identity: The common numbers of processes, threads and devices.
        clock: The common clock.
    """
    groups = _group_offsets(parts, identity.members)
    frames = _unite_stacks(parts, identity.members)
    operations: Array | None = None
    ranges: dict[int, range] = {}
    for name in schema.TABLES:
        if name in _OTHER_SHAPES or not any(name in part for part in parts):
            continue
        if name == "op_args":
            yield name, _merge_arguments(parts, identity, operations, ranges)
            continue
        if name == "stack_frames":
            assert frames is not None, "a trace has the table"
            yield name, frames
            continue
        table, old_ranges = _concatenate(name, parts, identity, clock, groups)
        table = _sort_by_start(table)
        if name in OWN_NUMBERS:
            table, numbers = _renumber(table, OWN_NUMBERS[name])
            operations, ranges = (numbers, old_ranges) if name == "host_ops" else (operations, ranges)
        yield name, table


def _unite_stacks(parts: Sequence[dict[str, pa.Table]], members: Iterable[Member]) -> pa.Table | None:
    """Merge the stacks of all members into one table, and renumber their samples; ``None`` if no member has any.

    Samples of stacks that a member does not describe are left out.
    """
    own_parts = [parts[member.position] for member in members]
    having = [part for part in own_parts if "stack_frames" in part]
    if not having:
        return None
    for part in own_parts:
        if part not in having:
            part.pop("stacks", None)
    frames, numbers = united([part["stack_frames"] for part in having])
    for part, own in zip(having, numbers, strict=True):
        if "stacks" in part:
            stacks = pc.take(own, part["stacks"]["stack_id"])
            part["stacks"] = with_column(part["stacks"], "stack_id", stacks)
    return frames


def _group_offsets(parts: Sequence[Mapping[str, pa.Table]], members: Iterable[Member]) -> dict[int, int]:
    """Return the offset of the group ids of each trace, so that no two traces share one."""
    offsets, free = {}, 0
    for member in members:
        columns = [table["group_id"] for table in parts[member.position].values() if "group_id" in table.column_names]
        bounds = [pc.min_max(column).as_py() for column in columns]
        values = [bound[edge] for bound in bounds for edge in ("min", "max") if bound[edge] is not None]
        offsets[member.position] = free - min([0, *values])
        free = offsets[member.position] + max([-1, *values]) + 1
    return offsets


def _concatenate(
    name: str, parts: Sequence[dict[str, pa.Table]], identity: Identity, clock: Clock, groups: Mapping[int, int]
) -> tuple[pa.Table, dict[int, range]]:
    """Return rows of all members with the common ids, and the new range of each member's row numbers (by position)."""
    own, tables, ranges, free = OWN_NUMBERS.get(name), [], {}, 0
    for member in identity.members:
        table = _take_out(parts, member, name)
        if table is None:
            continue
        if own is not None:
            ranges[member.position] = range(free, free + _count_up_to(table[own]))
            table = _shift(table, {own: free, "parent_id": free})
            free = ranges[member.position].stop
        table = _shift(table, {"start_ns": clock.starts[member.position], "group_id": groups[member.position]})
        ids = {"process_id": member.processes, "thread_id": member.threads, "device_id": member.devices}
        for column, numbers in ids.items():
            if column in table.column_names:
                table = with_column(table, column, pc.take(numbers, table[column]))
        tables.append(table)
    return pa.concat_tables(tables).unify_dictionaries(), ranges


def _take_out(parts: Sequence[dict[str, pa.Table]], member: Member, name: str) -> pa.Table | None:
    """Return a member's table with the declared columns, sorted; then only the caller holds it."""
    from traceviz.trace.tables import conform  # noqa: PLC0415 (polars takes half a second to load)

    table = parts[member.position].pop(name, None)
    return None if table is None else conform(name, table)


def _count_up_to(numbers: ChunkedArray) -> int:
    """Return one more than the largest of ``numbers``; 0 if there is none."""
    largest = pc.max(numbers).as_py()
    return 0 if largest is None else int(largest) + 1


def _shift(table: pa.Table, amounts: Mapping[str, int]) -> pa.Table:
    for name, amount in amounts.items():
        if amount and name in table.column_names:
            table = with_column(table, name, pc.add_checked(table[name], amount))
    return table


def _sort_by_start(table: pa.Table) -> pa.Table:
    """Return rows in the order of their start, then rank, one column at a time to save memory."""
    starts = table.column("start_ns").to_numpy() if "start_ns" in table.column_names else np.zeros(0)
    if np.all(starts[1:] >= starts[:-1]):
        return table
    # Sorted ranges, one after the other: a merge sort finds them.
    order: Array = pa.array(np.argsort(starts, kind="stable"))
    columns = [column.combine_chunks().take(order) for column in table.columns]
    return pa.table(columns, schema=table.schema)


def _renumber(table: pa.Table, own: str) -> tuple[pa.Table, Array]:
    """Return rows with their positions as numbers and parents, and the new number of each old one (-1: none)."""
    old = table[own].to_numpy()
    numbers = np.full(int(old.max(initial=-1)) + 1, -1, np.int64)
    numbers[old] = np.arange(old.size)
    lookup = pa.array(numbers, mask=numbers < 0)
    table = with_column(table, "parent_id", pc.take(lookup, table["parent_id"]))
    return with_column(table, own, pa.chunked_array([pa.array(np.arange(old.size))])), lookup


def _merge_arguments(
    parts: Sequence[dict[str, pa.Table]], identity: Identity, numbers: Array | None, ranges: Mapping[int, range]
) -> pa.Table:
    """Return properties of operations under the common numbers.

    Properties of operations that the trace does not hold are left out, unless operations were not requested.
    """
    tables, free = [], 0
    for member in identity.members:
        table = _take_out(parts, member, "op_args")
        if table is None:
            continue
        if numbers is None:
            tables.append(_shift(table, {"op_id": free}))
            free += _count_up_to(table["op_id"])
            continue
        own = ranges.get(member.position, range(0))
        table = table.filter(pc.less(table["op_id"], len(own)))
        op_ids = pc.take(numbers, pc.add(table["op_id"], own.start))
        tables.append(with_column(table, "op_id", op_ids).filter(pc.is_valid(op_ids)))
    return pa.concat_tables(tables).unify_dictionaries()
