"""Timelines of parallel ranks, worked out by hand, in microseconds."""

from dataclasses import replace

import pytest

from benchmarks.diagnosis.parallel import order_passes, place_of
from benchmarks.diagnosis.record import Work
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.worlds import PASSES_OF_STAGE, World


def timeline(record, rank, *kinds):
    """Return start and end of the device work of a rank in microseconds, by its start."""
    spans = sorted((span for span in record.device if span.rank == rank), key=lambda span: span.start)
    return [(span.start / 1_000, span.end / 1_000) for span in spans if span.work in kinds]


def test_ranks_of_a_layer_are_neighbours_then_replicas_then_stages():
    world = World(0, ranks=8, stages=2, tensor=2)
    place = place_of(world, 3)

    assert (place.stage, place.tensor, place.data, place.before, place.after) == (0, (2, 3), (1, 3), None, 7)
    assert (place_of(world, 7).stage, place_of(world, 7).before, place_of(world, 7).after) == (1, 3, None)


@pytest.mark.parametrize(
    ("stages", "stage", "expected"),
    [(1, 0, "FBFBFBFBFB"), (4, 0, "FFFFBFBBBB"), (4, 2, "FFBFBFBFBB"), (4, 3, "FBFBFBFBFB")],
)
def test_a_stage_waits_for_its_first_gradients_and_then_alternates(stages, stage, expected):
    passes = order_passes(World(0, ranks=stages, stages=stages, passes=5), stage)

    assert "".join("F" if is_forward else "B" for is_forward in passes) == expected


PASSES = World(0, steps=1, passes=2, layers=1, operators=1, operator_ns=10_000, workers=0, spread=0)
"""A step begins with 42 to load. A micro-batch takes 75 to copy, 200 forward and 400 backward, with 0.8 between."""


def test_gradients_accumulate_over_two_passes_before_the_optimizer_and_are_reduced_once():
    alone = train(PASSES)
    two = train(replace(PASSES, ranks=2))

    assert timeline(alone, 0, Work.HOST_TO_DEVICE, Work.KERNEL) == [
        (54, 129),
        (129.8, 329.8),
        (330.6, 730.6),
        (731.4, 806.4),
        (807.2, 1007.2),
        (1008, 1408),
        (1408.8, 1428.8),  # the optimizer
        (1429.6, 1449.6),
    ]
    # 8 % of 1200 are 96, and half of that in each of two micro-batches; they begin when the last gradient is there.
    assert timeline(two, 0, Work.COLLECTIVE) == [(1408, 1456)]
    assert timeline(two, 0, Work.KERNEL)[-2:] == [(1456, 1476), (1476.8, 1496.8)]


def test_ranks_that_share_a_layer_add_its_results_in_the_order_of_the_computing_stream():
    record = train(World(0, steps=1, ranks=2, tensor=2, layers=1, operators=1, operator_ns=10_000, workers=0, spread=0))

    for rank in (0, 1):
        # 4 % of 600 in two collectives of 12.
        assert timeline(record, rank, Work.KERNEL, Work.COLLECTIVE)[:4] == [
            (204.8, 404.8),
            (405.6, 417.6),
            (418.4, 818.4),
            (819.2, 831.2),
        ]
    assert {span.stream for span in record.device} == {7}


TWO_STAGES = replace(PASSES, ranks=2, stages=2, kernel_ns=1_000_000)
"""A micro-batch takes 1,000 forward and 2,000 backward on each stage, 75 to copy, and 9 to send to the other stage."""


def test_two_stages_with_two_micro_batches_have_a_bubble_of_one_micro_batch():
    record = train(TWO_STAGES)
    first, last = timeline(record, 0, Work.KERNEL)[:4], timeline(record, 1, Work.KERNEL)[:4]

    assert first == [
        (177.8, 1177.8),
        (1254.4, 2254.4),  # the copy of its batch takes 75, with 0.8 before and after
        (4196.6, 6196.6),  # backward, as soon as the gradient of the other stage has come
        (7282.2, 9282.2),
    ]
    assert last == [
        (1186.8, 2186.8),  # 9 after the end on the first stage
        (2187.6, 4187.6),
        (4272.4, 5272.4),  # after the copy of its batch and 9 to receive what is ready
        (5273.2, 7273.2),
    ]
    # A forward and a backward pass are 3,000. The rest are 3 transfers of 9, a copy of 75, and 3 times 0.8.
    busy = sum(end - start for start, end in first)
    assert first[-1][1] - first[0][0] - busy == pytest.approx(3_000 + 3 * 9 + 75 + 3 * 0.8)


def test_a_stage_that_waits_is_in_a_receiving_kernel_and_only_two_ranks_meet():
    record = train(replace(TWO_STAGES, ranks=4))
    waits = [span for span in record.device if span.rank == 2 and span.operation == "recv"]

    assert [(span.start / 1_000, span.end / 1_000) for span in waits] == [(177, 1186.8), (4263.4, 4272.4)]
    assert {span.members for span in waits} == {(0, 2)}
    assert {span.members for span in record.device if span.operation == "allreduce" and span.rank == 2} == {(), (2, 3)}


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("spread", [0, 0.05, 0.25])
def test_stages_of_a_healthy_pipeline_wait_for_less_than_a_sixteenth_of_the_step(stages, spread):
    world = World(
        3,
        steps=2,
        ranks=stages,
        stages=stages,
        passes=PASSES_OF_STAGE * (stages - 1),
        layers=1,
        kernel_ns=300_000,
        spread=spread,
    )
    record = train(world)

    for rank in range(stages):
        kernel_ns = sum(
            span.end - span.start for span in record.device if span.rank == rank and span.work is Work.KERNEL
        )
        assert kernel_ns > 15 / 16 * record.end


@pytest.mark.parametrize("tensor", [1, 2, 4])
@pytest.mark.parametrize("spread", [0, 0.05])
def test_replicas_and_parts_of_a_healthy_program_lose_less_than_a_tenth_to_one_another(tensor, spread):
    record = train(World(3, steps=4, ranks=4, tensor=tensor, spread=spread))

    for rank in range(4):
        kernel_ns = sum(
            span.end - span.start for span in record.device if span.rank == rank and span.work is Work.KERNEL
        )
        assert kernel_ns > 0.9 * record.end
