"""Output of py-spy as files of stacks: start, duration, thread, and no folders of the machine."""

import json
from pathlib import Path

import pytest

from traceviz.api import open_trace
from traceviz.collectors.base import Plan
from traceviz.collectors.pyspy.collector import PySpyCollector
from traceviz.collectors.pyspy.convert import Clock, write_stacks

START = Clock(5_000_000_000, 1_700_000_000_000_000_000)
MAIN, LOADER = 140_000_000_000_256, 140_000_000_000_512


def event(phase, at_ms, name, file="/home/ada/work/train.py", line=3, *, pid=12, thread=MAIN):
    where = {"pid": pid, "tid": thread, "ts": at_ms * 1000, "args": {"filename": file, "line": line}}
    return {"cat": "py-spy", "name": name, "ph": phase, **where}


@pytest.fixture
def converted(tmp_path, monkeypatch):
    """The tables of each process, by pid."""

    def convert(events, text=None):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "raw.json").write_text(json.dumps(events) if text is None else text)
        write_stacks(tmp_path / "raw.json", tmp_path, START, 100.0)
        return {int(path.parent.name): open_trace(path) for path in sorted(tmp_path.glob("*/stacks.jsonl"))}

    return convert


def rows(trace):
    """Return functions from the outermost on, start after py-spy's, and duration, in ms, and samples."""
    frames = {row["stack_id"]: row for row in trace.arrow("stack_frames").to_pylist()}

    def chain(number):
        return () if number is None else (*chain(frames[number]["parent_id"]), frames[number]["function"])

    moved = trace.run_facts()["t0_unix_ns"] - START.unix_ns
    return [
        (chain(row["stack_id"]), (row["start_ns"] + moved) / 1e6, row["dur_ns"] / 1e6, row["samples"])
        for row in trace.arrow("stacks").to_pylist()
    ]


CALLS = [
    event("B", 0, "<module>"),
    event("B", 0, "decode", line=7),
    event("E", 40, "decode", line=7),
    event("B", 70, "read", "/usr/lib/libc.so.6", 0),
    event("E", 90, "read", "/usr/lib/libc.so.6", 0),
    event("E", 90, "<module>"),
]


def test_a_sample_stands_for_the_time_since_the_one_before(converted):
    (trace,) = converted(CALLS).values()
    assert rows(trace) == [
        (("<module>", "decode"), -10.0, 40.0, 4),
        (("<module>",), 30.0, 30.0, 3),
        (("<module>", "read"), 60.0, 20.0, 2),
    ]
    assert [(row["tid"], row["name"]) for row in trace.arrow("threads").to_pylist()] == [(MAIN, "MainThread")]


def test_each_process_has_its_file_and_each_thread_its_stack(converted):
    work = [event("B", 5, "work", thread=LOADER), event("E", 25, "work", thread=LOADER)]
    other = [event("B", 6, "<module>", pid=40), event("E", 96, "<module>", pid=40)]
    traces = converted([*CALLS[:1], *work, *other])
    assert rows(traces[12]) == [(("<module>",), -10.0, 25.0, 2), (("work",), -5.0, 20.0, 2)]
    assert rows(traces[40]) == [(("<module>",), -4.0, 90.0, 9)]
    assert [trace.arrow("phases")["name"].to_pylist() for trace in traces.values()] == [["program"], ["worker"]]


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        ("{here}/src/data.py", ("src/data.py", "program")),
        ("/home/ada/other/data.py", ("data.py", "program")),
        ("/home/ada/.venv/lib/python3.12/site-packages/torch/optim/adam.py", ("torch/optim/adam.py", "library")),
        ("/home/ada/.pyenv/versions/3.12.1/lib/python3.12/json/encoder.py", ("json/encoder.py", "standard")),
        ("/opt/ada/lib/libtorch_cpu.so", ("libtorch_cpu.so", "native")),
        ("", ("?", "native")),
    ],
)
def test_files_are_named_by_what_tells_code_apart(tmp_path, converted, file, kept):
    (trace,) = converted([event("B", 0, "f", file.format(here=tmp_path)), event("E", 20, "f")]).values()
    assert [(row["file"], row["origin"]) for row in trace.arrow("stack_frames").to_pylist()] == [kept]


def test_our_own_hooks_and_threads_are_left_out_and_addresses_are_no_names(converted):
    hook = "/x/collectors/inject/traceviz_inject/hooks.py"
    own = [event("B", 0, "thread_run", "/lib/libpython3.so", thread=9), event("B", 0, "_run", hook, thread=9)]
    calls = [event("B", 0, "<module>"), event("B", 0, "call", hook), event("B", 0, "0x7f01", "/lib/libc.so.6", 0)]
    (trace,) = converted([*own, *calls, event("E", 20, "0x7f01"), event("E", 20, "_run", thread=9)]).values()
    assert rows(trace) == [(("<module>", "(compiled)"), -10.0, 20.0, 2)]


def test_what_was_cut_off_is_read_as_far_as_it_goes(converted):
    text = json.dumps(CALLS)
    (trace,) = converted(None, text[: text.index("read")]).values()
    assert rows(trace) == [(("<module>", "decode"), -10.0, 40.0, 4)]


def test_a_system_that_forbids_looking_into_others_says_what_allows_it(tmp_path, monkeypatch):
    monkeypatch.setattr("traceviz.collectors.pyspy.collector.find_pyspy", lambda: "/usr/bin/py-spy")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    (tmp_path / "proc/sys/kernel/yama").mkdir(parents=True)
    scope = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
    states = []
    for value in ("0\n", "1\n"):
        scope.write_text(value)
        states.append(PySpyCollector(tmp_path).availability())
    assert [state.state for state in states] == ["ready", "not-permitted"]
    assert states[1].fix == "sudo sysctl kernel.yama.ptrace_scope=0"
    assert PySpyCollector(Path("/nowhere")).availability().is_ready


@pytest.mark.parametrize(("ended", "unsampled"), [(True, []), (False, [(0,)])])
def test_of_a_recorder_that_ended_before_the_program_the_rest_is_not_sampled(tmp_path, ended, unsampled):
    (tmp_path / "raw.json").write_text(json.dumps(CALLS))
    write_stacks(tmp_path / "raw.json", tmp_path, START, 100.0, ended=ended)
    phases = open_trace(tmp_path / "12" / "stacks.jsonl").arrow("phases").to_pylist()
    assert [(row["dur_ns"],) for row in phases if row["kind"] == "unsampled"] == unsampled


def test_samples_that_a_killed_recorder_lost_are_named(tmp_path):
    plan = Plan(tmp_path, (), ("py-spy",))
    (plan.raw("py-spy") / "12").mkdir(parents=True)
    (plan.raw("py-spy") / "12" / "stacks.jsonl").touch()
    for lost, codes in ((0, []), (2, ["recorder-restarted"])):
        (plan.raw("py-spy") / "status.json").write_text(json.dumps({"lost": lost}))
        assert [problem.code for problem in PySpyCollector().harvest(plan).problems] == codes
