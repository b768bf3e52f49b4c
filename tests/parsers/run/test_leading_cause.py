"""Leading cause in the first sentence of a run with several recordings: the cause from the best recording alone.

Nsight Systems sees that the training thread waits in the operating system, but not for what. Every case is a run folder
of ten steps of 100 ms: the data of nsys, and the data of a framework's profiler or samples of stacks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.analyses.builders import tables
from tests.analyses.stacks import sampled
from tests.parsers.run.folders import SECOND, run_folder
from tests.support.leading import leading
from traceviz.api import analyze, report_on
from traceviz.trace.tables import TraceTables

pytestmark = pytest.mark.process

MS = 10**6
T0 = 1_795_254_370 * SECOND
STEPS = [n * 100 * MS for n in range(10)]
PID, MAIN, EXECUTOR, HELPER = 12, {"thread_id": 0}, {"thread_id": 1}, {"thread_id": 2}
THREADS = [(0, 0, "python3", {"tid": PID}), (1, 0, "executor", {"tid": 13}), (2, 0, "reader", {"tid": 14})]


def recording(format_name: str, **rows: list[tuple[Any, ...]]) -> TraceTables:
    """Return tables of one source of the process."""
    facts = {"t0_unix_ns": T0, "format": format_name, "producer": format_name, "reader": format_name}
    processes = [(0, "python3", {"pid": PID})]
    return tables(run=facts, processes=processes, threads=THREADS, span_ns=1_000 * MS, **rows)


def each_step(start: int, dur: int, *what: Any) -> list[tuple[Any, ...]]:
    """Return an event of every step, in milliseconds after its start."""
    return [(begin + start * MS, dur * MS, *what) for begin in STEPS]


def in_order(*events: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((event for rows in events for event in rows), key=lambda event: event[:1])


MARKS = [(begin, 100 * MS, number) for number, begin in enumerate(STEPS)]
FUTEX = each_step(2, 96, "futex")
TENSORFLOW = in_order(
    each_step(1, 98, "KernelAndDeviceFunc::Run", "runtime"),
    each_step(5, 60, "model/conv2d/Conv2D:Conv2D", "op", EXECUTOR),
    each_step(66, 30, "model/dense/MatMul:MatMul", "op", EXECUTOR),
)
JAX = in_order(each_step(5, 70, "ynn_fusion.1", "op", EXECUTOR), each_step(20, 74, "dot.4", "op", HELPER))
AUTOGRAD = in_order(
    each_step(1, 20, "aten::conv2d", "op"),
    each_step(25, 70, "autograd::engine::evaluate_function: ConvolutionBackward0", "op", EXECUTOR),
    each_step(26, 68, "aten::convolution_backward", "op", EXECUTOR),
)
OPENMP = each_step(1, 98, "aten::convolution_backward", "op")
IDLE = each_step(95, 3, "aten::add", "op")
SLEEPS = each_step(2, 90, "clock_nanosleep")


def stacks_of(stack: str, cpu: float) -> dict[str, TraceTables]:
    """Return samples of the main thread's stack throughout the run, and of the processor time of the program."""
    rows = sampled((0, 1_000 * MS, stack, {"samples": 100, "cpu_ns": 0, "state": "waiting"}))
    phases = [(begin, 100 * MS, "step", "train.py", {"thread_id": 0, "number": n}) for n, begin in enumerate(STEPS)]
    used = [(n * 100 * MS, "program CPU", cpu, {"device_id": None, "unit": "%"}) for n in range(11)]
    return {
        "stacks": recording("stacks", phases=phases, **rows),
        "resources": recording("resources", samples=used),
    }


CASES: dict[str, tuple[str, list[tuple[Any, ...]], list[tuple[Any, ...]], str]] = {
    "the executor of TensorFlow computes": ("tensorflow", TENSORFLOW, FUTEX, "the program computes"),
    "threads of JAX compute, and no call is around the wait": ("jax", JAX, FUTEX, "the program computes"),
    "autograd's thread computes": ("torch", AUTOGRAD, each_step(24, 73, "pthread_cond_wait"), "the program computes"),
    "OpenMP's threads meet in an operator": ("torch", OPENMP, each_step(5, 90, "futex"), "the program computes"),
    "a short operator, and a sleep": ("torch", IDLE, SLEEPS, "host blocked"),
    "a short operator, and a wait while nothing works": ("torch", IDLE, each_step(2, 90, "futex"), "host blocked"),
}


@pytest.mark.parametrize("case", CASES)
def test_nsys_changes_what_leads_only_where_nothing_of_the_program_works(tmp_path: Path, case: str) -> None:
    collector, operations, calls, expected = CASES[case]
    profiler = recording(collector, host_ops=operations, steps=MARKS)
    nsys = recording("nsys", os_calls=calls, nvtx=each_step(0, 99, "step", MAIN))
    alone = leading(analyze(profiler).verdict.sentence)
    folder = run_folder(tmp_path / "run", {collector: profiler, "nsys": nsys})
    both = report_on(folder).verdict.sentence
    assert leading(both) == expected, both
    assert alone in (expected, "unexplained"), alone


WAITING = {
    "a lock": ("train.py:9 main > train.py:23 add_metric > threading.py:324 wait > lock.acquire", 2.0, "locks"),
    "a call of a library, and nothing of the program works": ("train.py:9 main > numpy.dot", 2.0, "host blocked"),
    "the threads of a library": ("train.py:9 main > numpy.dot", 190.0, "the program computes"),
}


@pytest.mark.parametrize("what", WAITING)
def test_samples_of_stacks_say_what_the_program_waits_for(tmp_path: Path, what: str) -> None:
    stack, cpu, expected = WAITING[what]
    profiler = recording("torch", host_ops=IDLE, steps=MARKS)
    nsys = recording("nsys", os_calls=each_step(2, 90, "futex"))
    folder = run_folder(tmp_path / "run", {"torch": profiler, "nsys": nsys, **stacks_of(stack, cpu)})
    sentence = report_on(folder).verdict.sentence
    assert leading(sentence) == expected, sentence
