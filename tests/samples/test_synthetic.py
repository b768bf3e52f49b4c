"""The synthetic traces are what their generator makes, and hold the physics that their stories claim."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Iterable
from pathlib import Path

import make_synthetic
import pytest
from nsys_database import NsysDatabase
from program import COMPUTE_STREAM, MS, US, Kernel, Program
from stories import STORIES, Story

Interval = tuple[int, int]

BY_NAME = {story.name: story for story in STORIES}
WARM_UP = 3

stories = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


@pytest.fixture(scope="module")
def opened() -> Iterable[dict[str, sqlite3.Connection]]:
    found = {
        story.name: sqlite3.connect(f"file:{make_synthetic.path_of(story)}?mode=ro", uri=True) for story in STORIES
    }
    yield found
    for connection in found.values():
        connection.close()


def steps_of(database: sqlite3.Connection) -> list[Interval]:
    return database.execute("SELECT start, end FROM NVTX_EVENTS WHERE text GLOB 'step *' ORDER BY start").fetchall()


def steady(database: sqlite3.Connection) -> Interval:
    steps = steps_of(database)[WARM_UP:]
    return steps[0][0], steps[-1][1]


def device_idle(database: sqlite3.Connection, window: Interval, device: int = 0) -> list[Interval]:
    """Return gaps in the union of the device's work, cut to ``window``."""
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master") if name.startswith("CUPTI")]
    rows = [
        row
        for table in tables
        if not table.endswith(("RUNTIME", "SYNCHRONIZATION"))
        for row in database.execute(f"SELECT start, end FROM {table} WHERE deviceId = ?", (device,))
    ]
    gaps, reached = [], window[0]
    for start, end in sorted(rows):
        if start > reached:
            gaps.append((reached, min(start, window[1])))
        reached = max(reached, min(end, window[1]))
    return [gap for gap in [*gaps, (reached, window[1])] if gap[1] > gap[0]]


def calls(database: sqlite3.Connection, pattern: str) -> list[Interval]:
    query = """
        SELECT start, end FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId
        WHERE value GLOB ? ORDER BY start
    """
    return database.execute(query, (pattern,)).fetchall()


def share(parts: Iterable[Interval], of: Iterable[Interval], window: Interval) -> float:
    """Return the overlap of two sets of disjoint intervals, as a share of ``window``."""
    others = list(of)
    total = sum(max(0, min(end, other[1]) - max(start, other[0])) for start, end in parts for other in others)
    return total / (window[1] - window[0])


def test_the_committed_files_hold_exactly_what_the_generator_makes() -> None:
    assert make_synthetic.check() == []


@stories
def test_every_file_is_small_and_says_that_it_is_synthetic(story: Story, opened: dict[str, sqlite3.Connection]) -> None:
    assert make_synthetic.path_of(story).stat().st_size < 200_000
    (value,) = opened[story.name].execute("SELECT value FROM META_DATA_CAPTURE WHERE name = 'SYNTHETIC'").fetchone()
    assert value == f"synthetic, not a recording: {story.tells}"


@stories
def test_no_kernel_starts_before_its_launch_call(story: Story, opened: dict[str, sqlite3.Connection]) -> None:
    query = """
        SELECT count(*), min(k.start - r.start), count(r.start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
          ON k.correlationId = r.correlationId AND k.globalPid = r.globalTid & ~0xFFFFFF
    """
    kernels, earliest, launches = opened[story.name].execute(query).fetchone()
    assert kernels == launches >= 400
    assert earliest >= 6 * US


@stories
def test_kernels_of_one_stream_never_overlap(story: Story, opened: dict[str, sqlite3.Connection]) -> None:
    query = """
        SELECT min(start - before) FROM (
            SELECT start, lag(end) OVER (PARTITION BY globalPid, streamId ORDER BY start) AS before
            FROM CUPTI_ACTIVITY_KIND_KERNEL)
    """
    assert opened[story.name].execute(query).fetchone()[0] >= 1 * US


def test_the_healthy_story_keeps_the_device_busy_and_exposes_nothing(opened: dict[str, sqlite3.Connection]) -> None:
    database = opened["healthy"]
    window = steady(database)
    idle = device_idle(database, window)
    loading = database.execute("SELECT start, end FROM NVTX_EVENTS WHERE text = 'data loading'").fetchall()
    assert share([window], idle, window) < 0.02
    assert share([window], loading, window) < 0.05
    assert share(calls(database, "cuda*Synchronize*"), idle, window) < 0.01
    assert [call for call in calls(database, "cuda[MF][ar]*") if call[0] > window[0]] == []
    pageable = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE srcKind = 0 AND start > ?"
    assert database.execute(pageable, (window[0],)).fetchone() == (0,)


@pytest.mark.parametrize(
    ("name", "pattern", "low", "high"),
    [
        ("allocation_churn", "cuda[MF][ar]*", 0.20, 0.35),
        ("synchronisation", "cudaDeviceSynchronize*", 0.20, 0.35),
        ("launch_bound", "cudaLaunchKernel*", 0.30, 0.45),
    ],
)
def test_the_named_calls_hold_the_idle_time_of_the_story(
    name: str, pattern: str, low: float, high: float, opened: dict[str, sqlite3.Connection]
) -> None:
    window = steady(opened[name])
    idle = device_idle(opened[name], window)
    assert low < share(calls(opened[name], pattern), idle, window) < high


def test_the_input_bound_story_waits_in_its_data_loading_range(opened: dict[str, sqlite3.Connection]) -> None:
    database = opened["input_bound"]
    window = steady(database)
    loading = database.execute("SELECT start, end FROM NVTX_EVENTS WHERE text = 'data loading'").fetchall()
    assert 0.35 < share(loading, device_idle(database, window), window) < 0.45


@pytest.mark.parametrize(
    ("name", "call", "event_class"),
    [("pageable_copies", "cudaMemcpyAsync_v3020", 0), ("pageable_copies_driver", "cuMemcpyHtoDAsync_v2", 1)],
)
def test_pageable_copies_hold_the_device_in_every_step(
    name: str, call: str, event_class: int, opened: dict[str, sqlite3.Connection]
) -> None:
    database = opened[name]
    window = steady(database)
    copies = "SELECT start, end FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE srcKind = 0 AND copyKind = 1 AND start >= ?"
    found = database.execute(copies, (window[0],)).fetchall()
    assert len(found) == len(steps_of(database)) - WARM_UP
    assert 0.30 < share(found, [window], window) < 0.45
    query = "SELECT DISTINCT eventClass FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId WHERE value = ?"
    assert database.execute(query, (call,)).fetchall() == [(event_class,)]


def test_the_two_ranks_share_correlation_ids_and_end_their_collectives_together(
    opened: dict[str, sqlite3.Connection],
) -> None:
    database = opened["two_ranks"]
    query = "SELECT globalPid, correlationId, deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL"
    rows = database.execute(query).fetchall()
    by_process: dict[int, set[int]] = {}
    for process, correlation, _ in rows:
        by_process.setdefault(process, set()).add(correlation)
    first, second = by_process.values()
    assert first == second
    assert len({(process, device) for process, _, device in rows}) == 2
    collectives = database.execute("""
        SELECT end, count(*), count(DISTINCT deviceId) FROM CUPTI_ACTIVITY_KIND_KERNEL
        JOIN StringIds ON id = shortName WHERE value GLOB 'nccl*' GROUP BY end
    """).fetchall()
    assert [row[1:] for row in collectives] == [(2, 2)] * BY_NAME["two_ranks"].steps


def test_work_on_one_stream_queues_and_a_synchronisation_outlasts_it() -> None:
    program = Program(NsysDatabase("one kernel after the other"))
    kernel = Kernel("k", "k", 1 * MS, 1, 32)
    first = program.launch(kernel)
    second = program.launch(kernel, COMPUTE_STREAM)
    assert 0.97 * MS <= second - first - 1 * US <= 1.03 * MS
    assert program.now < first
    program.synchronize_device()
    assert program.now == second + 8 * US


def test_the_same_story_told_twice_gives_the_same_rows() -> None:
    story = BY_NAME["healthy"]
    assert story.database().rows == story.database().rows


@stories
def test_nsys_stats_reads_the_file(story: Story, tmp_path: Path, opened: dict[str, sqlite3.Connection]) -> None:
    nsys = shutil.which("nsys")
    if nsys is None:
        pytest.skip("nsys is not on PATH")
    copy = shutil.copy(make_synthetic.path_of(story), tmp_path)
    reports = {
        "cudaapisum": "CUPTI_ACTIVITY_KIND_RUNTIME",
        "gpukernsum": "CUPTI_ACTIVITY_KIND_KERNEL",
        "gpumemsizesum": "CUPTI_ACTIVITY_KIND_MEMCPY",
    }
    if "2022" not in subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout:
        pytest.skip("the reports of this nsys have other names")
    command = [nsys, "stats", "--format", "csv", "--report", ",".join(reports), copy]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "SKIPPED" not in text
    assert text.count("Processing [") == 3
    (launches,) = opened[story.name].execute(f"SELECT count(*) FROM {reports['gpukernsum']}").fetchone()
    launch = "cuLaunchKernel" if story.name.endswith("driver") else "cudaLaunchKernel"
    counted = [int(line.split(",")[2]) for line in text.splitlines() if line.endswith(f",{launch}")]
    assert counted == [launches - (BY_NAME["two_ranks"].steps * 2 if story.name == "two_ranks" else 0)]
