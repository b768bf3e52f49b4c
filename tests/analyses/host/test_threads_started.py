"""Threads that a program starts again and again, from their running numbers."""

import pytest

from tests.analyses.builders import trace
from tests.analyses.host_literals import ANALYSIS, EIGHT, SECOND, percent, series
from tests.analyses.stacks import sampled
from traceviz.report import Severity

MS = 1_000_000
LOADS = "train.py:9 main > train.py:5 fetch > threading.py:930 start > threading.py:600 wait"
COMPUTES = "train.py:9 main > train.py:20 train_step"


def found(names, *, joins=0, **more):
    """Return findings for ten steps of one second; in ``joins`` tenths of each, the main thread starts threads."""
    rows = []
    for number in range(10):
        begin = number * SECOND
        rows.append((begin, joins * SECOND // 10, LOADS, {"samples": joins, "cpu_ns": 0}))
        rows.append((begin + joins * SECOND // 10, (10 - joins) * SECOND // 10, COMPUTES, {"samples": 10 - joins}))
    stacks = sampled(*[row for row in rows if row[1]])
    phases = [(n * SECOND, SECOND, "step", "train.py", {"thread_id": 0, "number": n}) for n in range(10)]
    samples = [*percent("program CPU", *[100] * 10), *series("program threads", [34] * 10)]
    threads = [(0, 0, "MainThread"), *((at, 0, name) for at, name in enumerate(names, 1))]
    view = trace(samples=samples, settings=list(EIGHT.items()), threads=threads, phases=phases, span_ns=0, **stacks)
    return {finding.code: finding for finding in ANALYSIS.judge(ANALYSIS.run(view))}.get("TV618")


class TestThreadsStarted:
    def test_the_highest_number_says_how_many_were_started_for_what(self):
        finding = found([f"Thread-{number} (load_image)" for number in (17, 60, 200, 255, 320)])
        assert finding.message == (
            "The program started at least 320 threads, mostly for load_image, 32 a step; up to 34 "
            "threads were there at once on 8 cores."
        )
        assert finding.severity is Severity.INFO

    def test_starting_and_joining_them_is_the_time_at_stake(self):
        finding = found([f"Thread-{number}" for number in range(100, 110)], joins=2)
        assert (finding.cost_ns, finding.severity) == (2 * SECOND, Severity.ERROR)
        assert finding.message.startswith(
            "Threads: 20.0 % of the steps of the run goes into starting and joining threads:"
        )

    @pytest.mark.parametrize("names", [[f"Thread-{n}" for n in range(90, 100)], ["Thread-1000 (serve)"] * 2])
    def test_a_few_threads_or_a_few_of_many_are_none_for_each_item(self, names):
        assert found(names) is None

    def test_a_pool_for_each_batch_is_told_from_one_pool_of_many_threads(self):
        assert found([f"ThreadPoolExecutor-0_{number}" for number in range(200)]) is None
        finding = found([f"ThreadPoolExecutor-{number}_0" for number in range(36, 41)])
        assert finding.message.startswith("The program started at least 40 pools of threads, 4 a step;")

    def test_names_that_the_program_gave_count_for_nothing(self):
        assert found([f"worker-{number}" for number in range(500)]) is None
