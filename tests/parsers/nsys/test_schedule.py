"""Times of threads on a core, from events of the scheduler, and page faults in managed memory."""

import pytest

from tests.parsers.nsys import database
from tests.parsers.nsys.database import build, process, thread
from tests.support.traces import rows
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.readers import NsysSqliteReader
from traceviz.trace.tables import TraceTables

MAIN, HELPER, STRANGER = thread(7, 7), thread(7, 8), thread(9, 9)


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    monkeypatch.setitem(database.COLUMNS, "SCHED_EVENTS", "start cpu isSchedIn globalTid")
    monkeypatch.setitem(database.COLUMNS, "CUDA_UM_CPU_PAGE_FAULT_EVENTS", "start globalPid address")
    monkeypatch.setitem(
        database.COLUMNS, "CUDA_UM_GPU_PAGE_FAULT_EVENTS", "start end globalPid deviceId numberOfPageFaults"
    )


def read(path, **tables):
    """Return tables of a capture with calls of two threads, from 1,000 to 11,000."""
    call = {"eventClass": 0, "correlationId": 1, "nameId": 1}
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = [
        {"start": 1_000, "end": 11_000, "globalTid": MAIN, **call},
        {"start": 2_000, "end": 3_000, "globalTid": HELPER, **call},
    ]
    return TraceTables(dict(NsysSqliteReader().read(build(path, tables, database.NEW, ["cudaFree"]), ReadRequest())))


def events(*moments):
    return [{"start": start, "cpu": 0, "isSchedIn": gets, "globalTid": owner} for start, gets, owner in moments]


def test_a_thread_runs_from_the_moment_it_gets_a_core_to_the_moment_it_leaves_it(tmp_path):
    moments = [(1_500, 1, MAIN), (2_100, 1, HELPER), (2_500, 0, MAIN), (2_200, 0, HELPER), (4_000, 1, MAIN)]
    found = read(tmp_path / "a.sqlite", SCHED_EVENTS=events(*moments, (4_100, 0, MAIN)))
    assert rows(found, "scheduling", "start_ns", "dur_ns", "thread_id") == [
        (500, 1_000, 0),
        (1_100, 100, 1),
        (3_000, 100, 0),
    ]


def test_moments_without_a_counterpart_and_other_threads_are_left_out(tmp_path):
    moments = [(1_200, 0, MAIN), (1_500, 1, MAIN), (1_900, 1, MAIN), (2_000, 0, MAIN), (5_000, 1, STRANGER)]
    found = read(tmp_path / "a.sqlite", SCHED_EVENTS=events(*moments, (6_000, 0, STRANGER), (9_000, 1, MAIN)))
    assert rows(found, "scheduling", "start_ns", "dur_ns") == [(900, 100)]


def test_times_end_with_the_capture(tmp_path):
    moments = [(500, 1, MAIN), (1_200, 0, MAIN), (10_900, 1, MAIN), (20_000, 0, MAIN), (21_000, 1, MAIN)]
    found = read(tmp_path / "a.sqlite", SCHED_EVENTS=events(*moments, (22_000, 0, MAIN)))
    assert rows(found, "scheduling", "start_ns", "dur_ns") == [(0, 200), (9_900, 100)]


def test_a_capture_without_the_scheduler_has_no_such_table(tmp_path):
    assert "scheduling" not in read(tmp_path / "a.sqlite")


def test_page_faults_are_counted(tmp_path):
    of_host = [{"start": 10 * n, "globalPid": process(7), "address": n} for n in range(3)]
    of_device = [
        {"start": 5, "end": 6, "globalPid": process(7), "deviceId": 0, "numberOfPageFaults": n} for n in (4, 5)
    ]
    tables = {"CUDA_UM_CPU_PAGE_FAULT_EVENTS": of_host, "CUDA_UM_GPU_PAGE_FAULT_EVENTS": of_device}
    found = dict(rows(read(tmp_path / "a.sqlite", **tables), "settings", "key", "value"))
    assert (found["nsys.page_faults.host"], found["nsys.page_faults.device"]) == ("3", "9")
