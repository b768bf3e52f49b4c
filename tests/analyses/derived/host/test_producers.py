"""Loaders on threads of their own: the steps wait for one that never rests."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis

LOADER = {"thread_id": 1}


def training(busy, name="read batch", work=60, ranges=()):
    """Return 20 steps of 100 ns with ``work`` at their start; the loader's ranges take ``busy`` ns of each."""
    steps = range(20)
    return trace(
        kernels=[(100 * n + 5, work - 5, "gemm") for n in steps],
        cuda_api=[(100 * n, 5, "cudaLaunchKernel") for n in steps],
        nvtx=[
            *((100 * n, work, f"step {n}") for n in steps),
            *((100 * n, busy, name, LOADER) for n in steps),
            *ranges,
        ],
        threads=[(0, 0, "python"), (1, 0, "loader")],
        span_ns=2000,
    )


@pytest.mark.parametrize(("busy", "waits"), [(100, True), (91, True), (89, False), (50, False)])
def test_the_steps_wait_for_a_loader_if_it_works_in_9_of_10_parts_of_their_time(busy, waits):
    classes = host_classes(training(busy))[0]
    assert (classes.producer is not None) is waits
    if waits:
        assert classes.producer.name == "read batch"
        assert classes.sets["input_wait"].total == pytest.approx(20 * (busy - 60), abs=100)


@pytest.mark.parametrize("name", ["[DALI][DataReader] Run #0", "dataloader worker", "decode image 7", "prefetch"])
def test_the_name_of_the_loaders_range_is_one_of_input(name):
    assert host_classes(training(98, name))[0].producer is not None


@pytest.mark.parametrize("name", ["prefetch_layers_[0, 1]", "evaluate", "backward", "send metrics"])
def test_another_thread_that_does_something_else_is_no_loader(name):
    assert host_classes(training(98, name))[0].producer is None


def test_a_training_thread_that_always_has_work_waits_for_no_loader():
    works = [(100 * n + 61, 39, "log") for n in range(20)]
    assert host_classes(training(100, ranges=works))[0].sets["input_wait"].total <= 20


def test_a_range_of_the_training_thread_that_takes_a_batch_decides_alone():
    takes = [(100 * n + 80, 10, "next batch") for n in range(20)]
    classes = host_classes(training(100, ranges=takes))[0]
    assert classes.producer is None
    assert classes.sets["input_wait"].total == 200


def test_the_loader_is_the_largest_stage():
    result = InputPipelineAnalysis().run(training(100))
    assert (result.stages[0].name, result.stages[0].kind) == ("read batch", "loader's range")
    assert "more threads" in result.stages[0].advice
