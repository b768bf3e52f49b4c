"""Surrogate ids: processes, threads and devices of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.events.owners import compute_capability, identity_tables, numbered
from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.xplane.decode.raw import Array, Line, Plane, Value
from traceviz.parsers.xplane.hosts import Host, Role, ordinal

_NVTX_LINE = re.compile(r"^Host Threads/(?P<tid>\d{1,18})/NVTX$")
_OF_SUBPROCESS = re.compile(r" \[\d+\]$")
_WITH_ID = re.compile(r"^(?P<name>.+)/-?\d+$", re.DOTALL)

Rows = list[dict[str, Any]]
PlaneKey = tuple[int, int]
"""Process id and position of a plane."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Processes, threads and devices of a run.

    Args:
        tables: The tables ``processes``, ``threads`` and ``devices``.
        thread_ids: For each host plane, the thread id of each of its lines (int32).
        device_ids: For each device plane, its device id.
    """

    tables: Mapping[str, pa.Table]
    thread_ids: dict[PlaneKey, Array]
    device_ids: dict[PlaneKey, int]


def identify_all(hosts: Sequence[Host], notes: Notes, *, keep_private: bool) -> Identity:
    """Number the processes, threads and devices of ``hosts``, in sorted order."""
    threads, thread_ids = _threads(hosts)
    devices, device_ids = _devices(hosts)
    processes = []
    for host in hosts:  # one process per host, with the host's number
        # The planes state its id; those of subprocesses, ``/host:CPU [77]``, state another
        own = (plane for plane in host.space.planes if not _OF_SUBPROCESS.search(plane.name))
        stated = (plane.properties.get("process_id") for plane in own)
        pid = next((pid for pid in stated if isinstance(pid, int) and 0 <= pid < 2**63), None)
        name, rank = host.name if keep_private else None, host.process_id if len(hosts) > 1 else None
        processes.append({"pid": pid, "name": name, "rank": rank})
    return Identity(identity_tables(processes, threads, devices, notes), thread_ids, device_ids)


def is_nvtx(line: Line) -> bool:
    """Return whether ``line`` holds the NVTX ranges of a thread."""
    return bool(_NVTX_LINE.match(line.name))


def _threads(hosts: Sequence[Host]) -> tuple[Rows, dict[PlaneKey, Array]]:
    """Return threads: lines with the same id are one; NVTX ranges belong to the thread that their line names."""
    names: dict[tuple[int, int], str] = {}
    keys: dict[PlaneKey, list[tuple[int, int]]] = {}
    for host in hosts:
        for place, plane in host.planes(Role.HOST):
            keys[host.process_id, place] = []
            for line in plane.lines:
                nvtx, numbered_name = _NVTX_LINE.match(line.name), _WITH_ID.match(line.name)
                key = host.process_id, int(nvtx["tid"]) if nvtx else line.id
                keys[host.process_id, place].append(key)
                if line.events.stop > line.events.start and (key not in names or not nvtx):
                    # The profiler appends the number of the thread to its name
                    own_name = "" if nvtx else numbered_name["name"] if numbered_name else line.name
                    names[key] = names.get(key) or own_name
    order = numbered(names)
    rows: Rows = [{"process_id": process, "tid": tid, "name": names[process, tid] or None} for process, tid in order]
    ids = {plane: np.array([order.get(key, -1) for key in lines], dtype=np.int32) for plane, lines in keys.items()}
    return rows, ids


def _devices(hosts: Sequence[Host]) -> tuple[Rows, dict[PlaneKey, int]]:
    """Return one device per device and host; planes of parts of a device (its SparseCores) share its row."""
    keys: dict[PlaneKey, tuple[int, str, int]] = {}
    planes: dict[tuple[int, str, int], list[Plane]] = {}
    for host in hosts:
        for place, plane in host.planes(Role.GPU, Role.TPU):
            key = keys[host.process_id, place] = host.process_id, plane.name.split(":")[1].lower(), ordinal(plane)
            planes.setdefault(key, []).append(plane)
    order = numbered(planes)
    return [_device_row(key, planes[key]) for key in order], {place: order[key] for place, key in keys.items()}


def _device_row(key: tuple[int, str, int], planes: Sequence[Plane]) -> dict[str, Any]:
    facts: dict[str, Value] = {}
    for plane in planes:
        facts = {**plane.properties, **facts}
    vendor = facts.get("device_vendor")
    major, minor = facts.get("compute_cap_major"), facts.get("compute_cap_minor")
    capability = compute_capability(major, minor) if isinstance(major, int) and isinstance(minor, int) else None
    name = facts.get("gpu_device_name") or facts.get("device_type_string")
    bandwidth = _count(facts.get("memory_bandwidth"), 1) or _count(facts.get("peak_hbm_bw_gigabytes_per_second"), 10**9)
    return {
        "kind": key[1],
        "ordinal": key[2],
        "name": name if isinstance(name, str) else f"{vendor} {key[1].upper()}" if isinstance(vendor, str) else None,
        "compute_capability": capability if vendor in (None, "Nvidia") else None,
        "sm_count": _count(facts.get("core_count"), 1, 2**31),
        "memory_bytes": _count(facts.get("memory_size"), 1),
        "memory_bandwidth": bandwidth,
        "clock_hz": _count(facts.get("clock_rate"), 1000),  # stated in kHz
    }


def _count(value: Value | None, factor: int, bound: int = 2**63) -> int | None:
    """Return a positive number in the unit of the contract; zero stands for "not known"."""
    return round(value * factor) if isinstance(value, int | float) and 0 < value * factor < bound else None
