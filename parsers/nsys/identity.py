"""First pass over all event tables of an export, and surrogate ids of its processes, threads and devices.

Kernels state the device *number* that their process used. Two processes that see different GPUs through
CUDA_VISIBLE_DEVICES may both state 0. If the export maps (process, number) to a GPU, that distinguishes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.nsys.mapping import (
    CHAIN_COLUMNS,
    CHAINS,
    EVENT_TABLES,
    LOCAL_ID,
    PROCESS_SHIFT,
    SAMPLE_COLUMNS,
    SAMPLES,
    THREAD,
    UNSET,
)
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.names import look_up
from traceviz.parsers.shared.events.owners import compute_capability, identity_tables
from traceviz.parsers.shared.events.prescan import Clock, Extent, clock_of, extent, present
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.notes import Notes

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Summary of the event tables.

    Args:
        clock: Time range of the events.
        rows: Rows that count, by table of the contract.
        telling: Raw tables whose presence shows that something was traced. An export that writes tables without rows
            writes all tables, traced or not: then only tables with rows are evidence.
        threads: Distinct ``globalTid``, sorted.
        processes: Distinct ``globalPid`` of device work, sorted.
        devices: Pairs of ``globalPid`` and the device number that the process uses.
    """

    clock: Clock
    rows: Mapping[str, int]
    telling: frozenset[str]
    threads: Ids
    processes: Ids
    devices: frozenset[tuple[int, int]]


def take_survey(raw: RawTables, notes: Notes) -> Survey:
    """Survey all event tables of ``raw``.

    Raises:
        DamagedTraceError: a table cannot be decoded, or no event has a plausible time.
    """
    extents = [
        extent(raw, table, source, [*source.owner, source.device])
        for table, sources in EVENT_TABLES.items()
        for source in present(raw, sources)
    ]
    rows: Counter[str] = Counter()
    for part in extents:
        rows[part.table] += part.rows
    used = {pair for part in extents if part.source.device for pair in _owners(part)}
    threads = _sorted(owner for part in extents if part.source.owner == THREAD for owner, _ in _owners(part))
    processes = _sorted(process for process, _ in used)
    sampled = _sampled_threads(raw, np.union1d(process_of(threads), processes))
    filled = frozenset(part.source.table for part in extents if part.rows)
    return Survey(
        clock_of(raw, extents, notes),
        rows,
        raw.names if all(part.rows for part in extents) else filled,
        np.union1d(threads, sampled),
        processes,
        frozenset((process, device) for process, device in used if device != UNSET),
    )


def _owners(part: Extent) -> set[tuple[int, int]]:
    """Return the distinct (owner, device number) pairs of a raw table.

    Missing columns and nulls count as 0, to keep events of unknown threads.
    """
    if not part.keys.num_columns:
        return {(0, 0)} if part.rows else set()
    (owner,), device = part.source.owner, part.source.device or ""
    return {(row.get(owner) or 0, row.get(device) or 0) for row in part.keys.to_pylist()}


def _sorted(ids: Iterable[int]) -> Ids:
    return np.array(sorted(set(ids)), dtype=np.int64)


def process_of(threads: Ids) -> Ids:
    """Return ``globalPid`` of each ``globalTid``."""
    return threads & ~np.int64(LOCAL_ID)


def has_cpu_samples(raw: RawTables) -> bool:
    """Return whether the capture has CPU samples with their stacks."""
    return raw.columns(SAMPLES) >= set(SAMPLE_COLUMNS) and raw.columns(CHAINS) >= set(CHAIN_COLUMNS)


LEAST_SAMPLES = 0.01
"""Threads with a smaller share of the samples of their process are left out, unless they have other events."""


def _sampled_threads(raw: RawTables, processes: Ids) -> Ids:
    """Return ``globalTid`` of the threads of ``processes`` that have a share of the samples of their process."""
    if not has_cpu_samples(raw):
        return np.zeros(0, np.int64)
    found = [batch["globalTid"].drop_null().to_numpy() for batch in raw.stream(SAMPLES, ["globalTid"])]
    threads, counts = np.unique(np.concatenate([np.zeros(0, np.int64), *found]), return_counts=True)
    owners, number = np.unique(process_of(threads), return_inverse=True)
    totals = np.bincount(number, counts, minlength=owners.size)
    return threads[np.isin(process_of(threads), processes) & (counts >= LEAST_SAMPLES * totals[number])]


_KEY = 1 << 32  # device numbers are 32 bits wide

_GPU_INTEGERS = ("id", "deviceId", "cuDevice", "totalMemory", "memoryBandwidth", "clockRate", "smCount")
_GPU_LIMITS = ("computeMajor", "computeMinor", "maxWarpsPerSm", "threadsPerWarp")

_STARTERS = frozenset({"nsys-launcher", "sh", "bash", "dash", "zsh", "ksh", "ash", "busybox"})
"""Programs that start others in the same process: nsys keeps the name that it saw first."""

Used = tuple[int, int]
"""A ``globalPid`` and the device number that this process uses."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that the export describes (``gpu``, its row of TARGET_INFO_GPU), or that is known only by its number.

    Args:
        ordinal: Number by which the program addressed it.
        gpu: Description; empty if the export has none.
        users: The processes that use it, with the numbers that they use.
    """

    ordinal: int
    gpu: Mapping[str, Any]
    users: tuple[Used, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """Surrogate ids and their tables.

    Args:
        threads: ``globalTid`` by thread id.
        processes: ``globalPid`` by process id.
        process_of_thread: Process id by thread id.
        device_keys: ``process_id * 2**32 + device number``, for :meth:`device_ids`.
        device_values: Device id of each key.
        gpu_devices: Device id by number of the GPU in the export.
        tables: The tables ``devices``, ``processes`` and ``threads``.
    """

    threads: Array
    processes: Array
    process_of_thread: Array
    device_keys: Array
    device_values: Array
    gpu_devices: Mapping[int, int]
    tables: Mapping[str, pa.Table]

    def thread_ids(self, raw_threads: Array) -> Array:
        """Return thread ids of ``globalTid`` values; null counts as 0."""
        return pc.index_in(_known(raw_threads), value_set=self.threads)

    def process_ids(self, raw_processes: Array) -> Array:
        """Return process ids of ``globalPid`` values; null counts as 0."""
        return pc.index_in(_known(raw_processes), value_set=self.processes)

    def device_ids(self, processes: Array, numbers: Array) -> Array:
        """Return device ids of the device numbers that ``processes`` (ids) use; null counts as 0. Null: "no device"."""
        keys = pc.add(pc.multiply(processes.cast(pa.int64()), _KEY), _known(numbers))
        return self.device_values.take(pc.index_in(keys, value_set=self.device_keys))


def _known(values: Array) -> Array:
    """Return ``values`` with 0 for null. Without the check, Arrow copies them even if there is none."""
    return values.fill_null(0) if values.null_count else values


def identify_all(raw: RawTables, survey: Survey, notes: Notes) -> Identity:
    """Number processes by pid, threads by pid and tid, devices by ordinal and uuid.

    Only owners of events get an id: exports list every process of the machine, and the others are private.
    """
    threads = _by_pid(survey.threads)
    processes = _by_pid(np.concatenate([survey.processes, process_of(threads)]))
    place = {int(process): index for index, process in enumerate(processes)}
    process_of_thread = np.array([place[int(process)] for process in process_of(threads)], dtype=np.int64)
    devices = _devices(raw, survey.devices)
    pairs = ((place[pid] * _KEY + number, index) for index, d in enumerate(devices) for pid, number in d.users)
    keys = sorted(((key + 2**63) % 2**64 - 2**63, index) for key, index in pairs)  # numbers may be any, and wrap
    tables = identity_tables(
        _process_rows(raw, processes),
        (
            {"process_id": process_id, "tid": tid, "name": name}
            for process_id, tid, name in zip(
                process_of_thread.tolist(), (threads & LOCAL_ID).tolist(), _thread_names(raw, threads), strict=True
            )
        ),
        (_device_row(device.ordinal, device.gpu) for device in devices),
        notes,
    )
    return Identity(
        pa.array(threads),
        pa.array(processes),
        pa.array(process_of_thread, pa.int32()),
        pa.array([key for key, _ in keys], pa.int64()),
        pa.array([index for _, index in keys], pa.int16()),
        {device.gpu["number"]: index for index, device in enumerate(devices) if device.gpu},
        tables,
    )


def _by_pid(ids: Ids) -> Ids:
    """Return distinct ids in order of process id, then thread id, then machine."""
    distinct = np.unique(ids)
    return distinct[np.lexsort((distinct, distinct & LOCAL_ID, distinct >> PROCESS_SHIFT & LOCAL_ID))]


def _devices(raw: RawTables, used: frozenset[Used]) -> list[Device]:
    """Return all devices that the export describes or that did work, in order of ordinal and uuid."""
    gpus = [
        row | {"number": number}
        for row in raw.small("TARGET_INFO_GPU", _GPU_INTEGERS + _GPU_LIMITS, ("name", "uuid"))
        # Exports of 2020 number GPUs by deviceId; id took its place.
        if (number := row["deviceId"] if row["id"] is None else row["id"]) is not None
    ]
    mapping = {
        (row["pid"], row["cudaId"]): row["gpuId"]
        for row in raw.small("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
    }
    users: dict[tuple[bool, int], list[Used]] = {(True, gpu["number"]): [] for gpu in gpus}
    for pid, number in sorted(used):
        gpu = _find_gpu(((pid >> PROCESS_SHIFT) & LOCAL_ID, number), mapping, gpus)
        users.setdefault((False, number) if gpu is None else (True, gpu), []).append((pid, number))
    described = {gpu["number"]: gpu for gpu in gpus}
    devices = []
    for (is_described, number), pairs in users.items():
        gpu_row = described[number] if is_described else {}
        # The ordinal is the number that all users agree on, else CUDA's, or the place in the export.
        addressed = {used_number for _, used_number in pairs}
        own = number if gpu_row.get("cuDevice") is None else int(gpu_row["cuDevice"])
        devices.append(Device(addressed.pop() if len(addressed) == 1 else own, gpu_row, tuple(pairs)))
    return sorted(
        devices, key=lambda device: (device.ordinal, device.gpu.get("uuid") or "", device.gpu.get("number", -1))
    )


def _find_gpu(used: Used, mapping: Mapping[Used, int], gpus: list[dict[str, Any]]) -> int | None:
    """Return the GPU behind the device number of a process, by the best evidence in the export.

    That is its own map of processes, else that map if all processes agree, else the number that CUDA gives the GPU. If
    CUDA's number is not stated, the GPU's place in the export stands for it.
    """
    _, number = used
    agreed = {gpu for (_, other), gpu in mapping.items() if other == number}
    guess = mapping.get(used, min(agreed) if len(agreed) == 1 else None)
    if guess is None:
        stated = any(gpu["cuDevice"] is not None for gpu in gpus)
        matching = [gpu["number"] for gpu in gpus if gpu["cuDevice" if stated else "number"] == number]
        guess = matching[0] if matching else None
    return guess if any(gpu["number"] == guess for gpu in gpus) else None


def _device_row(ordinal: int, gpu: Mapping[str, Any]) -> dict[str, Any]:
    warps, width = gpu.get("maxWarpsPerSm"), gpu.get("threadsPerWarp")
    return {
        "kind": "gpu",
        "ordinal": ordinal,
        "name": gpu.get("name"),
        "uuid": gpu.get("uuid"),
        "compute_capability": compute_capability(gpu.get("computeMajor"), gpu.get("computeMinor")),
        "sm_count": gpu.get("smCount"),
        "max_threads_per_sm": None if warps is None or width is None else warps * width,
        "memory_bytes": gpu.get("totalMemory"),
        "memory_bandwidth": gpu.get("memoryBandwidth"),
        "clock_hz": gpu.get("clockRate"),
    }


def _process_rows(raw: RawTables, processes: Ids) -> Iterator[dict[str, Any]]:
    """Yield rows of processes. Names are file names: the folders of a program are private.

    Exports of 2020 have no PROCESSES. A program that nsys or a shell started may still have the starter's name there;
    the name of its first thread is better.
    """
    stated = {row["globalPid"]: row["name"] for row in raw.small("PROCESSES", ("globalPid",), ("name",))}
    ranks = {  # if MPI was traced
        int(process_of(np.array([row["globalTid"]]))[0]): row["rank"]
        for row in raw.small("MPI_RANKS", ("globalTid", "rank"))
        if row["globalTid"] is not None and row["rank"] is not None
    }
    pids = processes >> PROCESS_SHIFT & LOCAL_ID
    first_threads = _thread_names(raw, processes | pids)  # the first thread of a process has its id
    for process, pid, name in zip(processes, pids, first_threads, strict=True):
        known = _file_name(stated.get(int(process)))
        better = _file_name(name) if known is None or known in _STARTERS else known
        yield {"pid": int(pid), "name": better or known, "rank": ranks.get(int(process))}


def _file_name(name: str | None) -> str | None:
    return name and (name.rstrip("/").rsplit("/", 1)[-1] or name)


def _thread_names(raw: RawTables, threads: Ids) -> list[str | None]:
    """Return the name of each thread: the one with the highest priority, given by the program, not the system."""
    wanted = {int(thread) for thread in threads}
    rows = raw.small("ThreadNames", ("globalTid", "nameId", "priority"))
    ranked = sorted(
        (row["priority"] or 0, row["globalTid"], row["nameId"]) for row in rows if row["globalTid"] in wanted
    )
    by_thread = {thread: name for _, thread, name in ranked if name is not None}
    ids = pa.array(sorted(set(by_thread.values())), pa.int64())
    words = dict(zip(ids.to_pylist(), look_up(raw, ids).to_pylist(), strict=True))
    return [words.get(by_thread.get(int(thread), -1)) for thread in threads]
