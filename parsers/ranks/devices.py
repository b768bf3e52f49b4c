"""Recognition of the same device in several traces.

A unique id decides. Many traces state none: PyTorch lists devices by number, and each process of a node lists all of
the node's. Then a device is identified by its node, number and product. Traces do not name their nodes either (unless
the user keeps names). If two processes do most of their work on devices of one number, they are assumed to use two
devices, on two nodes or under their own numbers (``CUDA_VISIBLE_DEVICES``)::

    trace      rank 0          rank 1          rank 8
    lists      0 1 2 .. 7      0 1 2 .. 7      0 1 2 .. 7
    works on   0               1, a little 0   0             16 devices named, 3 used: 0 and 1 of one node,
    node       0               0               1             0 of another
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.trace import schema

Row = Mapping[str, Any]
Ids = list[dict[int, int]]
"""For each trace, the common number of each of its own devices."""

ASSUMED = (
    "The traces state no unique ids of their devices. Those of one number are taken for one device, unless two ranks "
    "do most of their work on that number: {} devices in all."
)


@dataclass(frozen=True, slots=True)
class Listed:
    """The devices of one trace.

    Args:
        rows: Its table ``devices``.
        mains: For each of its processes, the device of most of its work, as a number of this trace.
        ranks: Rank of each process, where known.
        used: Devices that any event names.
        host: Name of the machine, if the trace keeps it.
    """

    rows: Sequence[Row]
    mains: Mapping[int, int]
    ranks: Mapping[int, int | None]
    used: frozenset[int]
    host: str | None

    @classmethod
    def of(
        cls, part: Mapping[str, pa.Table], devices: Sequence[Row], processes: Sequence[Row], host: str | None
    ) -> Listed:
        """Return the devices of a trace from its tables."""
        ranks = {row["process_id"]: row["rank"] for row in processes}
        used = {
            device
            for name, table in part.items()
            if name != "devices" and "device_id" in table.column_names
            for device in pc.unique(table["device_id"]).to_pylist()
        }
        return cls(devices, main_devices(part), ranks, frozenset(used - {None}), host)


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices under common numbers.

    Args:
        rows: Rows of table ``devices``.
        ids: For each trace, the common number of each of its devices.
        assumed: True if the identity of working devices is a guess.
    """

    rows: list[dict[str, Any]]
    ids: Ids
    assumed: bool


def unify_devices(traces: Sequence[Listed], order: Sequence[int]) -> Devices:
    """Number the devices of several traces, in ``order`` of the traces, idle devices last."""
    nodes = _nodes(traces, order)
    ids: Ids = [{} for _ in traces]
    rows: list[dict[str, Any]] = []
    by_id: dict[str, int] = {}
    by_place: dict[tuple[Any, ...], int] = {}
    listed = [(index, row, place) for index in order for row, place in _placed(traces[index].rows)]
    working: defaultdict[int, set[int]] = defaultdict(set)  # for devices without a unique id: traces that work on them
    for works in (True, False):
        for index, row, (occurrence, key) in listed:
            if (row["device_id"] in traces[index].used) != works:
                continue
            unique, place = identifier(row), (nodes[index, occurrence], *key)
            known = by_id.get(unique) if unique else by_place.get(place)
            if known is None:
                known = len(rows)
                rows.append({**row, "device_id": known})
                by_place.setdefault(place, known)
                if unique:
                    by_id[unique] = known
            if works and not unique:
                working[known].add(index)
            ids[index][row["device_id"]] = known
    guessed = len(set(nodes.values())) > 1 or any(len(users) > 1 for users in working.values())
    return Devices(rows, ids, bool(working) and guessed and not _hosts(traces))


def identifier(row: Row) -> str:
    """Return the unique id, which some tools write with a prefix; empty if unknown."""
    return (row.get("uuid") or "").lower().removeprefix("gpu-").replace("-", "")


def main_devices(part: Mapping[str, pa.Table]) -> dict[int, int]:
    """Return, for each process of a trace, the device of most of its work (kernels, copies and fills), by number."""
    counts: Counter[tuple[int, int]] = Counter()
    for table in (part[name] for name in schema.DEVICE_WORK if name in part):
        groups = table.select(["process_id", "device_id"]).group_by(["process_id", "device_id"])
        for row in groups.aggregate([([], "count_all")]).to_pylist():
            counts[row["process_id"], row["device_id"]] += row["count_all"]
    most = sorted(counts, key=lambda pair: (counts[pair], -pair[1]))
    return dict(most)


def _placed(rows: Iterable[Row]) -> list[tuple[Row, tuple[int, tuple[Any, ...]]]]:
    """Return each device with its number and product, and the count of earlier devices with the same.

    Devices of one trace are different ones: if it was combined of several, their nodes were distinguished there.
    """
    seen: Counter[tuple[Any, ...]] = Counter()
    placed = []
    for row in rows:
        key = row["kind"], row["ordinal"], row["name"]
        placed.append((row, (seen[key], key)))
        seen[key] += 1
    return placed


Part = tuple[int, int]
"""Devices of one node: the trace, and the place among its devices of the same number."""


def _nodes(traces: Sequence[Listed], order: Sequence[int]) -> dict[Part, int]:
    """Return the node of each part of the traces' devices."""
    users: dict[Part, list[tuple[int | None, Any]]] = {}  # rank and number of the main device of each process
    for index in order:
        trace, parts = traces[index], {}
        for row, (occurrence, _) in _placed(trace.rows):
            users.setdefault((index, occurrence), [])
            parts[row["device_id"]] = (index, occurrence), row["ordinal"]
        for process, device in trace.mains.items():
            if device in parts:
                part, ordinal = parts[device]
                users[part].append((trace.ranks.get(process), ordinal))
    by_rank = None if _hosts(traces) else _nodes_by_rank(users, {len(trace.rows) for trace in traces if trace.rows})
    return _nodes_by_number(users, [trace.host for trace in traces]) if by_rank is None else by_rank


def _hosts(traces: Iterable[Listed]) -> set[str]:
    """Return names of machines, if all of the traces keep theirs."""
    hosts = [trace.host for trace in traces]
    return {host for host in hosts if host} if all(hosts) else set()


def _nodes_by_rank(users: Mapping[Part, Sequence[tuple[int | None, Any]]], sizes: set[int]) -> dict[Part, int] | None:
    """Return nodes of as many ranks as each trace lists devices, if every rank works on the device of its number."""
    size = min(sizes, default=0)
    if len(sizes) > 1 or size < 2:
        return None
    nodes: dict[Part, int] = {}
    for part, pairs in users.items():
        places = {rank // size if rank is not None and rank % size == ordinal else None for rank, ordinal in pairs}
        if len(places) != 1 or None in places:
            return None
        nodes[part] = places.pop() or 0
    return nodes


def _nodes_by_number(
    users: Mapping[Part, Sequence[tuple[int | None, Any]]], hosts: Sequence[str | None]
) -> dict[Part, int]:
    """Return the first node of the same host on which no other process uses the same number as its main device."""
    taken: list[tuple[str | None, set[Any]]] = []
    nodes: dict[Part, int] = {}
    for part, pairs in users.items():
        host, mains = hosts[part[0]], {ordinal for _, ordinal in pairs}
        free = (place for place, (other, theirs) in enumerate(taken) if other == host and not mains & theirs)
        nodes[part] = next(free, len(taken))
        if nodes[part] == len(taken):
            taken.append((host, set()))
        taken[nodes[part]][1].update(mains)
    return nodes
