"""Common numbers of the processes, threads and devices that several sources of a run saw.

A process is known by its pid, a thread by the id that the system gave it, a device by its unique id, else by its number
and name. XPlane captures know neither pids nor ids of threads: their pid comes from the collector. Their threads are
found by the profiler's hashes of Python's ids, else by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from traceviz.parsers.ranks.devices import identifier, main_devices
from traceviz.parsers.ranks.identity import Identity, Member, Numbers, Rows, rows_of, run_row
from traceviz.parsers.run.layout import STACKS_FORMAT
from traceviz.parsers.run.sources import Source, is_tracing
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.events.owners import Key, by_trace, numbered, numbered_rows

IDENT = "ident"
"""Additional column of table ``threads`` for merging: Python's id of the thread."""

_MASK = (1 << 64) - 1
_MULTIPLIER = 0xC6A4A7935BD1E995
_SEED = 0xC70F6907
_ID_BYTES = 8


def tracer_ids(ident: int) -> frozenset[int]:
    """Return numbers by which sources other than the system may know the thread with Python's id ``ident``.

    Python's id of a thread is that of the C library (``pthread_self``). TSL, the base of TensorFlow and JAX, numbers
    threads by ``std::hash<std::thread::id>`` of the same id, which is MurmurHash64A in the GNU C++ library
    (``libstdc++-v3/libsupc++/hash_bytes.cc``); before 2023 by its lower 32 bits.
    """
    word = ident & _MASK  # MurmurHash64A of one word of 64 bits
    mixed = (_shifted(word * _MULTIPLIER & _MASK) * _MULTIPLIER) & _MASK
    state = ((_SEED ^ _ID_BYTES * _MULTIPLIER & _MASK) ^ mixed) * _MULTIPLIER & _MASK
    hashed = _shifted(_shifted(state) * _MULTIPLIER & _MASK)
    low = ident & 0xFFFFFFFF
    return frozenset({ident, _signed(hashed, 64), hashed & (_MASK >> 1), low, _signed(low, 32)})


def _shifted(word: int) -> int:
    return word ^ (word >> 47)


def _signed(word: int, bits: int) -> int:
    return word - (1 << bits) if word >> (bits - 1) else word


_OPAQUE_THREADS = ("xplane", "tf-trace")
"""Formats with these prefixes have their own thread ids, not the system's."""
_PYTHONS_THREADS = "py-spy"
"""The collector that knows threads only by Python's ids."""
_NAMING = STACKS_FORMAT
"""Format whose threads have the program's names, which are more specific than the system's."""


def identify_run(sources: Sequence[Source]) -> Identity:
    """Number the processes, threads and devices of ``sources``, which are sorted by trust, the most trusted first."""
    processes, process_ids = _processes(sources)
    threads, thread_ids = _threads(sources, processes, process_ids)
    devices, device_ids = _devices(sources)
    numbers = (process_ids, thread_ids, device_ids)
    members = tuple(Member.of(place, source.name, source.collector, numbers) for place, source in enumerate(sources))
    return Identity(members, processes, threads, devices, [])


def _numbered(
    table: str,
    known: Mapping[Key, Mapping[str, Any]],
    keys: Mapping[tuple[int, int], Key],
    sources: int,
    order: Callable[[Key], Any] | None = None,
) -> tuple[Rows, Numbers]:
    """Return rows of a table, and the number of each in each source.

    Args:
        table: Its name.
        known: Facts about each thing, by its key.
        keys: Key of the thing behind each source's own number.
        sources: The number of sources.
        order: Sort key of things, if not their keys.
    """
    numbers = numbered(known, order)
    rows = numbered_rows(table, (known[key] for key in numbers))
    return rows, by_trace({own: numbers[key] for own, key in keys.items()}, sources)


def _fill_in(known: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Fill in values that ``known`` lacks."""
    known.update({name: value for name, value in row.items() if known.get(name) is None})


# Processes


def _processes(sources: Sequence[Source]) -> tuple[Rows, Numbers]:
    """Return processes in order of rank, then of pid, and the number of each in each source.

    A process without a pid is the process that other sources traced if they traced only one; else another one.
    """
    rows = [rows_of(source.tables, "processes") for source in sources]
    for source, own in zip(sources, rows, strict=True):
        if len(own) == 1:  # the collector states pid and rank of its only process
            _fill_in(own[0], {"pid": source.pid, "rank": source.rank})
    traced = {row["pid"] for source, own in zip(sources, rows, strict=True) if is_tracing(source) for row in own}
    only = next(iter(traced - {None})) if len(traced - {None}) == 1 else None
    processes: dict[Any, dict[str, Any]] = {}
    keys: dict[tuple[int, int], Any] = {}
    for place, own in enumerate(rows):
        for row in own:
            pid = only if row["pid"] is None and len(own) == 1 else row["pid"]
            key = (place, row["process_id"]) if pid is None else pid
            keys[place, row["process_id"]] = key
            _fill_in(processes.setdefault(key, {"pid": pid}), row)

    def place_of(key: Any) -> tuple[Any, ...]:
        row = processes[key]
        return tuple(part for name in ("rank", "pid") for part in (row.get(name) is None, row.get(name) or 0))

    return _numbered("processes", processes, keys, len(sources), place_of)


# Threads


def _threads(sources: Sequence[Source], processes: Rows, process_ids: Numbers) -> tuple[Rows, Numbers]:
    """Return threads in order of process and id, those known only by opaque ids last."""
    threads: dict[tuple[Any, ...], dict[str, Any]] = {}
    keys: dict[tuple[int, int], tuple[Any, ...]] = {}
    formats = [str(run_row(source.tables).get("format")) for source in sources]
    opaque = [
        name.startswith(_OPAQUE_THREADS) or source.collector == _PYTHONS_THREADS
        for name, source in zip(formats, sources, strict=True)
    ]
    given: dict[tuple[Any, ...], str] = {}
    for place in sorted(range(len(sources)), key=lambda place: opaque[place]):
        rows = rows_of(sources[place].tables, "threads")
        for row in rows:
            row["process_id"] = process_ids[place].get(row["process_id"], -1)
        same = _match_opaque_threads(rows, threads, processes, sources[place]) if opaque[place] else {}
        for row in rows:
            own = (row["process_id"], opaque[place], row["tid"], place if opaque[place] else 0)
            key = same.get(row["thread_id"], own)
            keys[place, row["thread_id"]] = key
            if formats[place] == _NAMING and row["name"]:
                given[key] = row["name"]
                row["name"] = None  # find threads by the system's name first
            _fill_in(threads.setdefault(key, dict(row)), row)
    for key, name in given.items():
        threads[key]["name"] = name
    return _numbered("threads", threads, keys, len(sources))


def _match_opaque_threads(
    rows: Rows, threads: Mapping[tuple[Any, ...], Mapping[str, Any]], processes: Rows, source: Source
) -> dict[int, tuple[Any, ...]]:
    """Return the key of the known thread for each thread with an opaque id, by its own number.

    If Python's ids of threads were recorded, the opaque ids are derived from these. Else both profilers take a thread's
    name from the system, and a name that a process has once in each is one thread. If several threads of the system
    have the name (a child inherits it), the one that carries the steps is the first thread.
    """
    pids = {row["process_id"]: row["pid"] for row in processes}
    names = {key: (known["process_id"], known["name"]) for key, known in threads.items()}
    own = Counter((row["process_id"], row["name"]) for row in rows)
    derived: dict[tuple[int, int], list[tuple[Any, ...]]] = {}  # by the ids that TensorFlow and JAX derive
    for key, known in threads.items():
        for number in tracer_ids(known[IDENT]) if known.get(IDENT) is not None else ():
            derived.setdefault((known["process_id"], number), []).append(key)
    marked = pc.unique(source.tables["steps"]["thread_id"]).to_pylist() if "steps" in source.tables else []
    same = {}
    for row in rows:
        name = (row["process_id"], row["name"])
        namesakes = [key for key in threads if names[key] == name and row["name"]]
        first = [key for key in namesakes if key[2] == pids.get(row["process_id"])]
        certain = derived.get((row["process_id"], row["tid"]), [])
        if len(certain) == 1:
            same[row["thread_id"]] = certain[0]
        elif row["thread_id"] in marked and first:
            same[row["thread_id"]] = first[0]
        elif own[name] == 1 and len(namesakes) == 1:
            same[row["thread_id"]] = namesakes[0]
    return same


# Devices


def _devices(sources: Sequence[Source]) -> tuple[Rows, Numbers]:
    """Return devices in order of kind and number, and the number of each in each source.

    Sources that state unique ids come first: they know the machine. If two ranks do most of their work on the same
    number, each sees its own device under it (``CUDA_VISIBLE_DEVICES``), so these are two devices.
    """
    devices: list[dict[str, Any]] = []
    workers: list[set[str]] = []  # collectors that saw a rank do most of its work on the device
    keys: dict[tuple[int, int], int] = {}
    listed = [rows_of(source.tables, "devices") for source in sources]
    for place in sorted(range(len(sources)), key=lambda place: not any(map(identifier, listed[place]))):
        collector, mains = sources[place].collector, set(main_devices(sources[place].tables).values())
        taken: set[int] = set()
        for row in listed[place]:
            own = row["device_id"] in mains and not identifier(row)
            others = [number for number, known in enumerate(devices) if number not in taken and _may_be(known, row)]
            free = [number for number in others if not (own and collector in workers[number])]
            certain = [number for number in free if identifier(row) and identifier(devices[number]) == identifier(row)]
            number = certain[0] if certain else free[0] if len(free) == 1 else None
            if number is None and own and not free:
                # The machine has only the devices it lists: the first of the same product without a rank's work.
                unused = (
                    other
                    for other, known in enumerate(devices)
                    if other not in taken and not workers[other] and identifier(known) and _is_like(known, row)
                )
                number = next(unused, None)
            if number is None:
                number = len(devices)
                devices.append({})
                workers.append(set())
            _fill_in(devices[number], row)
            workers[number] |= {collector} if row["device_id"] in mains else set()
            taken.add(number)
            keys[place, row["device_id"]] = number
    described = dict(enumerate(devices))

    def place_of(number: int) -> tuple[Any, ...]:
        row = described[number]
        return str(row["kind"]), row["ordinal"] is None, row["ordinal"] or 0, row["uuid"] or ""

    return _numbered("devices", described, keys, len(sources), place_of)


def _is_like(known: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return known["kind"] == row["kind"] and len({known["name"], row["name"]} - {None}) <= 1


def _may_be(known: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether two rows may describe one device: the same unique id, else the same number and no other name."""
    if identifier(known) and identifier(row):
        return identifier(known) == identifier(row)
    return known["ordinal"] == row["ordinal"] and _is_like(known, row)
