"""Make a large synthetic Nsight Systems database: 3 M API calls and 1.5 M kernels at full scale.

Vectorised with NumPy and inserted in chunks with constants in the SQL, because building it must not take longer
than the measurement. The same scale gives the same rows.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sample_traces"))

from nsys_database import VM_BITS, Strings, create_tables, fill_enums, global_pid

API_ROWS = 3_000_000
KERNEL_ROWS = 1_500_000
PID = 4242
CHUNK = 200_000
SEED = 7

LAUNCH = "cudaLaunchKernel_v7000"
OTHER_CALLS = (
    "cudaMemcpyAsync_v3020",
    "cudaEventRecord_v3020",
    "cudaEventQuery_v3020",
    "cudaStreamSynchronize_v3020",
    "cudaStreamWaitEvent_v3020",
    "cudaMemsetAsync_v3020",
    "cudaStreamIsCapturing_v10000",
    "cudaEventCreateWithFlags_v3020",
    "cudaDeviceSynchronize_v3020",
    "cudaMalloc_v3020",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000",
)
KERNEL_NAMES = tuple(
    f"void {kind}_kernel<(int){width}, float, {layout}>(T2 *, const T2 *, const T2 *, int, int, Params<T2>)"
    for kind in ("gemm", "elementwise", "reduce", "softmax", "layer_norm")
    for width in (32, 64, 128, 256)
    for layout in ("Row", "Column", "Interleaved")
)

Array = npt.NDArray[np.int64]


def make(path: Path, scale: float = 1.0) -> None:
    """Write the database to ``path``; ``scale`` multiplies the number of rows."""
    calls, kernels = int(API_ROWS * scale), int(KERNEL_ROWS * scale)
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000")
    with connection:
        create_tables(connection)
        fill_enums(connection)
        strings = Strings()
        rng = np.random.default_rng(SEED)
        launches, ends = _insert_calls(connection, strings, rng, calls, kernels)
        _insert_kernels(connection, strings, rng, launches, ends)
        _insert_facts(connection, strings)
    connection.close()


def _insert_calls(
    connection: sqlite3.Connection, strings: Strings, rng: np.random.Generator, calls: int, kernels: int
) -> tuple[Array, Array]:
    """Insert API calls of two threads; return correlation id and end of those that launch a kernel, in time order.

    Rows of the two threads are interleaved in blocks, as a profiler flushes its buffers: nearly in order of time.
    """
    launch = np.zeros(calls, bool)
    launch[rng.choice(calls, kernels, replace=False)] = True
    other = np.array([strings(name) for name in OTHER_CALLS])
    popularity = 1 / np.arange(1, len(other) + 1)
    names = np.where(launch, strings(LAUNCH), rng.choice(other, calls, p=popularity / popularity.sum()))
    durations = rng.lognormal(8.3, 0.5, calls).astype(np.int64) + 500
    thread = np.arange(calls) // 64 % 2
    starts = np.empty(calls, np.int64)
    for number in (0, 1):
        mine = thread == number
        starts[mine] = np.cumsum(durations[mine] + 900) - durations[mine] + 100_000_000
    correlation = np.arange(1, calls + 1)
    tids = global_pid(PID) | np.array([PID, PID + 7])[thread]
    _insert_columns(
        connection,
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, ?, 0, NULL)",
        starts,
        starts + durations,
        tids,
        correlation,
        names,
    )
    order = np.argsort(starts[launch])
    return correlation[launch][order], (starts + durations)[launch][order]


def _insert_kernels(
    connection: sqlite3.Connection, strings: Strings, rng: np.random.Generator, launches: Array, launched: Array
) -> None:
    """Insert one kernel per launch on two streams: each starts after its launch and after the one before it.

    With durations d and launch ends l, the starts s[i] = max(l[i], s[i-1] + d[i-1]) are, written with the running
    sum D of durations before i, D[i] + max over j <= i of (l[j] - D[j]): one running maximum, no loop.
    """
    ids = np.array([strings(name) for name in KERNEL_NAMES])
    shorts = np.array([strings(name.split()[1].split("<")[0]) for name in KERNEL_NAMES])
    which = rng.zipf(1.3, len(launches)) % len(ids)
    durations = rng.lognormal(8.0, 0.7, len(launches)).astype(np.int64) + 1_000
    before = np.cumsum(durations) - durations
    starts = before + np.maximum.accumulate(launched + 1_500 - before)
    streams = np.where(np.arange(len(launches)) % 16 == 0, 13, 7)
    _insert_columns(
        connection,
        f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, ?, ?, {global_pid(PID)}, ?, ?, NULL, 1, NULL, 32, "
        "?, 1, 1, 128, 1, 1, 0, 0, 0, 0, ?, NULL, NULL, NULL)",
        starts,
        starts + durations,
        streams,
        launches,
        ids[which],
        shorts[which],
        1 + which * 8,
        launches,
    )


def _insert_columns(connection: sqlite3.Connection, statement: str, *columns: Array) -> None:
    """Insert rows given as columns; at most ``CHUNK`` rows are Python objects at a time."""

    def rows() -> Iterator[tuple[int, ...]]:
        for begin in range(0, len(columns[0]), CHUNK):
            yield from zip(*(column[begin : begin + CHUNK].tolist() for column in columns), strict=True)

    connection.executemany(statement, rows())


def _insert_facts(connection: sqlite3.Connection, strings: Strings) -> None:
    pid = global_pid(PID)
    connection.execute("INSERT INTO PROCESSES VALUES (?, ?, 'python3')", (pid, PID))
    connection.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, NULL, NULL)")
    connection.execute(
        "INSERT INTO TARGET_INFO_GPU (vmId, id, name, smCount, cuDevice) VALUES (?, 0, 'Synthetic GPU', 108, 0)",
        (VM_BITS,),
    )
    for name, tid in (("python3", PID), ("autograd", PID + 7)):
        connection.execute("INSERT INTO ThreadNames VALUES (?, 20, ?)", (strings(name), pid | tid))
    connection.execute("INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '3.0.0')")
    connection.execute("INSERT INTO META_DATA_CAPTURE VALUES ('SYNTHETIC', 'made for a benchmark, not a recording')")
    ids = ((number, text) for text, number in strings.ids.items())
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", ids)
