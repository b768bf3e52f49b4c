"""A world of two steps whose timeline is worked out by hand, in microseconds."""

import os
import subprocess
import sys
from dataclasses import fields
from hashlib import sha256

import pytest

from benchmarks.diagnosis.knobs import KNOBS, Knob
from benchmarks.diagnosis.names import OPTIMIZER
from benchmarks.diagnosis.record import Kind, Work
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.truth import find_truth, run
from benchmarks.diagnosis.worlds import World, draw_world

TWO_STEPS = World(0, steps=2, layers=1, operators=1, kernel_ns=100_000, operator_ns=10_000, workers=0, spread=0)
"""A step: 36 to load, then a copy (150), a kernel forward (100) and backward (200), and two of the optimizer (10)."""


def in_microseconds(spans, start=0):
    return [((span.start - start) / 1_000, (span.end - start) / 1_000) for span in spans]


@pytest.mark.parametrize("step", [0, 1])
def test_device_work_of_each_step_follows_its_launch_and_the_work_before_it(step):
    record = train(TWO_STEPS)
    device = record.device[6 * step :][:5]  # the sixth is the copy of the result

    assert in_microseconds(device, start=step * 524_500) == [
        (48, 198),  # the call ends at 45, and work starts 3 after it
        (198.8, 298.8),  # 0.8 after the work before it
        (299.6, 499.6),
        (500.4, 510.4),
        (511.2, 521.2),
    ]


def test_host_calls_return_before_the_device_works_and_the_step_ends_with_the_result():
    record = train(TWO_STEPS)
    first = [span for span in record.spans if span.end <= 524_500]

    launches = [span for span in first if span.name == "cudaLaunchKernel"]
    assert in_microseconds(launches) == [(52, 56), (86, 90), (100, 104), (114, 118)]
    # The result is on the host at 523.5, and a microsecond later the call returns.
    assert in_microseconds(span for span in first if span.name == "cudaStreamSynchronize") == [(128, 524.5)]
    assert in_microseconds(span for span in record.spans if span.kind is Kind.STEP) == [(0, 524.5), (524.5, 1049)]
    assert record.end == 1_049_000


def test_time_of_a_slow_loader_is_gained_whole():
    truth = find_truth(World(**as_fields(TWO_STEPS), strengths={Knob.SLOW_LOADER: 1.0}))

    assert truth.gains == {Knob.SLOW_LOADER: pytest.approx(600 / 1_649)}


def test_sleep_behind_a_copy_is_gained_only_as_far_as_the_copy_does_not_hide_it():
    # The sleep takes 300, but the device still copies the batch for 153 of it; forward starts at 359 instead of 198.8.
    truth = find_truth(World(**as_fields(TWO_STEPS), strengths={Knob.SLEEP: 1.0}))

    assert truth.record.step_times == [684_700, 684_700]
    assert truth.gains == {Knob.SLEEP: pytest.approx(1 - 1_049 / 1_369.4)}


def test_causes_that_hide_each_other_are_marked():
    # A loader and a logger follow each other, so their times add up. Python that runs while kernels do is hidden by
    # slow kernels, and shows once they are fast.
    in_turn = find_truth(World(**as_fields(TWO_STEPS), strengths={Knob.SLOW_LOADER: 1.0, Knob.LOGGING: 1.0}))
    at_once = find_truth(World(0, spread=0, steps=2, strengths={Knob.HOST_PYTHON: 2.0, Knob.SLOW_KERNELS: 2.0}))

    assert in_turn.hiding == ()
    assert at_once.hiding == (frozenset({Knob.HOST_PYTHON, Knob.SLOW_KERNELS}),)


def test_all_ranks_leave_a_collective_together():
    record = train(World(3, steps=2, ranks=4, strengths={Knob.STRAGGLER: 1.0}))
    collectives = [span for span in record.device if span.work is Work.COLLECTIVE]

    ends = {}
    for span in collectives:
        ends.setdefault(span.rank, []).append(span.end)
    assert ends[0] == ends[1] == ends[2] == ends[3]
    assert len(ends[0]) == 2 * 6


def test_equal_worlds_have_equal_records():
    world = draw_world(5)

    assert run(world) == run(world)
    assert draw_world(5) == world


def test_another_process_records_the_same():
    # A graph and a copying thread; a pipeline. Hashes of text differ between processes.
    program = (
        "from hashlib import sha256\n"
        "from benchmarks.diagnosis.truth import find_truth\n"
        "from benchmarks.diagnosis.worlds import draw_world\n"
        "print(sha256(repr([find_truth(draw_world(seed)) for seed in (1, 78)]).encode()).hexdigest())\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    truths = [find_truth(draw_world(seed)) for seed in (1, 78)]

    assert sha256(repr(truths).encode()).hexdigest() == other.strip()


@pytest.mark.parametrize("seed", [*range(20), 25])  # 25: as many loader processes as cores
def test_every_rank_finishes_all_steps(seed):
    world = draw_world(seed)
    record = run(world)

    steps = [span for span in record.spans if span.kind is Kind.STEP or span.name == "execute_model"]
    assert len(steps) >= world.steps * world.ranks
    assert 3 <= world.steps <= 200


def test_a_cause_taken_away_changes_no_other_draw():
    world = World(4, steps=3, strengths={Knob.LOGGING: 0.5})
    kernels = [span.end - span.start for span in run(world).device]

    assert [span.end - span.start for span in run(world.without(Knob.LOGGING)).device] == kernels


SHAPES = {
    Knob.PIPELINE_BUBBLE: {"stages": 2, "passes": 28, "layers": 1},
    Knob.UNEVEN_STAGES: {"stages": 2, "passes": 28, "layers": 1},
    Knob.TENSOR_COMMUNICATION: {"tensor": 2},
    Knob.SMALL_MICRO_BATCHES: {"passes": 2},
    Knob.GRAPH_CAPTURE: {"graphs": True},
}
"""Shapes of programs that can have these causes."""


@pytest.mark.parametrize("knob", Knob)
def test_every_cause_costs_time_and_healthy_worlds_have_none(knob):
    facts = KNOBS[knob]
    size = {"layers": 3, "ranks": facts.ranks, "steps": 6, "kernel_ns": 60_000} | SHAPES.get(knob, {})
    world = World(
        1,
        workers=0 if knob is Knob.SLOW_LOADER else 2,
        cores=2 if knob is Knob.OTHER_PROGRAMS else 8,
        serves=facts.serves,
        strengths={knob: facts.most},
        **size,
    )

    assert find_truth(world).gains[knob] > 0.05
    assert find_truth(world.without(knob)).gains == {}


@pytest.mark.parametrize(
    ("knob", "steps"),
    [
        (Knob.SLOW_LOADER, 2),
        (Knob.INPUT_COPY, 2),
        (Knob.SLEEP, 2),
        (Knob.LOCK, 2),
        (Knob.CHILD_PROCESSES, 2),
        (Knob.GARBAGE_COLLECTION, 2),
        (Knob.LOGGING, 2),
        (Knob.ALLOCATION, 2),
        (Knob.STREAM_CREATION, 2),
        (Knob.MANAGED_MEMORY, 2),
        (Knob.LAYOUT, 2),
        (Knob.SLOW_KERNELS, 2),
        (Knob.SMALL_GRIDS, 2),
        (Knob.OFFLOAD, 2),
        (Knob.DEVICE_COPIES, 2),
        (Knob.RESULTS_TO_HOST, 2),
        (Knob.CHECKPOINT, 3),  # every third step
        (Knob.EVALUATION, 3),
        (Knob.COMPILATION, 4),  # every fourth
    ],
)
def test_a_cause_adds_the_time_that_its_strength_says(knob, steps):
    # The copy of the batch (150 us), and the calls between two pieces of work, hide a little of some causes.
    workers = 0 if knob is Knob.SLOW_LOADER else 2
    world = World(0, steps=steps, layers=2, kernel_ns=500_000, workers=workers, spread=0)
    added = run(World(**as_fields(world), strengths={knob: 1.0})).end - run(world).end

    assert abs(added / steps - world.device_ns) < 0.02 * world.device_ns


@pytest.mark.parametrize(
    "knob",
    [
        Knob.PIPELINE_BUBBLE,
        Knob.UNEVEN_STAGES,
        Knob.TENSOR_COMMUNICATION,
        Knob.STRAGGLER,
        Knob.UNEVEN_RANKS,
        Knob.HOST_COLLECTIVES,
    ],
)
def test_a_cause_of_parallel_ranks_adds_the_time_that_its_strength_says(knob):
    # Two micro-batches have a bubble of a half: 0.5 - 1 / 28 is more than with 28 of them.
    strength = 0.5 - 1 / 28 if knob is Knob.PIPELINE_BUBBLE else 1.0
    shape = SHAPES.get(knob, {}) | {"ranks": 2, "steps": 2, "kernel_ns": 500_000, "spread": 0}
    world = World(0, **shape)
    added = run(World(0, **shape, strengths={knob: strength})).end - run(world).end

    assert added / 2 == pytest.approx(strength * world.device_ns, rel=0.04)


def test_small_micro_batches_add_time_of_the_host_until_it_takes_as_long_as_the_strength_says():
    world = World(
        0, steps=2, layers=3, passes=2, kernel_ns=200_000, spread=0, strengths={Knob.SMALL_MICRO_BATCHES: 1.0}
    )
    device_ns = 3 * 3 * 4 * 200_000 * 2

    assert world.device_ns == device_ns
    assert world.micro_batches == round(2 * device_ns / (80_000 + 2 * 12 * 18_000)) == 56
    assert run(world).end / 2 == pytest.approx(2 * device_ns, rel=0.04)
    kernels = [span for span in run(world).device if span.work is Work.KERNEL and span.name != OPTIMIZER]
    assert len(kernels) == 2 * 2 * 12 * 56
    # A micro-batch has less to compute, and all of them as much as before.
    assert sum(span.end - span.start for span in kernels) / 2 == pytest.approx(device_ns, rel=0.001)


def as_fields(world):
    return {field.name: getattr(world, field.name) for field in fields(world) if field.name != "strengths"}
