"""CUDA API time share: counts, shares, start-up and steady parts, exposure, and what is worth a finding."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.launch.cuda_api import CudaApiAnalysis

ANALYSIS = CudaApiAnalysis()
STEPS = [(1000 + i * 1000, 1000, f"step {i}") for i in range(5)]
BUSY = [(1000 + i * 1000, 1000, "k") for i in range(5)]


def row(view, name):
    frame = ANALYSIS.run(view).by_name
    return next(r for r in frame.iter_rows(named=True) if r["name"] == name)


def test_shares_name_their_denominators():
    view = trace(cuda_api=[(0, 30, "cudaMalloc"), (30, 10, "cudaFree"), (50, 60, "cudaMalloc")], span_ns=200)
    malloc = row(view, "cudaMalloc")
    assert (malloc["calls"], malloc["total_ns"], malloc["share_of_api"], malloc["share_of_wall"]) == (2, 90, 0.9, 0.45)
    assert (malloc["mean_ns"], malloc["median_ns"], malloc["min_ns"], malloc["max_ns"]) == (45, 45, 30, 60)
    assert malloc["stddev_ns"] == pytest.approx(21.2132, abs=1e-4)


def test_shares_of_all_functions_add_up_to_one():
    view = trace(cuda_api=[(i * 10, i, name) for i, name in enumerate(["a", "b", "c", "a", "b"])])
    assert ANALYSIS.run(view).by_name["share_of_api"].sum() == pytest.approx(1)


def test_a_call_is_split_at_the_first_steady_step():
    view = trace(nvtx=STEPS, kernels=BUSY, cuda_api=[(900, 300, "cudaMalloc"), (100, 50, "cudaMalloc")])
    malloc = row(view, "cudaMalloc")
    assert (malloc["startup_ns"], malloc["steady_ns"]) == (150, 200)


def test_without_steps_start_up_and_steady_are_unknown_rather_than_zero():
    malloc = row(trace(cuda_api=[(0, 10, "cudaMalloc")]), "cudaMalloc")
    assert (malloc["startup_ns"], malloc["steady_ns"]) == (None, None)


def test_exposed_is_the_part_of_a_call_in_which_no_device_of_the_process_works():
    view = trace(kernels=[(10, 20, "k"), (50, 10, "k")], cuda_api=[(0, 60, "cudaFree")])
    assert row(view, "cudaFree")["exposed_ns"] == 30


def test_exposure_is_unknown_rather_than_zero_where_no_device_work_was_recorded():
    calls_alone = ANALYSIS.run(trace(cuda_api=[(0, 60, "cudaLaunchKernel")]))
    assert (calls_alone.exposed_ns, calls_alone.by_name["exposed_ns"].to_list()) == (None, [None])
    nothing_ran = ANALYSIS.run(trace(kernels=[], cuda_api=[(0, 60, "cudaLaunchKernel")]))
    assert nothing_ran.exposed_ns == 0


def test_exposure_looks_only_at_the_devices_of_the_calling_process():
    view = trace(
        kernels=[(0, 100, "k", {"process_id": 1, "device_id": 1}), (90, 10, "k")],
        cuda_api=[(0, 50, "cudaFree", {"process_id": 0, "thread_id": 0})],
    )
    assert row(view, "cudaFree")["exposed_ns"] == 50


def test_driver_calls_inside_runtime_calls_are_reported_as_nested():
    calls = [
        (0, 100, "cudaLaunchKernel"),
        (20, 50, "cuLaunchKernel", {"domain": "driver"}),
        (200, 10, "cuCtxSynchronize", {"domain": "driver"}),
    ]
    assert ANALYSIS.run(trace(cuda_api=calls)).nested_ns == 50


def test_the_share_of_wall_of_two_threads_is_that_of_an_average_one():
    view = trace(cuda_api=[(0, 90, "a"), (0, 70, "a", {"thread_id": 1, "process_id": 1})], span_ns=100)
    assert row(view, "a")["share_of_wall"] == 0.8


def test_the_share_of_wall_holds_where_threads_times_span_needs_more_than_32_bits():
    span = 3 * 2**30
    calls = [(0, span // 2, "a", {"thread_id": 0}), (0, span // 2, "a", {"thread_id": 1})]
    assert row(trace(cuda_api=calls, span_ns=span), "a")["share_of_wall"] == 0.5


def test_nested_calls_take_the_wall_time_of_their_thread_once():
    calls = [(0, 100, "cudaLaunchKernel"), (20, 50, "cuLaunchKernel", {"domain": "driver"})]
    assert ANALYSIS.run(trace(cuda_api=calls, span_ns=200)).by_thread["share_of_wall"].to_list() == [0.5]


def test_blocking_copies_after_a_wait_are_left_to_their_own_rule():
    kernels = [(1000 + i * 1000, 600, "k") for i in range(5)]
    waits = [(1100 + i * 1000, 501, "cudaStreamSynchronize") for i in range(5)]
    copies = [(1601 + i * 1000, 399, "cudaMemcpy") for i in range(5)]
    assert ANALYSIS.judge(ANALYSIS.run(trace(nvtx=STEPS, kernels=kernels, cuda_api=waits + copies))) == ()


def test_threads_have_their_own_rows():
    view = trace(cuda_api=[(0, 10, "a"), (0, 30, "a", {"thread_id": 1})])
    assert ANALYSIS.run(view).by_thread.select("thread_id", "total_ns").rows() == [(1, 30), (0, 10)]


def test_allocation_in_steps_that_leaves_the_device_idle_is_a_finding():
    kernels = [(1000 + i * 1000, 800, "k") for i in range(5)]
    view = trace(nvtx=STEPS, kernels=kernels, cuda_api=[(1800 + i * 1000, 200, "cudaMalloc") for i in range(5)])
    (finding,) = ANALYSIS.judge(ANALYSIS.run(view))
    assert (finding.code, finding.cost_ns, finding.share) == ("TV301", 1000, 0.2)


@pytest.mark.parametrize("name", ["cuMemAlloc_v2", "cuMemFree_v2", "cudaHostAlloc"])
def test_allocation_through_other_functions_is_seen_too(name):
    kernels = [(1000 + i * 1000, 800, "k") for i in range(5)]
    view = trace(nvtx=STEPS, kernels=kernels, cuda_api=[(1800 + i * 1000, 200, name) for i in range(5)])
    assert [f.code for f in ANALYSIS.judge(ANALYSIS.run(view))] == ["TV301"]


def test_allocation_from_a_stream_ordered_pool_is_the_cure_and_no_finding():
    kernels = [(1000 + i * 1000, 800, "k") for i in range(5)]
    view = trace(nvtx=STEPS, kernels=kernels, cuda_api=[(1800 + i * 1000, 200, "cudaMallocAsync") for i in range(5)])
    assert ANALYSIS.judge(ANALYSIS.run(view)) == ()


def test_allocation_at_start_up_is_no_finding_however_large():
    view = trace(nvtx=STEPS, kernels=BUSY, cuda_api=[(0, 1000, "cudaMalloc")])
    assert ANALYSIS.judge(ANALYSIS.run(view)) == ()


def test_allocation_behind_a_busy_device_is_no_finding():
    view = trace(nvtx=STEPS, kernels=BUSY, cuda_api=[(1100 + i * 1000, 800, "cudaMalloc") for i in range(5)])
    assert ANALYSIS.judge(ANALYSIS.run(view)) == ()


def test_streams_created_in_steps_are_a_finding():
    kernels = [(1000 + i * 1000, 900, "k") for i in range(5)]
    calls = [(1900 + i * 1000, 100, "cudaStreamCreateWithFlags") for i in range(5)]
    (finding,) = ANALYSIS.judge(ANALYSIS.run(trace(nvtx=STEPS, kernels=kernels, cuda_api=calls)))
    assert (finding.code, finding.cost_ns) == ("TV304", 500)


def test_a_wait_that_exposes_the_next_gap_costs_at_most_what_it_waited():
    kernels = [(1000 + i * 1000, 700, "k") for i in range(5)]
    waits = [(1500 + i * 1000, 205, "cudaDeviceSynchronize") for i in range(5)]
    (finding,) = ANALYSIS.judge(ANALYSIS.run(trace(nvtx=STEPS, kernels=kernels, cuda_api=waits)))
    assert (finding.code, finding.cost_ns) == ("TV203", 5 * 205)


def test_a_wait_for_a_busy_device_costs_nothing():
    waits = [(1100 + i * 1000, 800, "cudaStreamSynchronize") for i in range(5)]
    assert ANALYSIS.judge(ANALYSIS.run(trace(nvtx=STEPS, kernels=BUSY, cuda_api=waits))) == ()


def test_a_gap_spent_loading_is_not_blamed_on_the_wait_before_it():
    kernels = [(1000 + i * 1000, 600, "k") for i in range(5)]
    waits = [(1100 + i * 1000, 501, "cudaStreamSynchronize") for i in range(5)]
    loading = [(1601 + i * 1000, 399, "data loading") for i in range(5)]
    assert ANALYSIS.judge(ANALYSIS.run(trace(nvtx=STEPS + loading, kernels=kernels, cuda_api=waits))) == ()


def test_a_process_without_steps_is_not_judged_beside_one_that_has_them():
    other = {"process_id": 1, "device_id": 1}
    calls = [
        (100, 50, "cudaMalloc", {"process_id": 1, "thread_id": 1}),
        (2000, 50, "cudaMalloc", {"process_id": 1, "thread_id": 1}),
    ]
    view = trace(nvtx=STEPS, kernels=[*BUSY, (50, 10, "k", other), (5000, 10, "k", other)], cuda_api=calls)
    result = ANALYSIS.run(view)
    assert result.judged_ns == 5000
    assert result.by_name.select("startup_ns", "steady_ns").row(0) == (50, 50)


def waiting(wait_name, *, op=None, memcpy=(), steps=5):
    """Steps of 1000 ns: launch, wait until the kernel has ended at 500, and prepare for 300 ns before the next one."""
    begins = [i * 1000 for i in range(steps)]
    api = [(begin + 10, 10, "cudaLaunchKernel") for begin in begins]
    api += [(begin + 100, 420, wait_name, {"correlation_id": 10 + i}) for i, begin in enumerate(begins)]
    return {
        "steps": [(begin, 1000, i) for i, begin in enumerate(begins)],
        "kernels": [(begin + 20, 480, "k") for begin in begins],
        "cuda_api": api,
        "memcpy": [(begin + 510, 5, *memcpy, {"correlation_id": 10 + i}) for i, begin in enumerate(begins) if memcpy],
        "host_ops": [(begin + 90, 440, op, "op") for begin in begins if op]
        + [(begin + 95, 430, "aten::_local_scalar_dense", "op") for begin in begins if op],
    }


def sync_findings(**literals):
    analysis = CudaApiAnalysis()
    return [finding for finding in analysis.judge(analysis.run(trace(**literals))) if finding.code == "TV203"]


def test_a_wait_names_the_outermost_operation_that_waited_and_what_to_do_about_it():
    (finding,) = sync_findings(**waiting("cudaStreamSynchronize", op="aten::item"))
    assert "cudaStreamSynchronize, in aten::item" in finding.message
    assert ("cause", "aten::item") in {(fact.key, fact.value) for fact in finding.evidence}
    assert "loss.item()" in finding.advice[0]
    assert finding.cost_ns == 4 * 420 + 420  # each gap of 520 is won up to the wait of 420


def test_an_asynchronous_copy_to_pageable_memory_is_a_wait_and_one_to_pinned_memory_is_none():
    to_pageable = waiting("cudaMemcpyAsync", op="aten::item", memcpy=("d2h", "device", "pageable", 4))
    to_pinned = waiting("cudaMemcpyAsync", op="aten::item", memcpy=("d2h", "device", "pinned", 4))
    (finding,) = sync_findings(**to_pageable)
    assert "1.0 times per steady step (mostly cudaMemcpyAsync, in aten::item)" in finding.message
    assert sync_findings(**to_pinned) == []


def test_a_wait_outside_of_any_operation_has_no_cause():
    (finding,) = sync_findings(**waiting("cudaDeviceSynchronize"))
    assert "mostly cudaDeviceSynchronize)" in finding.message
    assert "cause" not in {fact.key for fact in finding.evidence}


def test_hip_calls_are_judged_like_those_of_cuda():
    (finding,) = sync_findings(**waiting("hipStreamSynchronize", op="aten::nonzero"))
    assert "torch.where" in finding.advice[0]
    assert finding.evidence[0].value == 1.0
