"""If the host queues work for later steps, steps are the device work that it launched."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.judged_time import host_time
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.steps.steps import StepAnalysis

HOST = [0, 10, 20, 30, 130, 230]
"""Start of each step on the host: the first three only launch, the others wait for space in the queue."""


def ahead(lag=5, lasts=90, **others):
    """Return six steps whose work takes 90 of 100 on the device, from ``lag`` on, launched at their start."""
    ends = [*HOST[1:], 330]
    marks = [(start, end - start, step) for step, (start, end) in enumerate(zip(HOST, ends, strict=True))]
    calls = [(start + 1, 2, "cudaLaunchKernel", {"correlation_id": step}) for step, start in enumerate(HOST)]
    work = [(lag + 100 * step, lasts, "k", {"correlation_id": step}) for step in range(6)]
    return trace(**{"steps": marks, "cuda_api": calls, "kernels": work, **others})


def bounds_of(view):
    return list(training_steps(view).frame.select("start_ns", "end_ns").iter_rows())


def test_6_steps_last_from_their_first_work_to_that_of_the_next():
    view = ahead()
    assert bounds_of(view) == [*((5 + 100 * step, 105 + 100 * step) for step in range(5)), (505, 595)]
    assert host_time(view)[0].total == 330
    result = StepAnalysis().run(view)
    facts = {fact.key: fact.value for fact in StepAnalysis().describe(result).blocks[0].facts}
    assert (facts["median_ns"], facts["device_median_ns"], facts["host_median_ns"]) == (100, 100, 55)


def test_the_last_step_is_cut_where_the_device_idles_between_steps():
    steps = training_steps(ahead(lasts=60))
    assert steps.frame["cut"].to_list() == [*[False] * 5, True]
    assert steps.frame["end_ns"].to_list()[-2:] == [505, 565]


@pytest.mark.parametrize(
    "others",
    [
        {"kernels": [(start + 2, 5, "k", {"correlation_id": step}) for step, start in enumerate(HOST)]},
        {"kernels": [(5 + 100 * step, 90, "k", {"correlation_id": step}) for step in range(5)]},
        {"kernels": [(5 + 100 * step, 90, "k", {"correlation_id": 5 - step}) for step in range(6)]},
        {"cuda_api": []},
    ],
    ids=["work within its step", "a step without work", "work in another order", "no calls"],
)
def test_6_marks_stay_as_they_are_where_work_does_not_follow_them(others):
    assert bounds_of(ahead(**others))[0] == (0, 10)
    assert training_steps(ahead(**others)).host is None


def test_marks_stay_where_host_and_device_take_equally_long():
    marks = [(100 * step, 100, step) for step in range(6)]
    calls = [(100 * step + 90, 2, "cudaLaunchKernel", {"correlation_id": step}) for step in range(6)]
    work = [(100 * step + 105, 90, "k", {"correlation_id": step}) for step in range(6)]
    assert bounds_of(trace(steps=marks, cuda_api=calls, kernels=work))[0] == (0, 100)


def test_steps_with_the_same_number_stay_those_of_the_host():
    ends = [*HOST[1:], 330]
    marks = [(start, end - start, step % 3) for step, (start, end) in enumerate(zip(HOST, ends, strict=True))]
    assert training_steps(ahead(steps=marks)).host is None
