"""Time whose device work was lost: hand-worked launches with and without work."""

from tests.analyses.builders import trace
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.launch.join import LEAST_LOST, unrecorded_time
from traceviz.analyses.derived.steps.search import count_unseen_steps, time_of_unseen_steps, training_steps
from traceviz.analyses.run import analyze


def launches(lost=(), *, marks=True):
    """Return 4 steps of 1,000 ns. Each launches 20 kernels, one every 50 ns, which start 10 ns later and take 40."""
    calls = [(50 * i, 5, "cudaLaunchKernel", {"correlation_id": i}) for i in range(80)]
    kernels = [(50 * i + 10, 40, "k", {"correlation_id": i}) for i in range(80) if i not in lost]
    own = {"steps": [(1000 * i, 1000, i) for i in range(4)]} if marks else {}
    return trace(cuda_api=calls, kernels=kernels, **own)


def test_launches_that_all_have_work_lose_no_time():
    assert unrecorded_time(launches()) == {}


def test_the_time_from_the_last_work_before_to_the_first_after_is_not_known():
    # Kernel 21 ends at 21 · 50 + 50 = 1,100; kernel 28 starts at 1,410.
    (time,) = unrecorded_time(launches(range(22, 28))).values()
    assert (time.starts.tolist(), time.ends.tolist()) == ([1100], [1410])


def test_fewer_neighbours_than_a_buffer_holds_may_have_failed():
    assert unrecorded_time(launches(range(22, 22 + LEAST_LOST - 1))) == {}


def test_calls_of_a_name_that_mostly_launch_nothing_lose_nothing():
    assert unrecorded_time(launches(range(20, 70))) == {}


def test_steps_with_lost_work_are_not_judged_and_no_time_outside_of_steps():
    view = launches(range(22, 28))
    assert training_steps(view).steady["step"].to_list() == [0, 2, 3]
    assert count_unseen_steps(view) == 1
    assert time_of_unseen_steps(view)[0].total == 1000
    report = analyze(view.tables)
    assert "What the device did in 1 part (310 ns) of the capture is not known." in report.verdict.sentence
    assert "between them" not in report.verdict.sentence


def test_without_steps_the_lost_time_is_not_judged():
    view = launches(range(22, 28), marks=False)
    first, last = 10, 50 * 79 + 50
    assert judged_time(view, 0).total == last - first - 310
