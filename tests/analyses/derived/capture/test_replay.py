"""Replays of a few steps, worked by hand."""

from itertools import pairwise
from operator import itemgetter

import numpy as np
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.capture.predictions import predict, predictions
from traceviz.analyses.derived.capture.replay import Change, recorded_graph
from traceviz.analyses.derived.capture.speedups import describe_speedup
from traceviz.api import report_on
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.report import Prose

US, STEP, STEPS = 1000, 1000, 6


def in_us(*rows):
    """Return literals with their start and duration in microseconds."""
    return [(start * US, dur * US, *rest) for start, dur, *rest in rows]


def spans(start, end, every=1000):
    """Return the time from ``start`` to ``end`` of each step, in microseconds."""
    at = np.arange(STEPS) * every
    return IntervalSet.of((at + start) * US, (at + end) * US)


def in_steps(durations):
    """Return durations in microseconds."""
    return (durations / US).tolist()


def synced():
    """A program whose host loads, launches two kernels and waits for them.

    ::

        us        0          500  510 520              905  910          1000
        host      |--load----|launch|launch|--- sync ------|---- log ----|
        stream                    |A 520..700|B 700..900 |
    """
    at = [i * STEP for i in range(STEPS)]
    ranges = [(t, 500, "data loading") for t in at]
    calls, kernels = [], []
    for i, t in enumerate(at):
        key = {"correlation_id": 10 * i + 1}, {"correlation_id": 10 * i + 2}
        calls += [(t + 500, 10, "cudaLaunchKernel", key[0]), (t + 510, 10, "cudaLaunchKernel", key[1])]
        calls += [(t + 520, 385, "cudaStreamSynchronize")]
        kernels += [(t + 520, 180, "A", key[0]), (t + 700, 200, "B", key[1])]
    log = [(t + 910, 90, "log") for t in at]
    steps = [(t, STEP, i, {"marker": "Step"}) for i, t in enumerate(at)]
    return trace(
        steps=in_us(*steps), nvtx=in_us(*sorted(ranges + log)), cuda_api=in_us(*calls), kernels=in_us(*kernels)
    )


def test_a_replay_without_a_change_is_what_was_recorded():
    graph = recorded_graph(synced())
    assert in_steps(graph.replay(Change())) == [STEP] * graph.steps.height
    assert graph.known == 1.0


def test_host_time_before_a_launch_shortens_the_step_by_all_of_it():
    graph = recorded_graph(synced())
    assert in_steps(graph.replay(Change({0: spans(0, 500)}))) == [500] * graph.steps.height


def test_host_time_that_device_work_covers_gains_nothing():
    graph = recorded_graph(synced())
    assert in_steps(graph.replay(Change({0: spans(530, 600)}))) == [STEP] * graph.steps.height


def test_a_kernel_without_time_lets_the_next_one_and_the_wait_come_earlier():
    graph = recorded_graph(synced())
    is_b = (graph.work["name"] == "B").to_numpy()
    assert in_steps(graph.replay(Change(idle=is_b))) == [STEP - 200] * graph.steps.height


def test_without_waits_the_steps_are_no_shorter_than_their_device_work():
    graph = recorded_graph(synced())
    # 615 us of the host, without the wait; A and B take 380
    assert graph.replay(Change(waits=True)).mean() == pytest.approx(615 * US, rel=0.01)
    without_both = graph.replay(Change({0: spans(0, 500).union(spans(910, 1000))}, waits=True))
    assert without_both[1:].mean() == pytest.approx(380 * US, rel=0.03)


def test_the_last_wait_of_a_step_can_stay():
    graph = recorded_graph(synced())
    assert in_steps(graph.replay(Change(waits=True, last_waits=True))) == [STEP] * graph.steps.height


def two_ranks(late=300):
    """Two ranks that meet in a collective; the second one comes late.

    ::

        rank 0   |launch|  nccl 20.........420 |
        rank 1   |-- 300 --|launch|nccl 320..420|
    """
    calls, kernels, steps, ranges = [], [], [], []
    for rank in range(2):
        for i in range(STEPS):
            t, key = i * 600, {"process_id": rank, "correlation_id": i + 1}
            place = {"process_id": rank, "thread_id": rank}
            start = t + (late if rank else 0)
            calls.append((start + 10, 5, "cudaLaunchKernel", {**key, "thread_id": rank}))
            calls.append((start + 20, t + 425 - start - 20, "cudaStreamSynchronize", place))
            kernels.append((start + 20, t + 420 - start - 20, "ncclKernel_AllReduce_RING", {**key, "device_id": rank}))
            steps.append((t, 600, i, {"marker": "Step", **place}))
            if rank:
                ranges.append((t, late, "augment", place))
    return trace(
        steps=in_us(*steps),
        nvtx=in_us(*ranges),
        cuda_api=in_us(*sorted(calls, key=itemgetter(0))),
        kernels=in_us(*sorted(kernels, key=itemgetter(0))),
    )


def test_all_ranks_gain_if_the_one_that_comes_late_to_a_collective_does_not():
    graph = recorded_graph(two_ranks())
    assert set(in_steps(graph.replay(Change()))) == {600}
    assert graph.replay(Change({1: spans(0, 300, every=600)})).mean() == pytest.approx(300 * US, rel=0.01)


def test_a_prediction_leaves_some_of_the_gain_in_its_long_end():
    found = predict(synced(), "input")
    assert (found.step_ns, found.share, found.reason) == (STEP * US, 0.5, "")
    assert found.low_ns == pytest.approx(500 * US)
    assert found.high_ns == pytest.approx(575 * US)
    assert describe_speedup(found.low, found.high) == "1.7 to 2.0×"


def test_predictions_name_causes_and_not_computing():
    keys = {prediction.key for prediction in predictions(synced())}
    assert "input" in keys
    assert not keys & {"device_compute", "unexplained"}


def test_without_launches_nothing_is_proven_and_the_bound_stays():
    kernels = [(i * STEP + 520, 380, "k") for i in range(STEPS)]
    ranges = [(i * STEP, 500, "data loading") for i in range(STEPS)]
    steps = [(i * STEP, STEP, i, {"marker": "Step"}) for i in range(STEPS)]
    found = predict(trace(steps=steps, nvtx=ranges, kernels=kernels, cuda_api=[]), "input")
    assert (found.low, found.reason) == (1.0, "the launches of device work were not recorded")
    assert describe_speedup(found.low, found.high) == "at best 2.0×"


def test_the_mean_step_is_that_of_adjacent_steps_also_where_nothing_is_replayed(samples):
    report = report_on(samples / "synthetic/torch_four_ranks_straggler", sections=["steps", "what_if"])
    steady = [row["dur_ns"] for row in report.rows("steps") if not row["warmup"]]
    assert report.fact("what_if", "step_ns") == round(sum(steady) / len(steady))
    assert [row["low_speedup"] for row in report.rows("what_if")] == [1.0]
    assert any("No gain is proven for communication: steps are those of the devices" in text for text in prose(report))


def prose(report):
    (section,) = (section for section in report.sections if section.slug == "what_if")
    return [block.text for block in section.blocks if isinstance(block, Prose)]


def test_a_trace_without_steps_has_no_predictions():
    view = trace(
        kernels=[(10, 5, "k", {"correlation_id": 1})], cuda_api=[(0, 5, "cudaLaunchKernel", {"correlation_id": 1})]
    )
    assert predictions(view) == ()
    assert recorded_graph(view) is None


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1.0, 2.6, "at best 2.6×"),
        (1.9, 2.6, "1.9 to 2.6×"),
        (2.0, 2.01, "2.0×"),
        (1.5, None, "at least 1.5×"),
        (1.0, None, "not known"),
    ],
)
def test_a_speedup_is_an_interval_a_number_or_a_bound(low, high, words):
    assert describe_speedup(low, high) == words


def test_nodes_come_after_those_they_depend_on():
    graph = recorded_graph(two_ranks())
    live = graph._weights > -(1 << 59)
    rows = np.arange(len(graph._sources))[:, None]
    assert (graph._sources[1:][live[1:]] < np.broadcast_to(rows, live.shape)[1:][live[1:]]).all()
    assert all(first <= second for first, second in pairwise(graph._times[1:].tolist()))


def two_ranks_that_load(*, collectives):
    """Two ranks that load and meet in one collective per step; rank 1 may have recorded another number of them.

    ::

        us       0       300 310           600
        host     |--load--|launch|-- sync ---|
        stream              |nccl 320..580|
    """
    calls, kernels, steps, ranges = [], [], [], []
    for rank, count in ((0, 1), (1, collectives)):
        for i in range(STEPS):
            t, place = i * 600, {"process_id": rank, "thread_id": rank}
            steps.append((t, 600, i, {"marker": "Step", **place}))
            ranges.append((t, 300, "data loading", place))
            for n in range(count):
                key = {"process_id": rank, "correlation_id": 10 * i + n + 1}
                calls.append((t + 300 + n, 1, "cudaLaunchKernel", {**key, "thread_id": rank}))
                start, dur = t + 320 + n * 130, 260 // count
                kernels.append((start, dur, "ncclKernel_AllReduce_RING", {**key, "device_id": rank}))
            calls.append((t + 310, 280, "cudaStreamSynchronize", place))
    return trace(
        steps=in_us(*sorted(steps, key=itemgetter(0))),
        nvtx=in_us(*sorted(ranges, key=itemgetter(0))),
        cuda_api=in_us(*sorted(calls, key=itemgetter(0))),
        kernels=in_us(*sorted(kernels, key=itemgetter(0))),
    )


def test_waits_in_collectives_that_cannot_be_matched_may_vanish_with_the_cause():
    matched, found = (
        predict(two_ranks_that_load(collectives=1), "input"),
        predict(two_ranks_that_load(collectives=2), "input"),
    )
    assert matched.low_ns == pytest.approx(300 * US)
    assert found.low_ns == pytest.approx(40 * US)  # without 300 us of loading and 260 us of communication
    assert found.high_ns == pytest.approx(matched.high_ns, rel=0.01)


def test_without_a_device_only_the_least_gain_is_stated():
    steps = [(i * STEP, STEP, i, {"marker": "Step"}) for i in range(STEPS)]
    ranges = [(i * STEP, 500, "data loading") for i in range(STEPS)]
    found = predict(trace(steps=in_us(*steps), nvtx=in_us(*ranges)), "input")
    assert (found.low_ns, found.high, found.reason) == (0, None, "")
    assert found.high_ns == pytest.approx(575 * US)
    assert describe_speedup(found.low, found.high) == "at least 1.7×"
