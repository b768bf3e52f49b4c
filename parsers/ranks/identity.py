"""Common numbers of the ranks, processes, threads and devices of several traces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.core.errors import UsageError
from traceviz.parsers.ranks.devices import ASSUMED, Listed, unify_devices
from traceviz.parsers.ranks.names import rank_in_name
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.owners import by_trace, numbered, numbered_rows
from traceviz.trace import schema

Tables = Mapping[str, pa.Table]
Rows = list[dict[str, Any]]
Numbers = list[dict[int, int]]
"""For each trace, the common number of each of its own numbers."""
Nameless = list[tuple[dict[str, Any], str]]

_LISTED = 4
"""Maximum number of ranks that a note names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Member:
    """One trace of a bundle, with its numbers there.

    Args:
        position: Its position among the traces as they were given.
        name: Its name for people.
        label: Its ranks for people, for example ``rank 3``.
        processes, threads, devices: The number in the bundle of each of its ids; ids are positions in the arrays.
        only_process: Its process in the bundle, if it has exactly one.
    """

    position: int
    name: str
    label: str
    processes: Array
    threads: Array
    devices: Array
    only_process: int | None

    @classmethod
    def of(cls, position: int, name: str, label: str, numbers: tuple[Numbers, Numbers, Numbers]) -> Member:
        """Return the member at ``position``; ``numbers`` are those of all members' processes, threads and devices."""
        processes, threads, devices = (of_all[position] for of_all in numbers)
        only = next(iter(processes.values())) if len(processes) == 1 else None
        lookups = (_lookup(processes, pa.int32()), _lookup(threads, pa.int32()), _lookup(devices, pa.int16()))
        return cls(position, name, label, *lookups, only)


@dataclass(frozen=True, slots=True)
class Identity:
    """Members in the order of their ranks, the tables of processes, threads and devices, and notes about the ranks."""

    members: tuple[Member, ...]
    processes: Rows
    threads: Rows
    devices: Rows
    notes: Rows


def identify(parts: Sequence[Tables], names: Sequence[str]) -> Identity:
    """Number the processes, threads and devices of several traces, in the order of the ranks.

    Args:
        parts: The tables of each trace.
        names: Names of the traces, which may state ranks that the traces do not.

    Raises:
        UsageError: two traces are captures of the same rank.
    """
    processes = [rows_of(part, "processes") for part in parts]
    named, nameless = _take_ranks_from_names(parts, names, processes)
    placed = _number_by_position(nameless, processes)
    _check_ranks(names, processes)
    first_ranks = [min((row["rank"] for row in rows if row["rank"] is not None), default=None) for rows in processes]
    # By their lowest rank; traces without any come last.
    order = sorted(range(len(parts)), key=lambda index: (first_ranks[index] is None, first_ranks[index] or 0, index))
    process_rows, process_ids = _number_processes(processes, order)
    thread_rows, thread_ids = _number_threads(parts, order, process_ids)
    devices = unify_devices(
        [
            Listed.of(part, rows_of(part, "devices"), rows, run_row(part).get("host"))
            for part, rows in zip(parts, processes, strict=True)
        ],
        order,
    )
    numbers = (process_ids, thread_ids, devices.ids)
    members = tuple(Member.of(index, names[index], _label(processes[index], names[index]), numbers) for index in order)
    notes = []
    if named:
        notes.append(_note("rank-from-name", f"Ranks were taken from the names of the traces: {_listing(named)}."))
    if placed:
        text = f"Neither the traces nor their names state ranks, so they were numbered as given: {_listing(placed)}."
        notes.append(_note("rank-from-position", text))
    if devices.assumed:
        notes.append(_note("devices-assumed", ASSUMED.format(len(devices.rows))))
    return Identity(members, process_rows, thread_rows, devices.rows, notes)


def rows_of(part: Tables, name: str) -> Rows:
    """Return rows of a short table; columns that it lacks are null."""
    unknown = dict.fromkeys(column.name for column in schema.table(name).columns)
    return [{**unknown, **row} for row in part[name].to_pylist()] if name in part else []


def run_row(part: Tables) -> dict[str, Any]:
    """Return the only row of table ``run``; empty if there is none."""
    return next(iter(rows_of(part, "run")), {})


def _lookup(ids: Mapping[int, int], kind: pa.DataType) -> Array:
    """Return ``ids`` as an array whose value at each old id is the new one; -1 for unknown old ids.

    Args:
        ids: New ids by old ones.
        kind: Type of the values.
    """
    values = np.full(max(ids, default=-1) + 1, -1, np.int64)
    values[list(ids)] = list(ids.values())
    return pa.array(values).cast(kind)


# Ranks


def _take_ranks_from_names(
    parts: Sequence[Tables], names: Sequence[str], processes: Sequence[Rows]
) -> tuple[dict[int, str], Nameless]:
    """Fill in the ranks that only names of traces state.

    Returns:
        The name of each such rank, and the processes of unknown rank, with the names of their traces.
    """
    named: dict[int, str] = {}
    nameless: Nameless = []
    for part, name, rows in zip(parts, names, processes, strict=True):
        if any(row["rank"] is not None for row in rows):
            continue
        workers = _workers(part, rows)
        rank = rank_in_name(name)
        if rank is not None and len(workers) == 1:
            workers[0]["rank"] = rank
            named[rank] = name
        else:
            nameless += [(worker, name) for worker in workers]
    return named, nameless


def _number_by_position(nameless: Nameless, processes: Sequence[Rows]) -> dict[int, str]:
    """Give processes without a rank the free numbers, in their order; return the trace of each."""
    taken = {row["rank"] for rows in processes for row in rows}
    free = [number for number in range(len(taken) + len(nameless)) if number not in taken][: len(nameless)]
    for (worker, _), number in zip(nameless, free, strict=True):
        worker["rank"] = number
    return {number: name for (_, name), number in zip(nameless, free, strict=True)}


def _workers(part: Tables, rows: Rows) -> Rows:
    """Return the processes that own device work, else all except declared workers: a loader is not a rank."""
    owners = {
        process
        for name in schema.DEVICE_WORK
        if name in part
        for process in pc.unique(part[name]["process_id"]).to_pylist()
    }
    if owners or "phases" not in part:
        return [row for row in rows if row["process_id"] in owners] or rows
    phases = part["phases"].select(["process_id", "kind", "name"]).to_pylist()
    loaders = {phase["process_id"] for phase in phases if (phase["kind"], phase["name"]) == ("program", "worker")}
    return [row for row in rows if row["process_id"] not in loaders] or rows


def _listing(ranks: Mapping[int, str]) -> str:
    shown = [f"rank {rank} is {name}" for rank, name in sorted(ranks.items())]
    more = len(shown) - _LISTED
    return ", ".join(shown[:_LISTED]) + (f", and {more} more" if more > 0 else "")


def _check_ranks(names: Sequence[str], processes: Sequence[Rows]) -> None:
    seen: dict[int, int] = {}
    for index, rows in enumerate(processes):
        for rank in {row["rank"] for row in rows} - {None}:
            first = seen.setdefault(rank, index)
            if first != index:
                raise UsageError(
                    f"{names[first]} and {names[index]} are two captures of rank {rank}.",
                    "A report on several traces takes one capture of each rank.",
                    "Leave one of them out, or report on them one by one.",
                )


def _label(rows: Rows, name: str) -> str:
    ranks = sorted({row["rank"] for row in rows} - {None})
    if not ranks:
        return name
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return "ranks " + ", ".join(map(str, ranks))


# Numbers


def _number_processes(processes: Sequence[Rows], order: Sequence[int]) -> tuple[Rows, Numbers]:
    """Return processes by rank, those without one last, and for each trace the new number of each."""
    place = {index: position for position, index in enumerate(order)}
    rows = {(index, row["process_id"]): row for index, stated in enumerate(processes) for row in stated}
    numbers = numbered(rows, lambda key: (rows[key]["rank"] is None, rows[key]["rank"] or 0, place[key[0]]))
    return numbered_rows("processes", (rows[key] for key in numbers)), by_trace(numbers, len(processes))


def _number_threads(
    parts: Sequence[Tables], order: Iterable[int], processes: Sequence[Mapping[int, int]]
) -> tuple[Rows, list[dict[int, int]]]:
    """Return threads in the order of their processes, and for each trace the new number of each."""
    rows = {
        (index, row["thread_id"]): {**row, "process_id": processes[index][row["process_id"]]}
        for index in order
        for row in rows_of(parts[index], "threads")
    }
    numbers = numbered(rows, lambda key: rows[key]["process_id"])
    return numbered_rows("threads", (rows[key] for key in numbers)), by_trace(numbers, len(parts))


# Settings and notes


def merged_settings(settings: Sequence[tuple[Member, Rows]]) -> Rows:
    """Merge settings of all members: equal ones are about the capture, the others about each member's process."""
    members = len(settings)
    stated: defaultdict[tuple[str, str], int] = defaultdict(int)
    for _, rows in settings:
        for key in dict.fromkeys((row["key"], row["value"]) for row in rows if row["process_id"] is None):
            stated[key] += 1
    common = {key for key, count in stated.items() if count == members}
    merged: Rows = [{"process_id": None, "key": key, "value": value} for key, value in stated if (key, value) in common]
    for member, rows in settings:
        numbers = member.processes.to_pylist()
        for row in rows:
            if row["process_id"] is not None:
                merged.append({**row, "process_id": numbers[row["process_id"]]})
            elif (row["key"], row["value"]) not in common:
                merged.append({**row, "process_id": member.only_process})
    return merged


def merged_notes(notes: Sequence[tuple[Member, Rows]]) -> Rows:
    """Merge notes of all members: equal notes once, and notes that differ only in figures once with their number."""
    groups: defaultdict[tuple[str, str, str], list[tuple[Member, dict[str, Any]]]] = defaultdict(list)
    for member, rows in notes:
        for row in rows:
            groups[row["code"], row["severity"], re.sub(r"\d[\d,.]*", "#", row["message"])].append((member, row))
    merged = []
    for group in groups.values():
        member, first = group[0]
        if len(group) == len(notes) and all(row == first for _, row in group):
            merged.append(first)
            continue
        others = len({other.position for other, _ in group} - {member.position})
        likewise = f" ({others} more {'rank says' if others == 1 else 'ranks say'} the like)" if others else ""
        counts = [row["count"] for _, row in group if row["count"] is not None]
        message = f"{member.label}: {first['message']}{likewise}"
        message = message[0].upper() + message[1:]
        merged.append({**first, "message": message, "count": sum(counts) if counts else None})
    return merged


def _note(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "severity": "info", "count": None, "message": message}
