"""Steps that the trace declares: marked by the program, found by the profiler, or recorded by a TPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from traceviz.parsers.shared.notes import Notes
from traceviz.parsers.xplane.device import Device, EventKind
from traceviz.parsers.xplane.groups.groups import Group
from traceviz.parsers.xplane.host import Threads
from traceviz.parsers.xplane.hosts import Host, Role, role
from traceviz.trace.rows_to_table import rows_to_table

Row = dict[str, Any]

_NUMBER = re.compile(r"(?<![\s_#])[\s_#]*+(?P<step>\d{1,18})$")
"""The number of a step at the end of a name, and its separator from the marker."""
_WORK = (EventKind.KERNEL, EventKind.COPY, EventKind.FILL)


def steps(hosts: Sequence[Host], threads: Sequence[Threads], devices: Sequence[Device], notes: Notes) -> pa.Table:
    """Return table ``steps``.

    For each host, these are the groups that the program marked. If it marked none, they are the groups that the
    profiler found. Such a group lasts as long as its work on each GPU, because replicas may run far apart. If no device
    did any work, it lasts as long as its first event. TPUs also record their own steps.
    """
    rows: list[Row] = []
    for host in hosts:
        own_threads = [part for part in threads if part.host is host]
        own_devices = [device for device in devices if device.host is host]
        marked = list(_marked(host, own_threads))
        rows += marked or list(_unmarked(host, own_threads, own_devices))
        rows += [row for device in own_devices for row in _recorded(device)]
    return rows_to_table("steps", rows, notes)


def _marked(host: Host, threads: Sequence[Threads]) -> Iterator[Row]:
    """Yield the longest marker of each group that the program marked."""
    explicit = {group.id: group for group in _groups(host) if group.explicit}
    longest: dict[int, tuple[int, int, Threads, int]] = {}
    for part in threads:
        assert host.groups is not None
        of_plane = host.groups.planes[part.place]
        markers = np.flatnonzero(of_plane.marker & (of_plane.group_id >= 0))
        ids, (starts, durations) = of_plane.group_id[markers].tolist(), part.times(markers)
        rows = zip(ids, markers.tolist(), starts.tolist(), durations.tolist(), strict=True)
        for group_id, event, start, duration in rows:
            if group_id in explicit and duration > longest.get(group_id, (-1,))[0]:
                longest[group_id] = (duration, start, part, event)
    for group_id, (duration, start, part, event) in longest.items():
        yield _on_host(explicit[group_id], part, event, start, duration)


def _unmarked(host: Host, threads: Sequence[Threads], devices: Sequence[Device]) -> Iterator[Row]:
    """Yield groups that the program did not mark. The profiler lists every GPU of the machine, used or not."""
    if any(len(device.plane.events) for device in devices):
        spans = _device_spans([device for device in devices if role(device.plane) is Role.GPU])
        for group in _groups(host):
            for device_id, (start, end) in spans.get(group.id, {}).items():
                yield {**_row(host, group, start, end - start), "device_id": device_id}
        return
    by_place = {part.place: part for part in threads}
    for group in _groups(host):
        roots = [(by_place[root.plane], root.event) for root in group.roots if root.plane in by_place]
        if roots:
            times = [part.times(np.array([event])) for part, event in roots]
            longest = max(range(len(roots)), key=lambda root: int(times[root].dur_ns[0]))
            starts, durations = times[longest]
            yield _on_host(group, *roots[longest], int(starts[0]), int(durations[0]))


def _groups(host: Host) -> Sequence[Group]:
    return host.groups.groups if host.groups is not None else ()


def _device_spans(devices: Sequence[Device]) -> Mapping[int, Mapping[int, tuple[int, int]]]:
    """Return first start and last end of each group's work on each device, by its id in the file and the device."""
    spans: dict[int, dict[int, tuple[int, int]]] = {}
    for device in devices:
        rows = device.rows(*_WORK)
        assert device.host.groups is not None
        ids = device.host.groups.planes[device.place].group_id[rows]
        start, duration = device.times(rows)
        end = start + duration
        for group_id in np.unique(ids[ids >= 0]).tolist():
            mine = ids == group_id
            spans.setdefault(group_id, {})[device.device_id] = int(start[mine].min()), int(end[mine].max())
    return spans


def _on_host(group: Group, part: Threads, event: int, start: int, duration: int) -> Row:
    row = _row(part.host, group, start, duration)
    return {**row, "thread_id": int(part.thread_ids[part.plane.events.line[event]])}


def _row(host: Host, group: Group, start: int, duration: int) -> Row:
    marker, number = _split(group.name)
    return {
        "start_ns": start,
        "dur_ns": duration,
        "process_id": host.process_id,
        "step": group.step if group.step is not None else number,
        "name": group.name,
        "marker": group.roots[0].name if group.roots else marker or group.name,
        "group_id": group.id + host.first_group,
    }


def _split(name: str) -> tuple[str, int | None]:
    """Return marker and number of a step: ``train 3`` is step 3 of the marker ``train``."""
    match = _NUMBER.search(name)
    return (name[: match.start()], int(match["step"])) if match else (name, None)


def _recorded(device: Device) -> Iterator[Row]:
    """Yield the steps on the line of that name of a TPU; other devices have none."""
    rows = device.rows(EventKind.STEP)
    groups = device.host.group_id(device.place, rows).tolist()
    times = zip(*(column.tolist() for column in device.times(rows)), strict=True)
    for event, (start, duration), group_id in zip(rows.tolist(), times, groups, strict=True):
        name = device.plane.names[device.plane.events.name[event]]
        yield {
            "start_ns": start,
            "dur_ns": duration,
            "process_id": device.host.process_id,
            "step": _split(name)[1],
            "name": name,
            "marker": "Steps",
            "device_id": device.device_id,
            "group_id": group_id if group_id >= 0 else None,
        }
