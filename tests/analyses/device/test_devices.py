"""Devices visible and used, and small grids with free memory."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.devices import DevicesAnalysis
from traceviz.analyses.device.memory import MemoryAnalysis
from traceviz.report import Grid
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select


def codes(analysis, view):
    return [finding.code for finding in analysis.judge(analysis.run(view))]


def gpus(count, **facts):
    return [(i, "GPU", {"ordinal": i, **facts}) for i in range(count)]


def work(device=0, dur=1000, **extra):
    return (0, dur, "k", {"device_id": device, **extra})


@pytest.mark.parametrize(
    ("kernels", "count", "expected"),
    [
        ([work()], 1, []),
        ([work()], 2, ["TV408"]),
        ([work(), work(1)], 2, []),
        ([work(), work(1)], 8, []),  # two of eight is a choice
        ([work(7)], 8, ["TV408"]),
    ],
)
def test_devices_count_as_unused_where_one_of_several_computes(kernels, count, expected):
    assert codes(DevicesAnalysis(), trace(kernels=kernels, devices=gpus(count), host_ops=[])) == expected


def test_an_engine_serves_on_the_devices_that_it_is_given():
    engine = [(0, 1000, "step[DECODE bs=32]", "annotation")]
    assert codes(DevicesAnalysis(), trace(kernels=[work()], devices=gpus(8), host_ops=[])) == ["TV408"]
    assert codes(DevicesAnalysis(), trace(kernels=[work()], devices=gpus(8), host_ops=engine)) == []


@pytest.mark.parametrize(("busy", "expected"), [(751, ["TV408"]), (750, ["TV408"]), (749, [])])
def test_more_devices_are_advised_where_the_one_in_use_computes_three_quarters_of_the_time(busy, expected):
    kernels = [(0, busy - 1, "k"), (999, 1, "k")]
    view = trace(kernels=kernels, devices=gpus(2), host_ops=[])  # of 1000 ns
    assert codes(DevicesAnalysis(), view) == expected


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("aten::mm", "info"),
        ("DataParallel.forward", "error"),
        ("PmapFunction(step)", "error"),
        ("tf.distribute.MirroredStrategy", "error"),
    ],
)
def test_an_unused_device_is_a_hint_unless_the_program_means_to_use_several(name, severity):
    view = trace(kernels=[work()], devices=gpus(2), host_ops=[(0, 5, name)])
    analysis = DevicesAnalysis()
    (finding,) = analysis.judge(analysis.run(view))
    assert (finding.share, finding.severity.value) == (0.5, severity)


def test_a_rank_of_a_job_of_one_rank_does_not_mean_to_use_several_devices():
    ops, settings = [(0, 5, "DistributedDataParallel.forward")], [("distributedInfo.world_size", "1")]
    view = trace(kernels=[work()], devices=gpus(8), host_ops=ops, settings=settings)
    (finding,) = DevicesAnalysis().judge(DevicesAnalysis().run(view))
    assert (finding.share, finding.severity.value) == (0.875, "info")


def test_the_gain_of_more_devices_is_bounded_by_the_kernel_time():
    kernels = [(0, 799, "k"), (999, 1, "k")]
    analysis = DevicesAnalysis()
    (finding,) = analysis.judge(analysis.run(trace(kernels=kernels, devices=gpus(4), host_ops=[])))
    assert (finding.cost_ns, finding.share) == (600, 0.6)


@pytest.mark.parametrize(
    ("count", "names"), [(1, ["GPU 0 GPU"]), (2, ["GPU 0 GPU", "GPU 1 GPU"]), (8, ["GPU 0 GPU", "7 others"])]
)
def test_several_devices_without_kernels_share_a_line_and_programs_see_each(count, names):
    analysis = DevicesAnalysis()
    section = analysis.describe(analysis.run(trace(kernels=[work()], devices=gpus(count))))
    grids = [block for block in section.blocks if isinstance(block, Grid)]
    assert len(grids[0].rows) == count
    assert [row[0] for grid in grids if grid.audience == "all" for row in grid.rows] == names


def test_a_copy_does_not_make_a_device_compute():
    view = trace(
        kernels=[work()], memcpy=[(0, 5, "d2d", "device", "device", 8, {"device_id": 1})], devices=gpus(2), host_ops=[]
    )
    assert DevicesAnalysis().run(view).computing == 1


def test_devices_of_the_machine_are_no_finding_where_no_framework_recorded_them():
    assert codes(DevicesAnalysis(), trace(kernels=[work()], devices=gpus(8))) == []


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"settings": [("distributedInfo.world_size", "8")]}, []),
        ({"settings": [("distributedInfo.world_size", "1")]}, ["TV408"]),
        ({"kernels": [work(), (0, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]}, []),
    ],
)
def test_devices_of_other_ranks_are_no_finding(others, expected):
    view = trace(**{"kernels": [work()], "devices": gpus(8), "host_ops": [], **others})
    assert codes(DevicesAnalysis(), view) == expected


def filled(small_ns, in_use, grid=39, **extra):
    """Return 1000 ns of kernels on a device of 40 multiprocessors; ``small_ns`` in a grid of ``grid`` blocks."""
    kernels = [(0, small_ns, "small", {"grid_x": grid}), (small_ns, 1000 - small_ns, "large", {"grid_x": 40})]
    memory = [(0, "alloc", 1, {"in_use_bytes": in_use, "available_bytes": 1000 - in_use, **extra})]
    return trace(kernels=kernels, memory_events=memory, devices=gpus(1, sm_count=40))


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (filled(50, 500), ["TV409"]),
        (filled(49, 500), []),
        (filled(50, 501), []),
        (filled(500, 100, grid=40), []),
        (filled(500, 100, peak_bytes=900), []),  # was in use before the capture
        (filled(500, 100, device_id=None, memory="pinned"), []),  # no fact about the device
    ],
)
def test_small_grids_matter_where_half_of_the_memory_was_never_in_use(view, expected):
    assert codes(DevicesAnalysis(), view) == expected


def test_small_grids_are_told_with_what_they_take_and_what_is_free():
    (finding,) = DevicesAnalysis().judge(DevicesAnalysis().run(filled(300, 400)))
    facts = {fact.key: fact.value for fact in finding.evidence}
    assert (facts["small_busy_ns"], facts["free_share"]) == (300, 0.6)


def test_a_small_grid_beside_a_large_one_leaves_nothing_idle():
    kernels = [(0, 1000, "large", {"grid_x": 64}), (0, 1000, "small", {"stream": 8})]
    memory = [(0, "alloc", 1, {"in_use_bytes": 1, "available_bytes": 999})]
    result = DevicesAnalysis().run(trace(kernels=kernels, memory_events=memory, devices=gpus(1, sm_count=40)))
    assert (result.small_busy_ns, result.devices[0].small_ns, result.devices[0].sized_ns) == (0, 1000, 2000)


def test_the_part_of_a_capture_in_which_1_of_2_devices_computes_says_nothing_of_the_program():
    whole = tables(kernels=[work(), (1000, 1000, "k", {"device_id": 1})], devices=gpus(2), host_ops=[])
    assert codes(DevicesAnalysis(), TraceView(select(whole, Selection(end_ns=900)))) == []


def test_a_tpus_peak_from_before_the_capture_is_not_compared_with_what_its_programs_leave():
    memory = [(0, "alloc", 1, {"in_use_bytes": 100, "available_bytes": 900, "peak_bytes": 1336, "device_id": 0})]
    view = trace(kernels=[work()], memory_events=memory, devices=[(0, "v6e", {"kind": "tpu", "ordinal": 0})])
    assert DevicesAnalysis().run(view).used_share == 0.1
    assert codes(MemoryAnalysis(), view) == []
