"""Surrogate ids of a Chrome-format trace: its processes, threads and devices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.kineto.categories import CODES, ON_DEVICES, ON_THREADS, Role
from traceviz.parsers.kineto.columns import Words, first_known, numbers
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.shared.arrays.operations import NONE, Array, counted, looked_up, take, used
from traceviz.parsers.shared.events.columns import Numbers
from traceviz.parsers.shared.events.owners import compute_capability, identity_tables, numbered
from traceviz.parsers.shared.notes import Notes

MOST_PAIRS = 1 << 22
"""Maximum number of pairs of processes and threads that are counted in a table; more are sorted."""

_MOST_DEVICES = 1 << 15
"""Device ids have 16 bits."""

_WHOLE = re.compile(r"-?\d{1,18}")
_THREAD_NAME = re.compile(r"thread -?\d+ \((?P<name>.*)\)", re.DOTALL)
_STREAM = re.compile(r"(?:stream )?(?P<number>\d{1,18})")
_AMD = re.compile(r"\b(AMD|Radeon|Instinct|MI\d{2,3}\w?|gfx\d+)\b")

_MARKERS = frozenset({CODES["step"], CODES["annotation"], CODES["python"]})
"""Categories of events that only annotate a program's work."""
_IS_MARKER = np.array([code in _MARKERS for code in (*range(len(CODES)), NONE)])


@dataclass(frozen=True, slots=True)
class Identity:
    """Processes, threads and devices of a capture.

    Args:
        tables: The tables ``processes``, ``threads`` and ``devices``.
        thread_id: Thread of each event (int32), :data:`NONE` if it ran on none.
        process_of: Process of each thread (int32).
        program: The process with most events, which owns device work without a known call.
        device_of: Device id by ordinal.
    """

    tables: Mapping[str, pa.Table]
    thread_id: Array
    process_of: Array
    program: int
    device_of: Mapping[int, int]

    def device_id(self, ordinals: Numbers) -> Array:
        """Return the device of each ordinal (int32), :data:`NONE` if unknown."""
        numbers = sorted(self.device_of)
        place = _positions(ordinals.value, np.array(numbers, dtype=np.int64))
        ids = looked_up(np.array([*(self.device_of[number] for number in numbers), NONE], dtype=np.int32), place)
        return np.where(ordinals.known, ids, np.int32(NONE))


@dataclass(frozen=True, slots=True)
class _Pair:
    """One process and thread as the file writes them, the number of events, and whether some are real work."""

    pid: str
    tid: str
    events: int
    works: bool


def identify_all(
    events: Events, header: Mapping[str, Any], notes: Notes, *, rank: int | None, one_program: bool
) -> Identity:
    """Number the processes, threads and devices of a capture, in sorted order.

    Args:
        events: Its events.
        header: Members of the file next to the events.
        notes: Receives notes on doubtful facts.
        rank: Rank of the program if the file does not state it.
        one_program: True if the profiler records a single program. Then annotations under another process id belong to
            it.
    """
    info = header.get("distributedInfo")
    stated_rank = _count(info.get("rank"), least=0) if isinstance(info, dict) else None
    stated_rank = rank if stated_rank is None else stated_rank
    codes, pairs = _list_pairs(events)
    process_names, thread_names = _read_names(events)
    home = _assign_processes(pairs, notes) if one_program else {pair.pid: pair.pid for pair in pairs}
    process_rows, process_ids = _process_rows(pairs, home, process_names, stated_rank)
    thread_rows, thread_ids = _thread_rows(pairs, home, process_ids, thread_names)
    device_rows, device_of = _device_rows(events, header, notes)
    by_pair = np.array([*(thread_ids[pair.pid, pair.tid] for pair in pairs), NONE], dtype=np.int32)
    program = _find_busiest(pairs, home)
    return Identity(
        identity_tables(process_rows, thread_rows, device_rows, notes),
        looked_up(by_pair, codes),
        np.array([row["process_id"] for row in thread_rows], dtype=np.int32),
        process_ids[program] if program is not None else 0,
        device_of,
    )


def _list_pairs(events: Events) -> tuple[Array, list[_Pair]]:
    """Return the position of each event's process and thread (int32), and the list of these pairs."""
    rows = events.rows(*ON_THREADS)
    width = len(events.tid.words) + 1
    key = _key(events, rows, width)
    size = (len(events.pid.words) + 1) * width
    if size > MOST_PAIRS:
        distinct, place = np.unique(key, return_inverse=True)
    else:
        occurs = used(key, size)
        distinct = np.flatnonzero(occurs)
        place = looked_up(np.cumsum(occurs, dtype=np.int32) - np.int32(1), key)
    codes = np.full(events.role.size, NONE, np.int32)
    codes[rows] = place
    overhead = events.rows(Role.OVERHEAD)
    codes[overhead] = _positions(_key(events, overhead, width), distinct)
    role = take(events.role, rows)
    works = (role == Role.API) | ~looked_up(_IS_MARKER, take(events.category, rows))
    works &= role != Role.MEMORY
    counts, working = counted(place, distinct.size), counted(place, distinct.size, works) > 0
    columns = (distinct // width - 1, distinct % width - 1, counts, working)
    return codes, [
        _Pair(_word(events.pid, pid), _word(events.tid, tid), count, active)
        for pid, tid, count, active in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _key(events: Events, rows: Array, width: int) -> Array:
    """Return a number for the process and thread of each of ``rows``; each process has ``width`` numbers."""
    narrow = (len(events.pid.words) + 1) * width < 2**31
    key: npt.NDArray[Any] = take(events.pid.codes, rows).astype(np.int32 if narrow else np.int64)
    np.add(key, 1, out=key)  # in place: there is one number per event
    np.multiply(key, width, out=key)
    np.add(key, take(events.tid.codes, rows), out=key)
    np.add(key, 1, out=key)
    return key


def _positions(key: Array, among: Array) -> Array:
    """Return the position of each key among the sorted ones (int32), :data:`NONE` if absent."""
    if not among.size:
        return np.full(key.size, NONE, np.int32)
    place = np.searchsorted(among, key).clip(max=among.size - 1)
    return np.where(among[place] == key, place, NONE).astype(np.int32)


def _word(words: Words, code: int) -> str:
    return words.words[code] if code >= 0 else ""


_NAMING = frozenset({"process_name", "thread_name"})
"""Events that only give names."""


def _read_names(events: Events) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Return the names that the file gives to processes (by pid) and threads (by pid and tid)."""
    if "label" not in events.frame.columns:
        return {}, {}
    rows = np.flatnonzero(events.frame["label"].is_not_null().to_numpy()).astype(np.int32)
    rows = rows[events.name.at(rows).each(_NAMING.__contains__, False, np.bool_)]  # parts of graphs have names, too
    columns = (events.name.at(rows), events.pid.at(rows), events.tid.at(rows), Words.of(events.frame["label"][rows]))
    processes: dict[str, str] = {}
    threads: dict[tuple[str, str], str] = {}
    texts = ([_word(words, code) for code in words.codes.tolist()] for words in columns)
    for name, pid, tid, label in zip(*texts, strict=True):
        if name == "process_name":
            processes[pid] = label
        elif name == "thread_name":
            match = _THREAD_NAME.fullmatch(label.strip())
            threads[pid, tid] = match["name"] if match else label.strip()
    return processes, threads


def _assign_processes(pairs: Sequence[_Pair], notes: Notes) -> dict[str, str]:
    """Return the pid of the process that each pid belongs to.

    Frames that were open before the profiler started come with pid 0, and a step marker may carry the pid that the
    program had elsewhere (in another namespace): a pid without any work is no process.
    """
    working = {pair.pid for pair in pairs if pair.works}
    idle = {pair.pid for pair in pairs} - working
    if not working or not idle:
        return {pair.pid: pair.pid for pair in pairs}
    program = _find_busiest([pair for pair in pairs if pair.works], {pid: pid for pid in working})
    assert program is not None
    moved = sum(pair.events for pair in pairs if pair.pid in idle)
    notes.add("processes-joined", "info", JOINED.format(", ".join(sorted(idle)), program), moved)
    return {pair.pid: program if pair.pid in idle else pair.pid for pair in pairs}


JOINED = (
    "Annotations or Python frames under process id {}, which does nothing else, are taken for those of process {}: "
    "the profiler records one program."
)


def _find_busiest(pairs: Sequence[_Pair], home: Mapping[str, str]) -> str | None:
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[home[pair.pid]] = counts.get(home[pair.pid], 0) + pair.events
    return max(sorted(counts), key=counts.__getitem__, default=None)


def without_rank(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``header`` without the rank: in a merged file it applies to one recording only."""
    info = header.get("distributedInfo")
    kept = {key: value for key, value in info.items() if key != "rank"} if isinstance(info, dict) else info
    return {**header, "distributedInfo": kept}


def _process_rows(
    pairs: Sequence[_Pair], home: Mapping[str, str], stated_names: Mapping[str, str], rank: int | None
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return rows of table ``processes``, and their ids by pid. Device work without host events has a process, too."""
    ids = numbered((home[pair.pid] for pair in pairs), _natural_key)
    names = {pid: stated_names.get(pid) or _as_name(pid) for pid in ids or [""]}
    return [{"pid": _parse_whole(pid), "name": name, "rank": rank} for pid, name in names.items()], ids


def _as_name(text: str) -> str | None:
    """Return a pid or tid that is not a number as a name."""
    return text if text and _parse_whole(text) is None else None


def _thread_rows(
    pairs: Sequence[_Pair],
    home: Mapping[str, str],
    process_ids: Mapping[str, int],
    stated_names: Mapping[tuple[str, str], str],
) -> tuple[list[dict[str, Any]], dict[tuple[str, str], int]]:
    """Return rows of table ``threads``, and their ids by pid and tid. Threads without a number get free numbers."""
    keys: dict[tuple[int, str], list[_Pair]] = {}
    for pair in pairs:
        keys.setdefault((process_ids[home[pair.pid]], pair.tid), []).append(pair)
    order = numbered(keys, lambda key: (key[0], _natural_key(key[1])))
    taken = {(process, _parse_whole(tid)) for process, tid in order}
    rows: list[dict[str, Any]] = []
    ids: dict[tuple[str, str], int] = {}
    free = 0
    for (process, tid), number in order.items():
        whole = _parse_whole(tid)
        if whole is None:
            while (process, free) in taken:
                free += 1
            whole, free = free, free + 1
        name = next((label for pair in keys[process, tid] if (label := stated_names.get((pair.pid, tid)))), None)
        rows.append({"process_id": process, "tid": whole, "name": name or _as_name(tid)})
        ids.update({(pair.pid, tid): number for pair in keys[process, tid]})
    return rows, ids


def _parse_whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


def _natural_key(text: str) -> tuple[bool, int, str]:
    whole = _parse_whole(text)
    return whole is None, whole or 0, text


def stream_numbers(events: Events, rows: Array) -> Numbers:
    """Return the streams of device events: the argument, else the number in the thread id, ``7`` or ``stream 7``.

    Work that is shown on another stream (``graph_lanes``) also states its own.
    """
    shown_elsewhere = numbers(events.frame, "hardware_stream", rows)
    stated = first_known(shown_elsewhere, numbers(events.frame, "stream", rows))

    def stream_number(tid: str) -> int:
        match = _STREAM.fullmatch(tid)
        return int(match["number"]) if match else NONE

    shown = events.tid.at(rows).each(stream_number, NONE, np.int64)
    return Numbers(np.where(stated.known, stated.value, shown), stated.known | (shown >= 0))


def ordinals(events: Events, rows: Array) -> Numbers:
    """Return the ordinals of devices of device events: the argument, else that of their process id, else this id."""
    stated = numbers(events.frame, "device", rows)
    shown = events.pid.at(rows).each(lambda pid: NONE if _parse_whole(pid) is None else int(pid), NONE, np.int64)
    if not stated.known.all():  # tools that merge files give devices process ids of their own
        work = events.rows(*ON_DEVICES)
        device = numbers(events.frame, "device", work)
        of_pid = np.full(len(events.pid.words) + 1, NONE, np.int64)
        of_pid[events.pid.codes[work[device.known]]] = device.value[device.known]
        known = looked_up(of_pid, events.pid.codes[rows])
        shown = np.where(known >= 0, known, shown)
    value = np.where(stated.known, stated.value, shown)
    return Numbers(value, (value >= 0) & (value < 2**31))


def _device_rows(
    events: Events, header: Mapping[str, Any], notes: Notes
) -> tuple[list[dict[str, Any]], dict[int, int]]:
    """Return rows of table ``devices``, from the header's list and from device work, and their ids by ordinal."""
    worked = ordinals(events, events.rows(*ON_DEVICES))
    working = np.unique(worked.value[worked.known]).tolist()
    entries = header.get("deviceProperties")
    listed = {
        entry["id"]: entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and _count(entry.get("id"), least=0) is not None
    }
    meant = _match_devices(working, listed, notes)
    device_of = numbered(sorted({*listed, *working}.difference(meant))[:_MOST_DEVICES])
    rows = [_device_row(ordinal, listed.get(ordinal, {})) for ordinal in device_of]
    return rows, device_of | {number: device_of[ordinal] for number, ordinal in meant.items() if ordinal in device_of}


def _match_devices(working: Sequence[int], listed: Mapping[int, object], notes: Notes) -> dict[int, int]:
    """Return the ``listed`` device for each working number that the list does not contain.

    ROCm lists devices as the program counts them, from 0, but its work carries numbers of agents, including processors.
    So such a number is not a further device, but one of the listed devices that seem idle, in order::

        listed     0  1              0
        working          2  3                9
        devices    0  1              0
    """
    unknown = [number for number in working if number not in listed]
    idle = [number for number in sorted(listed) if number not in working]
    meant = dict(zip(unknown, idle, strict=False))
    if meant:
        pairs = ", ".join(f"{number} is device {ordinal}" for number, ordinal in meant.items())
        notes.add("devices-matched", "info", MATCHED.format(pairs), len(meant))
    return meant


MATCHED = "Device work carries numbers that the list of devices does not know, as on ROCm: {}."


def _device_row(ordinal: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    name = facts.get("name")
    major, minor = _count(facts.get("computeMajor")), _count(facts.get("computeMinor"), least=0)
    # AMD's numbers are not CUDA's compute capability: its devices run 64 threads in a warp
    is_amd = facts.get("warpSize") == 64 or _AMD.search(str(facts.get("name", "")))
    return {
        "kind": "gpu",
        "ordinal": ordinal,
        "name": name if isinstance(name, str) and name else None,
        "compute_capability": None if is_amd else compute_capability(major, minor),
        "sm_count": _count(facts.get("numSms")),
        "max_threads_per_sm": _count(facts.get("maxThreadsPerMultiprocessor")),
        "memory_bytes": _count(facts.get("totalGlobalMem"), most=2**63 - 1),
    }


def _count(value: Any, *, least: int = 1, most: int = 2**31 - 1) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most else None
