"""CPU samples of nsys: names of frames, stacks, and the time of each sample."""

import pytest

from tests.parsers.nsys import database
from tests.parsers.nsys.database import build, process, thread
from tests.support.traces import rows
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.readers import NsysSqliteReader
from traceviz.trace.tables import TraceTables

NAMES = ["cudaLaunchKernel", "main", "solve_", "/opt/app/bin/solver", "sin", "/usr/lib/libm.so.6", "0x7f01", "do_poll"]
NAMES += [
    "[kernel.kallsyms]",
    "_PyEval_EvalFrameDefault",
    "/usr/bin/python3.10",
    "void ns::(anonymous namespace)::f<int, 2>(float*)",
]
ID = {name: number for number, name in enumerate(NAMES, 1)}
MAIN, HELPER = thread(7, 7), thread(7, 8)


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    monkeypatch.setitem(database.COLUMNS, "COMPOSITE_EVENTS", "id start cpu threadState globalTid cpuCycles")
    chains = "id symbol module kernelMode unresolved specialEntry stackDepth"
    monkeypatch.setitem(database.COLUMNS, "SAMPLING_CALLCHAINS", chains)


def read(path, samples, era=database.NEW):
    """Return tables of a capture: one call from 0 to 10,000, and ``samples`` (time, thread, frames from the inside)."""
    events, chains = [], []
    for number, (start, owner, frames) in enumerate(samples, 1):
        events.append({"id": number, "start": start, "threadState": 1, "globalTid": owner})
        for depth, (symbol, module) in enumerate(frames):
            flags = {"kernelMode": int("kernel" in module) or None, "unresolved": int(symbol.startswith("0x")) or None}
            chains.append({"id": number, "symbol": ID[symbol], "module": ID[module], "stackDepth": depth, **flags})
    tables = {
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            {"start": 0, "end": 10_000, "eventClass": 0, "globalTid": MAIN, "correlationId": 1, "nameId": 1}
        ],
        "PROCESSES": [{"globalPid": process(7), "pid": 7, "name": "/opt/app/bin/solver"}],
        "COMPOSITE_EVENTS": events,
        "SAMPLING_CALLCHAINS": chains,
    }
    tables = {name: found for name, found in tables.items() if era != database.OLD or name != "PROCESSES"}
    return TraceTables(dict(NsysSqliteReader().read(build(path, tables, era, NAMES), ReadRequest())))


SOLVE = [("solve_", "/opt/app/bin/solver"), ("main", "/opt/app/bin/solver")]
SIN = [("sin", "/usr/lib/libm.so.6"), *SOLVE]


def test_equal_samples_in_a_row_are_one_row_and_its_time_is_that_since_the_sample_before(tmp_path):
    samples = [(100, MAIN, SIN), (200, MAIN, SIN), (300, MAIN, SOLVE)]
    tables = read(tmp_path / "a.sqlite", samples)
    found = rows(tables, "stacks", "start_ns", "dur_ns", "stack_id", "samples", "cpu_ns", "state")
    assert [row[:2] + row[3:] for row in found] == [(0, 200, 2, 200, "running"), (200, 100, 1, 100, "running")]
    frames = {
        number: (parent, name, origin)
        for number, parent, name, origin in rows(tables, "stack_frames", "stack_id", "parent_id", "function", "origin")
    }
    parent, name, origin = frames[found[0][2]]
    assert (name, origin) == ("sin", "library")
    assert frames[parent][1:] == ("solve_", "program")
    assert frames[found[1][2]][1:] == ("solve_", "program")


def test_a_thread_that_is_not_sampled_for_long_ran_on_no_core(tmp_path):
    samples = [(100 * n, MAIN, SIN) for n in (1, 2, 3, 13, 14)]
    tables = read(tmp_path / "a.sqlite", samples)
    found = rows(tables, "stacks", "start_ns", "dur_ns", "samples", "cpu_ns", "state")
    assert found == [(0, 300, 3, 300, "running"), (300, 900, 9, 0, "waiting"), (1200, 200, 2, 200, "running")]


def test_a_pause_of_4_times_the_usual_interval_is_still_a_sample(tmp_path):
    tables = read(tmp_path / "a.sqlite", [(100 * n, MAIN, SIN) for n in (1, 2, 3, 7)])
    assert rows(tables, "stacks", "dur_ns", "samples") == [(700, 4)]


@pytest.mark.parametrize(
    ("frames", "name"),
    [
        ([("do_poll", "[kernel.kallsyms]"), *SOLVE], "solve_"),  # the kernel works for its caller
        ([("do_poll", "[kernel.kallsyms]")], "unknown-code"),
        ([("0x7f01", "/usr/lib/libm.so.6"), *SOLVE], "libm.so.6"),
        ([("_PyEval_EvalFrameDefault", "/usr/bin/python3.10")], "python-interpreter"),
        ([(NAMES[-1], "/usr/lib/libm.so.6")], "ns::f"),
    ],
)
def test_a_frame_has_the_name_of_its_function_else_of_its_library(tmp_path, frames, name):
    tables = read(tmp_path / "a.sqlite", [(100, MAIN, frames), (200, MAIN, frames)])
    leaf = rows(tables, "stacks", "stack_id")[0][0]
    assert dict(rows(tables, "stack_frames", "stack_id", "function"))[leaf] == name


def test_threads_with_few_samples_and_no_other_event_are_left_out(tmp_path):
    busy = [(10 * n, MAIN, SIN) for n in range(1, 201)]
    alone = read(tmp_path / "a.sqlite", [*busy, (500, HELPER, SIN)])
    assert rows(alone, "threads", "tid") == [(7,)]
    both = read(tmp_path / "b.sqlite", [*busy, *((5 + 10 * n, HELPER, SIN) for n in range(1, 11))])
    assert rows(both, "threads", "tid") == [(7,), (8,)]


def test_exports_of_2020_have_the_same_samples(tmp_path):
    tables = read(tmp_path / "a.sqlite", [(100, MAIN, SIN), (200, MAIN, SIN)], database.OLD)
    assert rows(tables, "stacks", "dur_ns", "samples") == [(200, 2)]
