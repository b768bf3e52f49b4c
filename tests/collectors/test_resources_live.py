"""The sampler beside real programs."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from traceviz.collectors.base import Plan
from traceviz.collectors.resources import ResourcesCollector

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="sampling needs /proc")

THREE_THREADS = """
import hashlib, sys, threading
told = threading.Event()
def work():
    while not told.is_set():
        hashlib.pbkdf2_hmac("sha256", b"x", b"y", 50_000)
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
sys.stdin.read()
told.set()
"""

GROWER = """
import select, sys
kept = []
while not select.select([sys.stdin], [], [], 0.05)[0]:
    kept.append(bytearray(b"x" * 4_000_000))
"""

CHILDREN = """
import subprocess, sys
busy = "import time\\nend = time.process_time() + 0.25\\nwhile time.process_time() < end: pass"
for _ in range(4):
    subprocess.run([sys.executable, "-S", "-c", busy])
sys.stdin.read()
"""


def record(folder, program, environment=None):
    """Harvest of a program that runs beside the collector until some seconds were sampled, and the samples."""
    collector, plan = ResourcesCollector(), Plan(folder, (), ("resources",), rate_hz=20.0)
    raw = plan.raw("resources")
    raw.mkdir(parents=True)
    waiting = f"import sys\nsys.stdin.readline()\n{program}"
    variables = {**os.environ, **(environment or {})}
    child = subprocess.Popen([sys.executable, "-c", waiting], stdin=subprocess.PIPE, env=variables)
    companion = collector.start(plan, child.pid)
    wait_for(raw, "part-*.parquet")
    child.stdin.write(b"\n")
    child.stdin.flush()
    time.sleep(3)
    child.stdin.close()
    child.wait()
    companion.stop()
    return collector.harvest(plan), samples(raw)


def wait_for(folder, pattern):
    deadline = time.monotonic() + 60
    while not list(folder.glob(pattern)) and time.monotonic() < deadline:
        time.sleep(0.05)


def samples(folder):
    return pl.read_parquet(folder / "part-*.parquet").with_columns(pl.col("metric").cast(pl.String))


def values(frame, metric):
    return frame.filter(pl.col("metric") == metric)["value"]


def test_three_busy_threads_are_counted_beside_the_main_thread(tmp_path):
    harvest, frame = record(tmp_path, THREE_THREADS, {"OMP_NUM_THREADS": "3"})
    assert values(frame, "program threads").max() == 4
    assert 2 <= values(frame, "program runnable threads").max() <= 4
    assert values(frame, "program CPU").max() > 10
    assert harvest.problems == ()
    assert harvest.sources == (tmp_path / "raw/resources",)
    assert harvest.facts["cpu_ns"] > 0
    described = json.loads((tmp_path / "raw/resources/resources.json").read_text())
    assert (described["state"], described["settings"]["env.OMP_NUM_THREADS"]) == ("ended", "3")


def test_memory_that_grows_by_4_megabytes_at_a_time_is_seen_growing(tmp_path):
    _, frame = record(tmp_path, GROWER)
    memory = values(frame, "program memory")
    assert memory.max() - memory.min() > 20e6


def test_children_that_come_and_go_leave_all_their_cpu_time(tmp_path):
    _, frame = record(tmp_path, CHILDREN)
    cpu = frame.filter(pl.col("metric") == "program CPU").sort("unix_ns")
    seconds = (cpu["value"] / 100 * cpu["unix_ns"].diff().fill_null(0) / 1e9).sum()
    assert (
        0.6 < seconds < 1.6
    )  # four times 0.25 s and the start of four interpreters, less what came before the sampler
    assert values(frame, "program processes").max() == 2


def test_a_sampler_that_is_killed_leaves_its_parts_and_a_problem(tmp_path):
    collector, plan = ResourcesCollector(), Plan(tmp_path, (), ("resources",))
    plan.raw("resources").mkdir(parents=True)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    companion = collector.start(plan, child.pid)
    wait_for(plan.raw("resources"), "part-*.parquet")
    companion._process.send_signal(signal.SIGKILL)
    companion.stop()
    child.kill()
    child.wait()
    harvest = collector.harvest(plan)
    assert [problem.code for problem in harvest.problems] == ["sampler-not-ended"]
    assert values(samples(plan.raw("resources")), "program processes").max() == 1


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
