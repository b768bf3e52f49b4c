"""Recordings of several processes that a tool merged into one file.

Each process counts its correlation ids, external ids and streams for itself, so work and calls of a merged file match
only within one recording. Tools rename processes and devices (``[TP01] 4243``, ``[TP01] 1``), or add a number to them,
or leave them unchanged::

    pid          [TP00] 4242   [TP00] 0   [TP01] 4243   [TP01] 1
    recording    0             0          1             1
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceviz.parsers.kineto.categories import DEVICE_ROLES, ON_DEVICES, Role
from traceviz.parsers.kineto.columns import Words, numbers
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.shared.arrays.operations import NONE, Array, counted, inverted, looked_up, positions, take
from traceviz.parsers.shared.launchers import Numbered, is_ambiguous, launchers

_NUMBERS = re.compile(r"(\d+)")
_MARKS = " \t_-:.,/|#"
"""Characters between a name and a number."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Recording of one process.

    Args:
        name: Its name in the file.
        events: Its events, on the clock of the file. Processes and devices have their original numbers.
    """

    name: str
    events: Events


@dataclass(frozen=True, slots=True)
class Labels:
    """Text that a tool put before or after the number of each process and device, by recording; empty for none."""

    words: Sequence[str]
    before: bool = True

    def owner(self, text: str) -> int:
        """Return the recording that ``text`` names, :data:`NONE` if it names none."""
        fits = text.startswith if self.before else text.endswith
        fitting = [word for word in self.words if word and fits(word)]
        return self.words.index(max(fitting, key=len)) if fitting else NONE

    def without(self, text: str, recording: int) -> str:
        """Return ``text`` without the label of ``recording``."""
        word = self.words[recording]
        return text.removeprefix(word) if self.before else text.removesuffix(word)


def split_recordings(events: Events) -> Sequence[Recording]:
    """Return the recordings that the file holds, in the order of their names; none if it is a single one.

    A file of several processes is one recording unless ids repeat between them, or devices have other names than their
    numbers. Each recording has operations of the host.
    """
    rows = events.rows(Role.API)
    if counted(take(events.pid.codes, rows) + 1, len(events.pid.words) + 1)[1:].astype(bool).sum() <= 1:
        return ()
    _, calls = _identify_rows(events, rows)
    callers = np.unique(calls.group[calls.group >= 0])
    if callers.size <= 1 or not (is_ambiguous(calls) or _is_renamed(events)):
        return ()
    # The firmware of a device also makes calls, but runs no host operations
    if not np.isin(callers, take(events.pid.codes, events.rows(Role.HOST))).all():
        return ()
    texts = sorted((events.pid.words[code] for code in callers.tolist()), key=_natural_key)
    devices = np.unique(take(events.pid.codes, events.rows(*DEVICE_ROLES))).tolist()
    labels = _find_labels(texts, [events.pid.words[code] for code in devices if code >= 0])
    owner = _find_owners(events, {text: index for index, text in enumerate(texts)}, labels, calls)
    names = [word.strip(_MARKS) or f"process {text}" for word, text in zip(labels.words, texts, strict=True)]
    return [
        Recording(name, _select_recording(events, positions(owner == index), labels, index))
        for index, name in enumerate(names)
    ]


def _identify_rows(events: Events, rows: Array) -> tuple[Array, Numbered]:
    """Return those of ``rows`` with a correlation id, and their ids and starts, grouped by the code of their pid."""
    stated = numbers(events.frame, "correlation", rows)
    known = stated.known & (stated.value > 0)
    rows = rows[known]
    group = take(events.pid.codes, rows).astype(np.int64)
    return rows, Numbered(group, stated.value[known], take(events.start, rows))


def _is_renamed(events: Events) -> bool:
    """Return whether device work is under another name than the number of its device, as profilers write it."""
    rows = events.rows(*DEVICE_ROLES)
    device = numbers(events.frame, "device", rows)
    names, codes = events.pid.words, take(events.pid.codes, rows)
    pairs = np.unique(np.stack([device.value, codes.astype(np.int64)])[:, device.known & (codes >= 0)], axis=1)
    return any(names[code] != str(number) for number, code in pairs.T.tolist())


def _natural_key(text: str) -> list[tuple[int, str]]:
    """Return a sort key of a text that compares numbers by value."""
    parts = ((part.lstrip("0"), part) for part in _NUMBERS.split(text))
    return [(len(digits), digits) if part.isdecimal() else (NONE, part) for digits, part in parts]


def _find_labels(callers: Sequence[str], devices: Sequence[str]) -> Labels:
    """Return the part of each calling process's name around its number, if device names have these parts, too."""
    parts = [_NUMBERS.split(text) for text in callers]
    styles = (
        Labels(["".join(part[:-2]) for part in parts]),
        Labels(["".join(part[2:]) for part in parts], before=False),
    )
    for labels in styles:
        distinct = all(labels.words) and len(set(labels.words)) == len(callers)
        if distinct and all(labels.owner(device) >= 0 for device in devices):
            return labels
    return Labels([""] * len(callers))


def _find_owners(events: Events, place: Mapping[str, int], labels: Labels, calls: Numbered) -> Array:
    """Return the recording of each event (int32).

    Labels decide. Without them, device work belongs to a process that can have launched it. If there are several, it
    belongs to the process whose events surround it in the file. Work after the events of all processes is inconclusive.

    Args:
        events: The events.
        place: Recording of each calling process, by its name.
        labels: Labels of the recordings.
        calls: Calls with an id, by the code of their pid.
    """
    of_pid = np.array([*(place.get(word, labels.owner(word)) for word in events.pid.words), NONE], np.int32)
    on_device = events.has(*ON_DEVICES)
    owner = np.where(on_device, np.int32(NONE), looked_up(of_pid, events.pid.codes))
    block = _find_blocks(owner, len(place))
    rows = positions(on_device)
    width = len(place) + 1
    key = (take(events.pid.codes, rows).astype(np.int64) + 1) * width + block[rows] + 1
    distinct, queue = np.unique(key, return_inverse=True)
    codes, around = distinct // width - 1, distinct % width - 1
    if (around == block[-1]).all():
        around = np.full(distinct.size, NONE)
    linked, work = _identify_rows(events, rows)
    work = replace(work, group=queue[take(inverted(rows, owner.size), linked)])
    launched = launchers(replace(calls, group=take(of_pid, calls.group)), work, len(place), around)
    named = np.array([labels.owner(events.pid.words[code]) if code >= 0 else NONE for code in codes.tolist()])
    of_queue = np.where(named >= 0, named, launched).astype(np.int32)
    owner[rows] = of_queue[queue]
    of_device = np.full(of_pid.size, NONE, np.int32)
    of_device[codes[codes >= 0]] = of_queue[codes >= 0]
    owner = np.where(owner >= 0, owner, looked_up(of_device, events.pid.codes))  # names of devices
    return np.where(owner >= 0, owner, np.maximum(block, 0)).astype(np.int32)


def _find_blocks(owner: Array, recordings: int) -> Array:
    """Return the recording whose block holds each event: tools write one after the other. :data:`NONE` if mixed.

    ::

        events      ? 1 1 ? 1 1 ? 2 2 ? 2      1 and 2: events of calling processes
        recording   1 1 1 1 1 1 1 2 2 2 2
    """
    where = [np.flatnonzero(owner == index) for index in range(recordings)]
    first, last = (np.array([rows[edge] for rows in where]) for edge in (0, -1))
    order = np.argsort(first)
    if (last[order][:-1] > first[order][1:]).any():
        return np.full(owner.size, NONE)
    return order[np.maximum(np.searchsorted(first[order], np.arange(owner.size), side="right") - 1, 0)]


def _select_recording(events: Events, rows: Array, labels: Labels, recording: int) -> Events:
    """Return the events at ``rows``, those of one recording, with their original pids."""
    words = [labels.without(word, recording) for word in events.pid.words]
    codes = take(events.pid.codes, rows).astype(np.int32)
    on_device = take(events.has(*ON_DEVICES), rows)
    device = numbers(events.frame, "device", rows)
    for code in np.unique(codes[on_device]).tolist():
        of_name = on_device & (codes == code)
        stated = np.unique(device.value[of_name & device.known])
        if stated.size == 1:  # events without a device are on that of the others of its name
            codes[of_name] = len(words)
            words.append(str(stated[0]))
    never_ended = take(inverted(rows, events.role.size), events.never_ended)
    return replace(
        events,
        frame=events.frame[rows],
        role=take(events.role, rows),
        category=take(events.category, rows),
        name=events.name.at(rows),
        label=events.label.at(rows),
        pid=Words(codes, words),
        tid=events.tid.at(rows),
        start=take(events.start, rows),
        dur=take(events.dur, rows),
        never_ended=never_ended[never_ended >= 0],
    )
