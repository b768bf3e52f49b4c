"""The sampler with real programs."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from traceviz.collectors.base import Harvest, Plan
from traceviz.collectors.program.processes import begin
from traceviz.collectors.sampler.collector import ResourcesCollector

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="sampling needs /proc"),
]

PROGRAM = '''
import hashlib, os, subprocess, sys, threading
sampler = sys.stdin.readline().strip()
began, over, kept = os.times(), threading.Event(), []
def work():
    while not over.is_set():
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 20_000)
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
for _ in range(10):
    kept.append(bytearray(b"x" * 4_000_000))
    over.wait(0.05)
over.set()
[thread.join() for thread in threads]
busy = """
import os, sys, time
while time.process_time() < 0.15: pass
own, opened = f"/proc/{os.getpid()}/stat", f"/proc/{sys.argv[1]}/fd"
def is_sampled():
    with os.scandir(opened) as files:
        return own in [os.readlink(file.path) for file in files]
while not is_sampled(): time.sleep(0.02)
time.sleep(0.1)
"""
for _ in range(4):
    subprocess.run([sys.executable, "-S", "-c", busy, sampler])
print(sum(os.times()[:4]) - sum(began[:4]), flush=True)
sys.stdin.read()
'''
"""Three busy threads, 40 MB of memory, then four children that use 0.15 s each; prints the CPU time of all of it.

Each child lives until the sampler, whose process id is read first, has it open, and two turns longer: a busy machine
may leave the sampler no turn while one computes.
"""


RATE_HZ = 20.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """The harvest for :data:`PROGRAM`, the folder, its samples, and the CPU time that the system counted."""

    harvest: Harvest
    folder: Path
    samples: pl.DataFrame
    cpu_s: float


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The program, recorded up to three times: a busy machine may leave the sampler less than half of its turns."""
    for _ in range(3):
        found = record(tmp_path_factory.mktemp("run"))
        moments = found.samples["unix_ns"].unique()
        if len(moments) >= RATE_HZ / 2 * (moments.max() - moments.min()) / 1e9:
            break
    return found


def record(folder):
    """Record the program from its first sample on. The sampler ends before the program, so it sees all of it."""
    collector = ResourcesCollector()
    plan = Plan(folder, (), ("resources",), rate_hz=RATE_HZ)
    raw = plan.raw("resources")
    raw.mkdir(parents=True)
    variables, pipe = {**os.environ, "OMP_NUM_THREADS": "3"}, subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, env=variables) as child:
        companion = collector.start(plan, child.pid)
        wait_for(raw, "part-*.parquet")
        child.stdin.write(f"{companion.process.pid}\n".encode())
        child.stdin.flush()
        cpu_s = float(child.stdout.readline())
        time.sleep(0.3)
        companion.stop()
    return Recorded(collector.harvest(plan), raw, samples(raw), cpu_s)


def wait_for(folder, pattern):
    deadline = time.monotonic() + 60
    while not list(folder.glob(pattern)) and time.monotonic() < deadline:
        time.sleep(0.05)


def samples(folder):
    return pl.read_parquet(folder / "part-*.parquet").with_columns(pl.col("metric").cast(pl.String))


def values(frame, metric):
    return frame.filter(pl.col("metric") == metric)["value"]


def integral(frame, metric):
    """Sum over time, in the metric's unit times seconds: a sample speaks for the time since the one before."""
    rows = frame.filter(pl.col("metric") == metric).sort("unix_ns")
    return (rows["value"] * rows["unix_ns"].diff().fill_null(0) / 1e9).sum()


def standard_error(frame, metric):
    """Of the integral: how many threads want a core is looked at now and then, and between two looks it changes."""
    rows = frame.filter(pl.col("metric") == metric)
    seconds = (rows["unix_ns"].max() - rows["unix_ns"].min()) / 1e9
    return rows["value"].std() * seconds / len(rows) ** 0.5


def test_three_busy_threads_are_counted_beside_the_main_thread(recorded):
    assert 4 <= values(recorded.samples, "program threads").max() <= 5  # the fifth is that of a child
    wanted, waited = (
        integral(recorded.samples, f"program {name}") for name in ("runnable threads", "waits for a core")
    )
    expected = recorded.cpu_s + waited / 100
    by_chance = 4 * standard_error(recorded.samples, "program runnable threads")
    assert wanted == pytest.approx(expected, abs=max(0.1 * expected, 0.2, min(by_chance, 0.4 * expected)))
    assert values(recorded.samples, "program busiest thread").max() > 10


def test_cpu_time_is_what_the_system_counts_that_of_4_children_included(recorded):
    assert recorded.cpu_s > 0.6
    assert integral(recorded.samples, "program CPU") / 100 == pytest.approx(recorded.cpu_s, rel=0.05, abs=0.1)
    assert values(recorded.samples, "program processes").max() == 2


def test_memory_that_grows_by_40_megabytes_is_seen_growing(recorded):
    memory = values(recorded.samples, "program memory")
    assert 36e6 < memory.max() - memory.min() < 80e6


def test_a_harvest_is_the_folder_what_it_cost_and_what_the_program_was_told(recorded):
    assert (recorded.harvest.problems, recorded.harvest.sources) == ((), (recorded.folder,))
    assert recorded.harvest.facts["cpu_ns"] > 0
    described = json.loads((recorded.folder / "resources.json").read_text())
    assert (described["state"], described["settings"]["env.OMP_NUM_THREADS"]) == ("ended", "3")
    assert described["gpu_reason"] or described["gpus"]


@contextlib.contextmanager
def sampling(folder):
    """A program that does nothing, with a sampler."""
    collector, plan = ResourcesCollector(), Plan(folder, (), ("resources",))
    plan.raw("resources").mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as program:
        companion = collector.start(plan, program.pid)
        try:
            yield collector, plan, companion
        finally:
            companion.stop()
            program.kill()


def test_a_sampler_that_is_killed_leaves_its_parts_and_a_problem(tmp_path):
    with sampling(tmp_path) as (collector, plan, companion):
        wait_for(plan.raw("resources"), "part-*.parquet")
        companion.process.send_signal(signal.SIGKILL)
    harvest = collector.harvest(plan)
    assert [problem.code for problem in harvest.problems] == ["sampler-not-ended"]
    assert values(samples(plan.raw("resources")), "program processes").max() == 1


def test_a_sampler_ends_in_order_with_the_recording_that_started_it(tmp_path):
    collector, plan = ResourcesCollector(), Plan(tmp_path, (), ("resources",))
    plan.raw("resources").mkdir(parents=True)
    program = subprocess.Popen(["sleep", "60"])
    recording = (
        "import sys, time\nfrom pathlib import Path\nfrom traceviz.collectors.base import Plan\n"
        "from traceviz.collectors.sampler.collector import ResourcesCollector\n"
        "plan = Plan(Path(sys.argv[1]), (), ('resources',))\n"
        "print(ResourcesCollector().start(plan, int(sys.argv[2])).process.pid, flush=True)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-c", recording, str(tmp_path), str(program.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        sampler = int(parent.stdout.readline())
        wait_for(plan.raw("resources"), "resources.json")
        parent.kill()
    deadline = time.monotonic() + 30
    while begin(sampler) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert begin(sampler) == 0
    assert program.poll() is None  # it keeps running
    program.kill()
    program.wait()
    assert collector.harvest(plan).problems == ()


def test_a_sampler_that_is_stopped_and_continued_goes_on(tmp_path):
    with sampling(tmp_path) as (_, plan, companion):
        wait_for(plan.raw("resources"), "resources.json")
        companion.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)  # longer than a turn of the sampler
        companion.process.send_signal(signal.SIGCONT)
        wait_for(plan.raw("resources"), "part-*.parquet")  # after two seconds of its time
        described = json.loads((plan.raw("resources") / "resources.json").read_text())
    assert described["state"] == "recording"


def test_a_program_that_is_gone_already_is_a_problem_and_no_error(tmp_path):
    collector, plan = ResourcesCollector(), Plan(tmp_path, (), ("resources",))
    plan.raw("resources").mkdir(parents=True)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    collector.start(plan, child.pid).stop()
    harvest = collector.harvest(plan)
    assert (harvest.sources, [problem.code for problem in harvest.problems]) == ((), ["no-samples"])


def test_nothing_recorded_is_1_problem(tmp_path):
    harvest = ResourcesCollector().harvest(Plan(tmp_path, (), ("resources",)))
    assert (harvest.sources, len(harvest.problems)) == ((), 1)


def test_it_is_ready_here():
    assert ResourcesCollector().availability().is_ready
