"""First pass over all event tables of an nvprof database, and surrogate ids of its processes, threads and devices.

Kernels and copies do not state their process. If a file holds several, their process is that of the API call with the
same correlation id. If processes share ids, device and time decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.nvprof import constants
from traceviz.parsers.nvprof.mapping import BY_LAUNCH, EVENT_TABLES, MARKERS, OF_PROCESSES_TOO, THREAD
from traceviz.parsers.nvprof.raw import NvprofTables
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.arrays.operations import NONE
from traceviz.parsers.shared.events.names import look_up
from traceviz.parsers.shared.events.owners import compute_capability, identity_tables, numbered
from traceviz.parsers.shared.events.prescan import Clock, Extent, clock_of, extent, present
from traceviz.parsers.shared.launchers import Numbered, is_ambiguous, launchers, waits
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema

Thread = tuple[int, int]
"""Process id and thread id; 0 if the record states none."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Summary of the event tables.

    Args:
        clock: Time range of the events.
        rows: Rows that have a time and count, by table of the contract.
        threads: Threads that own an event.
        processes: Processes that own an event.
        devices: Device numbers of events.
        kernels: Ids of the names of kernels.
    """

    clock: Clock
    rows: Mapping[str, int]
    threads: frozenset[Thread]
    processes: frozenset[int]
    devices: frozenset[int]
    kernels: Array


def take_survey(raw: NvprofTables, notes: Notes) -> Survey:
    """Survey all event tables of ``raw``.

    Raises:
        DamagedTraceError: a table cannot be decoded, or no event has a plausible time.
    """
    extents = [
        # Owners of launches are found later, by correlation id.
        extent(
            raw,
            table,
            source,
            [
                *(() if source.owner in BY_LAUNCH else source.owner),
                source.device,
                "name" if table == "kernels" else None,
            ],
        )
        for table, sources in {**EVENT_TABLES, "nvtx": (MARKERS,)}.items()
        for source in present(raw, sources)
    ]
    rows: Counter[str] = Counter()
    for part in extents:
        rows[part.table] += part.rows
    owned = [part for part in extents if part.source.owner not in BY_LAUNCH]
    threads = frozenset(
        (row.get("processId") or 0, row.get("threadId") or 0)
        for part in owned
        if part.source.owner == THREAD
        for row in _rows(part)
        if row.get("threadId") is not None or part.source.table not in OF_PROCESSES_TOO
    )
    processes = frozenset(row.get("processId") or 0 for part in owned for row in _rows(part))
    devices = frozenset(
        row.get(part.source.device) or 0 for part in extents if part.source.device for row in _rows(part)
    )
    kernels = {row.get("name") for part in extents if part.table == "kernels" for row in _rows(part)}
    return Survey(
        clock_of(raw, extents, notes), rows, threads, processes, devices, pa.array(list(kernels - {None}), pa.int64())
    )


def _rows(part: Extent) -> list[dict[str, Any]]:
    """Return distinct combinations of the key columns; an empty one if the table has rows but no key column."""
    if part.keys.num_columns:
        return part.keys.to_pylist()
    return [{}] if part.rows else []


_DEVICE = constants.PREFIX + "DEVICE"
_NAME = constants.PREFIX + "NAME"
_CALLS = (constants.PREFIX + "RUNTIME", constants.PREFIX + "DRIVER")
_DEVICE_NUMBERS = (
    *("id", "name", "numMultiprocessors", "maxWarpsPerMultiprocessor", "numThreadsPerWarp", "globalMemorySize"),
    *("globalMemoryBandwidth", "coreClockRate", "computeCapabilityMajor", "computeCapabilityMinor"),
)
_KILO = 1000  # memory bandwidth comes in kB/s, the clock rate in kHz
_NO_THREAD = {0: "whole process"}
"""Events of a process that belong to no single thread, such as ranges from one thread to another."""


@dataclass(frozen=True, slots=True, eq=False)
class Launches:
    """Processes of calls, by correlation id.

    Args:
        calls: The calls, grouped by the surrogate id of their process.
        of_device: Process of the work of each device number; empty if no two processes share an id.
    """

    calls: Numbered
    of_device: Mapping[int, int]

    def owners(self, correlations: Array, devices: Array | None = None, starts: Array | None = None) -> Array:
        """Return surrogate ids of the processes that made the calls with these ids; null if no call has the id.

        If several processes use an id, it is the process whose work the device does, else the one whose call is the
        last to start before ``starts``, else the first.
        """
        ids = pc.fill_null(correlations, NONE).to_numpy(zero_copy_only=False)
        owner = np.full(ids.size, NONE, np.int32)
        for process in reversed(range(int(self.calls.group.max(initial=NONE)) + 1)):
            owner[np.isin(ids, self._of(process).ids)] = process
        if self.of_device and devices is not None:
            meant = np.array([self.of_device.get(number, NONE) for number in pc.fill_null(devices, 0).to_pylist()])
            for process in np.unique(meant).tolist():
                owner[(meant == process) & np.isin(ids, self._of(process).ids)] = process
        elif self.of_device and starts is not None:
            work = Numbered(owner, ids, starts.to_numpy(zero_copy_only=False))
            shortest = np.full(ids.size, np.iinfo(np.int64).max)
            for process in np.unique(self.calls.group).tolist():
                delay = waits(self._of(process), work)
                owner[(delay >= 0) & (delay < shortest)] = process
                shortest = np.where(delay >= 0, np.minimum(delay, shortest), shortest)
        return pa.array(owner, mask=owner < 0)

    def _of(self, process: int) -> Numbered:
        return self.calls.taken(np.flatnonzero(self.calls.group == process))


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """Surrogate ids and their tables.

    Args:
        processes: Process id of the system by surrogate id.
        threads: Combined process and thread id by surrogate id, see :func:`_combined`.
        process_of_thread: Surrogate process id by surrogate thread id.
        devices: Device number by surrogate id.
        launches: Processes of launch calls, if there are several processes.
        command: Command line of the first process.
        tables: The tables ``devices``, ``processes`` and ``threads``.
    """

    processes: Array
    threads: Array
    process_of_thread: Array
    devices: Array
    launches: Launches | None
    command: str | None
    tables: Mapping[str, pa.Table]

    def process_ids(self, pids: Array) -> Array:
        """Return surrogate ids of process ids; null counts as 0."""
        return pc.index_in(pc.fill_null(pids, 0), value_set=self.processes)

    def thread_ids(self, pids: Array, tids: Array) -> Array:
        """Return surrogate ids of threads; null counts as 0."""
        return pc.index_in(_combined(pids, tids), value_set=self.threads)

    def device_ids(self, numbers: Array) -> Array:
        """Return surrogate ids of device numbers; null counts as 0."""
        return pc.index_in(pc.fill_null(numbers, 0), value_set=self.devices).cast(pa.int16())

    def launchers(self, correlations: Array, devices: Array | None = None, starts: Array | None = None) -> Array:
        """Return surrogate ids of the processes that made the calls of events, see :meth:`Launches.owners`."""
        if self.launches is None:
            return pa.array(np.zeros(len(correlations), np.int32))
        return self.launches.owners(correlations, devices, starts)


def _combined(pids: Array, tids: Array) -> Array:
    """Return one number for process and thread: the process above bit 32."""
    process, thread = (pc.fill_null(ids, 0).to_numpy(zero_copy_only=False) for ids in (pids, tids))
    return pa.array((process.astype(np.int64) << 32) | thread.astype(np.int64))


def identify_all(raw: NvprofTables, survey: Survey, notes: Notes) -> Identity:
    """Number processes by pid, threads by pid and tid, devices by their number."""
    names = _names(raw)
    stated = sorted(process for (kind, process, _) in names if kind == constants.OBJECT_PROCESS)
    pids: list[int | None] = [*(sorted(survey.processes) or stated[:1])]
    if not pids and any(survey.rows.values()):
        pids = [None]
    processes = [0 if pid is None else pid for pid in pids]
    threads = sorted(survey.threads)
    place = numbered(processes)
    of_thread = pa.array([place[pid] for pid, _ in threads], pa.int32())
    keys = [pa.array([thread[side] for thread in threads], pa.int64()) for side in (0, 1)]
    rows = raw.small(_DEVICE, _DEVICE_NUMBERS, blobs=("uuid",))
    described = {row["id"]: row for row in rows if row["id"] is not None}
    words = _words(raw, described.values())
    devices = sorted(survey.devices | set(described))
    command = next((names[key] for pid in processes if (key := (constants.OBJECT_PROCESS, pid, 0)) in names), None)
    return Identity(
        pa.array(processes, pa.int64()),
        _combined(*keys),
        of_thread,
        pa.array(devices, pa.int64()),
        _launches(raw, place) if len(processes) > 1 else None,
        command,
        identity_tables(
            # The name is the file name of the command line's first word; the rest is private.
            ({"pid": pid, "name": program(names.get((constants.OBJECT_PROCESS, pid or 0, 0)))} for pid in pids),
            (
                {
                    "process_id": place[pid],
                    "tid": tid,
                    "name": names.get((constants.OBJECT_THREAD, pid, tid), _NO_THREAD.get(tid)),
                }
                for pid, tid in threads
            ),
            (_device_row(number, described.get(number, {}), words) for number in devices),
            notes,
        ),
    )


Names = dict[tuple[int, int, int], str]
"""Names of processes (their command lines) and threads by kind of object, process id and thread id."""


def _names(raw: NvprofTables) -> Names:
    rows = raw.small(_NAME, ("objectKind", "processId", "threadId", "name"))
    words = _words(raw, rows)
    return {
        (row["objectKind"], row["processId"], row["threadId"] or 0): word
        for row in rows
        if row["processId"] is not None and (word := words.get(row["name"]))
    }


def _words(raw: NvprofTables, rows: Iterable[Mapping[str, Any]]) -> dict[Any, str]:
    """Return strings of the ids in column ``name`` of ``rows``."""
    ids = pa.array(sorted({row["name"] for row in rows if row["name"] is not None}), pa.int64())
    return dict(zip(ids.to_pylist(), look_up(raw, ids).to_pylist(), strict=True))


def program(command: str | None) -> str | None:
    """Return the file name of the program in a command line."""
    words = (command or "").split()
    return words[0].rsplit("/", 1)[-1] or None if words else None


def _device_row(number: int, row: Mapping[str, Any], words: Mapping[Any, str]) -> dict[str, Any]:
    uuid = row.get("uuid")
    digits = uuid.hex() if uuid and len(uuid) == 16 and any(uuid) else ""
    groups = (digits[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    return {
        "kind": "gpu",
        "ordinal": _small(number),
        "name": words.get(row.get("name", constants.NO_NAME)),
        "uuid": "GPU-" + "-".join(groups) if digits else None,  # as NVIDIA's tools print it
        "compute_capability": compute_capability(row.get("computeCapabilityMajor"), row.get("computeCapabilityMinor")),
        "sm_count": _small(row.get("numMultiprocessors")),
        "max_threads_per_sm": _small(_product(row.get("maxWarpsPerMultiprocessor"), row.get("numThreadsPerWarp"))),
        "memory_bytes": row.get("globalMemorySize"),
        "memory_bandwidth": _small(_product(row.get("globalMemoryBandwidth"), _KILO), 63),
        "clock_hz": _small(_product(row.get("coreClockRate"), _KILO), 63),
    }


def _product(*factors: int | None) -> int | None:
    known = [factor for factor in factors if factor is not None]
    return prod(known) if len(known) == len(factors) else None


def _small(number: int | None, bits: int = 31) -> int | None:
    """Return a number that is not negative and has at most ``bits`` bits, else ``None``."""
    return number if number is not None and 0 <= number < 1 << bits else None


def _launches(raw: NvprofTables, place: Mapping[int, int]) -> Launches:
    """Return calls with a correlation id, and the process of each device's work if processes share ids."""
    table = _integer_columns(raw, _CALLS, ("correlationId", "start", "processId"))
    pids = pa.array(list(place), pa.int64())
    owners = pc.index_in(pc.fill_null(table["processId"], 0).combine_chunks(), value_set=pids)
    calls = _by_group(table, owners.to_numpy(zero_copy_only=False))
    if not is_ambiguous(calls):
        return Launches(calls, {})
    sources = [source.table for table in schema.DEVICE_WORK for source in EVENT_TABLES.get(table, ()) if source.device]
    work = _integer_columns(raw, sources, ("correlationId", "start", "deviceId"))
    devices, queue = np.unique(pc.fill_null(work["deviceId"], 0).to_numpy(), return_inverse=True)
    owner = launchers(calls, _by_group(work, queue), len(place), np.full(devices.size, NONE))
    return Launches(calls, dict(zip(devices.tolist(), owner.tolist(), strict=True)))


def _integer_columns(raw: NvprofTables, tables: Iterable[str], columns: Sequence[str]) -> pa.Table:
    """Return integer columns of those of ``tables`` that have them all."""
    complete = (table for table in tables if raw.columns(table) >= set(columns))
    batches = [batch for table in complete for batch in raw.stream(table, columns)]
    return pa.Table.from_batches(batches, pa.schema([(name, pa.int64()) for name in columns]))


def _by_group(table: pa.Table, group: npt.NDArray[Any]) -> Numbered:
    """Return rows with a correlation id, by ``group``."""
    ids, start = (pc.fill_null(table[name], 0).to_numpy() for name in ("correlationId", "start"))
    known = ids > 0
    return Numbered(group[known].astype(np.int64), ids[known], start[known])
