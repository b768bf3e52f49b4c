"""Memory: peaks, holders, timelines, exhaustion and growth of pools."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.device.memory import BEFORE, MemoryAnalysis
from traceviz.analyses.device.pools import highest_use
from traceviz.report import Facts, Grid, Prose, Skipped, Timeline

KIB = 1024


def alloc(start, size, in_use, address=0, capacity=1000, **extra):
    more = {"in_use_bytes": in_use, "available_bytes": capacity - in_use, "address": address, "pool": "GPU_0_bfc"}
    return (start, "alloc", size, {**more, **extra})


def free(start, size, in_use, address=0, capacity=1000, **extra):
    return (start, "free", *alloc(start, size, in_use, address, capacity, **extra)[2:])


def pools(view):
    return MemoryAnalysis().run(view).pools


def test_the_peak_is_the_first_moment_of_the_highest_use():
    view = trace(
        memory_events=[alloc(10, 300, 400, 1), alloc(20, 200, 600, 2), free(30, 200, 400, 2), alloc(40, 200, 600, 3)]
    )
    (use,) = pools(view)
    assert (use.peak_bytes, use.peak_at_ns, use.available_bytes, use.capacity_bytes) == (600, 20, 400, 1000)
    assert (use.allocations, use.frees, use.allocated_bytes) == (3, 1, 700)
    assert use.pool.label == "GPU_0_bfc"


def test_the_peak_is_held_by_live_allocations_and_by_what_came_before_the_capture():
    view = trace(
        memory_events=[
            alloc(10, 300, 500, 1, op="conv/Conv2D:Conv2D"),
            alloc(20, 50, 550, 2, op="a:Cast"),
            free(30, 50, 500, 2),
            alloc(40, 100, 600, 2, op="b/MatMul:MatMul"),
            free(50, 100, 500, 2),
        ]
    )
    (use,) = pools(view)
    assert use.holders.rows() == [("conv/Conv2D", 1, 300), (BEFORE, None, 200), ("b/MatMul", 1, 100)]
    assert use.holders["bytes"].sum() == use.peak_bytes


def test_an_allocation_without_an_op_is_held_by_nobody_known():
    (use,) = pools(trace(memory_events=[alloc(10, 300, 300, 1, op="(null)"), alloc(20, 100, 400, 2)]))
    assert use.holders.rows() == [("op not recorded", 2, 400)]


def test_pools_of_the_host_and_of_processes_are_kept_apart_devices_first():
    view = trace(
        memory_events=[
            alloc(1, 900, 900, pool="gpu_host_bfc", memory="pinned", device_id=None),
            alloc(2, 100, 100),
            alloc(3, 200, 200, process_id=1),
        ],
        processes=[(0,), (1,)],
    )
    assert [(use.pool.label, use.peak_bytes) for use in pools(view)] == [
        ("GPU_0_bfc, process 1", 200),
        ("GPU_0_bfc, process 0", 100),
        ("gpu_host_bfc, process 0", 900),
    ]


def test_use_is_counted_from_the_amounts_where_the_trace_does_not_state_it():
    events = [
        (10, "alloc", 64, {"address": 1}),
        (20, "alloc", 32, {"address": 2}),
        (30, "free", None, {"address": 1}),
        (40, "alloc", 16, {"address": 1}),
    ]
    (use,) = pools(trace(memory_events=events))
    assert (use.peak_bytes, use.peak_at_ns, use.capacity_bytes, use.used_share) == (96, 20, None, None)


def test_the_timeline_shows_the_highest_use_of_each_slice_and_carries_it_on():
    view = trace(memory_events=[alloc(300, 500, 500, 1), free(320, 400, 100, 1), alloc(900, 100, 200, 2)], span_ns=1000)
    analysis = MemoryAnalysis(slices=10)
    section = analysis.describe(analysis.run(view))
    (timeline,) = [block for block in section.blocks if isinstance(block, Timeline)]
    assert timeline.lanes[0].values == (None, None, None, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2)


def test_a_capture_without_events_is_skipped_with_the_reason():
    outcome = MemoryAnalysis().run(trace(memory_events=[]))
    assert outcome == Skipped("memory", "no memory was allocated or released during the capture")


@pytest.mark.parametrize(
    ("in_use", "extra", "codes"),
    [
        (950, {}, ["TV402"]),
        (949, {}, []),
        (100, {"peak_bytes": 960}, ["TV402"]),  # before the capture
        (999, {"device_id": None, "memory": "pinned"}, []),
    ],
)
def test_a_device_pool_is_nearly_exhausted_from_95_percent_on(in_use, extra, codes):
    analysis = MemoryAnalysis()
    findings = analysis.judge(analysis.run(trace(memory_events=[alloc(0, in_use, in_use, **extra)])))
    assert [f.code for f in findings] == codes
    assert all(f.cost_ns == 0 for f in findings)


def growing(rises):
    """Return one step of 100 ns per rise; the pool ends each step that much higher, after a temporary allocation."""
    events, use = [], 10_000 * KIB
    for i, rise in enumerate(rises):
        use += rise
        events += [alloc(100 * i + 10, 9, use + 9, 5, 10**9), free(100 * i + 60, 9, use, 5, 10**9)]
    return trace(steps=[(100 * i, 100, i) for i in range(len(rises))], memory_events=events)


@pytest.mark.parametrize(
    ("rises", "growth"),
    [
        ([64 * KIB] * 6, 64 * KIB),
        ([64 * KIB - 1] * 6, 0),
        ([64 * KIB] * 4, 0),  # too few steps
        ([100 * KIB, 0] * 6, 0),  # every other step
        ([0] + [100 * KIB] * 9 + [0], 100 * KIB),  # nine of ten steps
        ([0] * 10, 0),
    ],
)
def test_growth_is_found_where_nearly_every_step_adds_at_least_64_kib(rises, growth):
    analysis = MemoryAnalysis()
    result = analysis.run(growing(rises))
    assert result.pools[0].growth_bytes == growth
    assert [f.code for f in analysis.judge(result)] == (["TV403"] if growth else [])


def test_shares_of_the_peak_add_up_to_it():
    analysis = MemoryAnalysis()
    section = analysis.describe(analysis.run(growing([64 * KIB] * 6)))
    holders = [block for block in section.blocks if isinstance(block, Grid)][1]
    assert sum(row[-1] for row in holders.rows) == pytest.approx(1.0)


def test_holders_are_not_told_where_2_allocators_share_a_pool_and_more_is_live_than_in_use():
    events = [alloc(10, 600, 600, 1, pool=None), alloc(20, 500, 500, 2, pool=None), alloc(30, 10, 610, 3, pool=None)]
    view = trace(memory_events=[(*event[:3], {**event[3], "memory": "unknown", "device_id": None}) for event in events])
    (use,) = pools(view)
    assert (use.holders.height, use.peak_bytes, use.pool.label) == (0, 610, "allocator not named")
    analysis = MemoryAnalysis()
    assert len([b for b in analysis.describe(analysis.run(view)).blocks if isinstance(b, Grid)]) == 1


def torch_event(event, in_use, reserved, **extra):
    more = {"in_use_bytes": in_use, "reserved_bytes": reserved, "address": 1, "pool": "CUDA:0"}
    return (*event, {**more, **extra})


TORCH = {"framework": "PyTorch"}


def test_what_the_allocator_reserved_and_nobody_used_is_told_at_the_peak():
    view = trace(
        memory_events=[
            torch_event((10, "alloc", 300), 500, 600, op="aten::empty"),
            torch_event((20, "alloc", 200), 700, 900, address=2, op="aten::_foreach_add"),
            torch_event((30, "free", 200), 500, 950, address=2),
        ],
        devices=[(0, "H100", {"memory_bytes": 2000})],
        run=TORCH,
    )
    (use,) = pools(view)
    assert (use.peak_bytes, use.reserved_bytes, use.unused_reserved) == (700, 950, 200)
    assert (use.capacity_bytes, use.used_share) == (2000, 0.475)
    assert use.holders.rows() == [("aten::empty", 1, 300), (BEFORE, None, 200), ("aten::_foreach_add", 1, 200)]


@pytest.mark.parametrize(("reserved", "codes"), [(899, []), (900, ["TV402"]), (1000, ["TV402"])])
def test_a_device_is_nearly_exhausted_from_90_percent_reserved_on(reserved, codes):
    view = trace(
        memory_events=[torch_event((10, "alloc", 300), 300, reserved)], devices=[(0, "T4", {"memory_bytes": 1000})]
    )
    analysis = MemoryAnalysis()
    findings = analysis.judge(analysis.run(view))
    assert [f.code for f in findings] == codes
    assert all("of it unused at the peak" in f.message for f in findings)


def test_amounts_without_addresses_are_a_change_since_the_capture_began_and_held_by_nobody_known():
    # 100 - 300 + 500: at least 200 were in use before, so 200 + 300 at the peak
    events = [(10, "alloc", 100), (20, "free", 300), (30, "alloc", 500)]
    analysis = MemoryAnalysis()
    result = analysis.run(trace(memory_events=events))
    (use,) = result.pools
    assert (use.peak_bytes, use.peak_at_ns, use.holders.height) == (500, 30, 0)
    (remark,) = [block.text for block in analysis.describe(result).blocks if isinstance(block, Prose)]
    assert "since the capture began: lower bounds" in remark


def test_a_pool_of_unknown_capacity_is_drawn_against_its_peak_and_unknown_figures_are_not_shown():
    analysis = MemoryAnalysis()
    section = analysis.describe(analysis.run(trace(memory_events=[(10, "alloc", 100), (30, "alloc", 500)])))
    (timeline,) = [block for block in section.blocks if isinstance(block, Timeline)]
    assert [lane.label for lane in timeline.lanes] == ["GPU 0, of its peak"]
    shown = [
        fact.key
        for block in section.blocks
        if isinstance(block, Facts) and block.audience == "all"
        for fact in block.facts
    ]
    assert shown == ["peak_bytes", "peak_at_ns", "allocations"]


def test_pools_of_ranks_are_told_apart_by_their_rank():
    view = trace(
        memory_events=[torch_event((1, "alloc", 9), 9, 9), torch_event((2, "alloc", 5), 5, 9, process_id=1)],
        processes=[(0, "a", {"rank": 3}), (1, "b", {"rank": 7})],
    )
    assert [use.pool.label for use in pools(view)] == ["CUDA:0, rank 3", "CUDA:0, rank 7"]


def test_the_memory_of_the_host_is_a_pool_of_its_own_without_a_capacity():
    cpu = {"pool": "CPU", "memory": "pageable", "device_id": None, "reserved_bytes": None}
    view = trace(
        memory_events=[torch_event((1, "alloc", 40), 40, None, **cpu), torch_event((2, "alloc", 5), 5, 9)],
        devices=[(0, "T4", {"memory_bytes": 1000})],
    )
    assert [(use.pool.label, use.peak_bytes, use.capacity_bytes) for use in pools(view)] == [
        ("CUDA:0", 5, 1000),
        ("CPU", 40, None),
    ]


@pytest.mark.parametrize(("second", "label"), [(0, "GPU_0_bfc"), (1, "GPU_0_bfc, process 0")])
def test_a_pool_names_its_process_only_where_2_processes_have_pools(second, label):
    view = trace(
        memory_events=[alloc(10, 300, 400, 1), alloc(20, 100, 100, 2, process_id=second)],
        processes=[(0, "python", {"pid": 5}), (1, "nsys", {"pid": 4})],
    )
    assert pools(view)[0].pool.label == label


def test_a_pool_without_any_capacity_has_no_share_and_hides_none_of_the_other_pools():
    nothing = alloc(0, 0, 0, capacity=0, pool="empty")
    assert highest_use(trace(memory_events=[nothing])) is None
    assert highest_use(trace(memory_events=[nothing, alloc(5, 9, 250), alloc(6, 9, 400, pool="other")])) == 0.4
