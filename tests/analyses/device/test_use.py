"""Device use: unions over streams, and busy + idle = span."""

import hypothesis.strategies as st
from hypothesis import given, settings

from tests.analyses.builders import trace
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.analyses.device.use import DeviceUseAnalysis
from traceviz.analyses.run import analyze

USE, GAPS = DeviceUseAnalysis(), IdleGapsAnalysis(min_gap_ns=0)


def test_overlapping_streams_are_busy_once():
    view = trace(kernels=[(0, 60, "a"), (30, 60, "b", {"stream": 8})], span_ns=200)
    (device,) = USE.run(view).devices
    assert (device.busy_ns, device.idle_ns, device.concurrent_ns) == (90, 110, 30)


def test_copies_and_fills_keep_a_device_busy():
    view = trace(
        kernels=[(0, 10, "a")], memcpy=[(10, 10, "h2d", "pinned", "device", 1)], memset=[(30, 5, 1)], span_ns=50
    )
    assert USE.run(view).devices[0].busy_ns == 25


def test_utilisation_over_steady_steps_leaves_start_up_out():
    view = trace(
        nvtx=[(1000 + i * 100, 100, f"step {i}") for i in range(5)],
        kernels=[(1000 + i * 100, 90, "k") for i in range(5)],
    )
    (device,) = USE.run(view).devices
    assert (device.judged_ns, device.judged_busy_ns, device.span_ns) == (500, 450, 1500)


def test_the_timeline_gives_the_share_of_each_slice():
    view = trace(kernels=[(0, 50, "k"), (100, 25, "k")], span_ns=200)
    assert DeviceUseAnalysis(slices=4).run(view).devices[0].timeline == (1.0, 0.0, 0.5, 0.0)


def test_the_timeline_is_divided_by_kind_and_time_of_several_kinds_counts_as_computing():
    """The first slice: computing to 50, communication to 80, a copy to 100. The second: a copy while a kernel runs."""
    view = trace(
        kernels=[(0, 50, "k"), (40, 40, "ncclKernel_AllReduce_RING_LL_Sum_float", {"stream": 8}), (100, 30, "k")],
        memcpy=[(70, 30, "h2d", "pinned", "device", 1), (110, 10, "h2d", "pinned", "device", 1)],
        span_ns=200,
    )
    result = DeviceUseAnalysis(slices=2).run(view)
    assert result.devices[0].kinds == ((0.5, 0.3), (0.3, 0.0), (0.2, 0.0))
    assert result.devices[0].timeline == (1.0, 0.3)
    parts = USE.describe(result).blocks[-1].lanes[0].parts
    assert [(key, shares) for key, _, shares in parts] == [
        *(("device_compute", (0.5, 0.3)), ("communication", (0.3, 0.0)), ("copy", (0.2, 0.0)))
    ]


def test_an_idle_device_with_unexplained_gaps_is_a_finding():
    view = trace(kernels=[(i * 100, 20, "k") for i in range(10)], cuda_api=[], os_calls=[])
    (finding,) = USE.judge(USE.run(view))
    assert (finding.code, finding.cost_ns) == ("TV201", 9 * 80)


def test_idle_time_with_a_specific_cause_is_left_to_that_causes_rule():
    steps = [(i * 100, 100, f"step {i}") for i in range(5)]
    loads = [(i * 100, 80, "data loading") for i in range(5)]
    view = trace(nvtx=steps + loads, kernels=[(i * 100 + 80, 20, "k") for i in range(5)])
    assert USE.judge(USE.run(view)) == ()


def test_a_capture_without_the_host_blames_nothing_on_it():
    view = trace(kernels=[(i * 100_000, 20_000, "k") for i in range(3)])
    (finding,) = USE.judge(USE.run(view))
    assert "what the host did meanwhile was not recorded" in finding.message
    assert finding.advice[0].startswith("Record the host as well")
    assert GAPS.run(view).by_cause == {"host_not_recorded": (2, 160_000)}


def test_idle_time_that_no_event_covers_is_called_unexplained():
    view = trace(kernels=[(i * 100, 20, "ab"[i % 2]) for i in range(10)], cuda_api=[], run={"framework": "PyTorch"})
    (idle,) = [finding for finding in analyze(view.tables).findings if finding.code == "TV201"]
    assert idle.message.endswith("most of it unexplained: no event of the host covers it (100.0 % of the idle time).")
    assert "host compute" not in str(analyze(view.tables))


def test_operators_that_keep_a_device_waiting_are_told_to_give_more_work_at_once():
    kernels = [(i * 100, 20, "ab"[i % 2]) for i in range(10)]
    view = trace(kernels=kernels, host_ops=[(0, 1_000, "aten::mm", "op")], run={"framework": "PyTorch"})
    (bound,) = [finding for finding in analyze(view.tables).findings if finding.code in {"TV201", "TV205"}]
    assert bound.code == "TV205"
    assert "torch.compile(model)" in bound.advice[0]
    assert "jax.jit" not in bound.advice[0]


def test_a_busy_device_raises_nothing():
    view = trace(kernels=[(i * 100, 95, "k") for i in range(10)])
    assert USE.judge(USE.run(view)) == ()


WORK = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 100)), min_size=1, max_size=12)


@settings(max_examples=25)
@given(WORK, st.integers(0, 300))
def test_busy_and_idle_add_up_to_the_span_and_gaps_are_the_idle_time(work, tail):
    view = trace(kernels=[(s, d, "k") for s, d in work], span_ns=max(s + d for s, d in work) + tail)
    (device,) = USE.run(view).devices
    assert device.busy_ns + device.idle_ns == view.span_ns
    assert GAPS.run(view).idle_ns == device.idle_ns


@settings(max_examples=25)
@given(WORK)
def test_doubling_all_durations_and_starts_doubles_busy_time(work):
    once = trace(kernels=[(s, d, "k") for s, d in work])
    twice = trace(kernels=[(2 * s, 2 * d, "k") for s, d in work])
    assert 2 * USE.run(once).devices[0].busy_ns == USE.run(twice).devices[0].busy_ns


def test_a_process_with_3_idle_devices_waits_once_for_its_host():
    kernels = [(i * 100, 10, "k", {"device_id": d}) for i in range(5) for d in range(3)]
    view = trace(kernels=kernels, steps=[(i * 100, 100, i) for i in range(5)], cuda_api=[], os_calls=[])
    (finding,) = USE.judge(USE.run(view))
    assert (finding.cost_ns, finding.share) == (450, 0.9)
    assert finding.message.startswith("The 3 devices are, on average, idle in 90.0 % of the steady step time")


def test_idle_time_between_first_and_last_work_is_told_apart_from_the_rest():
    section = USE.describe(USE.run(trace(kernels=[(100, 20, "k"), (150, 30, "k")], span_ns=1000)))
    grid = section.blocks[1]
    row = dict(zip([column.name for column in grid.columns], grid.rows[0], strict=True))
    assert (row["extent_ns"], row["inner_idle_ns"], row["idle_ns"]) == (80, 30, 950)
