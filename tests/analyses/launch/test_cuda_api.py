"""CUDA API time share: counts, shares, start-up and steady parts, exposure, and what is worth a finding."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.launch.cuda_api import CudaApiAnalysis
from traceviz.analyses.run import analyze
from traceviz.render.figures.registry import figure
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.trace.names.cuda_names import in_words_of_hip

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


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        *((name, ["TV301"]) for name in ("cudaMalloc", "cuMemAlloc_v2", "cuMemFree_v2", "cudaHostAlloc")),
        ("cudaMallocAsync", []),  # memory from a pool in stream order is the cure
        ("cudaStreamCreateWithFlags", ["TV304"]),
    ],
)
def test_allocation_and_streams_in_steps_that_leave_the_device_idle_are_findings(name, codes):
    kernels = [(1000 + i * 1000, 800, "k") for i in range(5)]
    view = trace(nvtx=STEPS, kernels=kernels, cuda_api=[(1800 + i * 1000, 200, name) for i in range(5)])
    found = ANALYSIS.judge(ANALYSIS.run(view))
    assert [(finding.code, finding.cost_ns, finding.share) for finding in found] == [
        (code, 1000, 0.2) for code in codes
    ]


@pytest.mark.parametrize(
    "calls",
    [
        [(0, 1000, "cudaMalloc")],  # at start-up
        [(1100 + i * 1000, 800, "cudaMalloc") for i in range(5)],  # the device works
        [(1100 + i * 1000, 800, "cudaStreamSynchronize") for i in range(5)],
    ],
)
def test_calls_at_start_up_or_behind_a_busy_device_cost_nothing(calls):
    assert ANALYSIS.judge(ANALYSIS.run(trace(nvtx=STEPS, kernels=BUSY, cuda_api=calls))) == ()


def test_a_wait_that_exposes_the_next_gap_costs_at_most_what_it_waited():
    kernels = [(1000 + i * 1000, 700, "k") for i in range(5)]
    waits = [(1500 + i * 1000, 205, "cudaDeviceSynchronize") for i in range(5)]
    (finding,) = ANALYSIS.judge(ANALYSIS.run(trace(nvtx=STEPS, kernels=kernels, cuda_api=waits)))
    assert (finding.code, finding.cost_ns) == ("TV203", 5 * 205)


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
    """Return steps of 1000 ns: launch, wait until the kernel has ended at 500, and prepare for the next for 300 ns."""
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


@pytest.mark.parametrize(
    ("name", "memory"),
    [("cudaMemcpyAsync", "pageable"), ("hipMemcpyAsync", "unknown"), ("hipMemcpyWithStream", "unknown")],
)
def test_a_copy_from_a_device_that_returns_when_its_data_has_arrived_is_a_wait(name, memory):
    (finding,) = sync_findings(**waiting(name, op="aten::item", memcpy=("d2h", "device", memory, 4)))
    assert f"1.0 times per steady step (mostly {name}, in aten::item)" in finding.message


def test_a_copy_to_pinned_memory_that_returns_at_once_is_no_wait():
    to_pinned = waiting("cudaMemcpyAsync", op="aten::item", memcpy=("d2h", "device", "pinned", 4))
    calls = [(start, 30 if "Memcpy" in name else dur, name, *key) for start, dur, name, *key in to_pinned["cuda_api"]]
    assert sync_findings(**to_pinned | {"cuda_api": calls}) == []


US = 1_000


def reading(idle_us, name="cudaMemcpyAsync", memory="pageable", kind="d2h", steps=5, **others):
    """Return a trace with steps of 1 ms in which a copy waits 320 µs; the device computes except for ``idle_us``."""
    begins = [step * 1_000 * US for step in range(steps)]
    ends = (kind, "device", memory) if kind == "d2h" else (kind, memory, "device")
    launches = [(begin + n * US, US, "cudaLaunchKernel") for begin in begins for n in range(3)]
    keys = [{"correlation_id": 10 + step} for step in range(steps)]
    copies = list(zip(begins, keys, strict=True))
    return trace(
        steps=[(begin, 1_000 * US, step) for step, begin in enumerate(begins)],
        kernels=[
            row for b in begins for row in ((b, 400 * US, "k"), (b + (400 + idle_us) * US, (590 - idle_us) * US, "k"))
        ],
        cuda_api=[*launches, *((begin + 390 * US, 321 * US, name, key) for begin, key in copies)],
        memcpy=[(begin + 700 * US, US, *ends, 4, key) for begin, key in copies],
        **others,
    )


def blocking(view):
    return [finding for finding in ANALYSIS.judge(ANALYSIS.run(view)) if finding.code == "TV206"]


def test_a_copy_that_holds_up_the_host_while_the_device_idles_is_a_finding_that_says_where_it_is():
    begins = [step * 1_000 * US for step in range(5)]
    ops = [(begin + 350 * US, 400 * US, "## metrics ##", "annotation") for begin in begins]
    ops += [(begin + 360 * US, 380 * US, "/home/me/train.py(41): log_loss", "python") for begin in begins]
    ops += [(begin + 370 * US, 370 * US, "nn.Module: Loss_0", "python") for begin in begins]
    ops += [(begin + 380 * US, 350 * US, "aten::item", "op") for begin in begins]
    (finding,) = blocking(reading(200, host_ops=ops))
    assert (finding.cost_ns, finding.share) == (5 * 200 * US, 0.2)
    assert finding.message == (
        "In 20.0 % of the steady step time (1.00 ms) no device works while the host waits in copies to pageable host "
        "memory (5 calls, cudaMemcpyAsync, mostly in metrics > Loss_0 > aten::item, train.py:41 log_loss)."
    )
    assert finding.advice[0].startswith("PyTorch: loss.item()")
    assert ("place", "metrics > Loss_0 > aten::item, train.py:41 log_loss") in {
        (f.key, f.value) for f in finding.evidence
    }


@pytest.mark.parametrize(("idle_us", "found"), [(0, 0), (49, 0), (50, 1)])
def test_a_copy_that_waits_for_a_busy_device_is_no_finding(idle_us, found):
    assert len(blocking(reading(idle_us))) == found


@pytest.mark.parametrize(
    ("name", "memory", "kind", "words", "advice"),
    [
        ("hipMemcpyWithStream", "unknown", "d2h", "copies to host memory", "Read results"),
        ("cudaMemcpyAsync", "pageable", "h2d", "copies from pageable host memory", "Copy to the device from pinned"),
    ],
)
def test_advice_goes_by_the_direction_of_the_copies(name, memory, kind, words, advice):
    (finding,) = blocking(reading(100, name, memory, kind))
    assert f"waits in {words} (5 calls, {name})" in finding.message
    assert finding.advice[0].startswith(advice)


def test_a_call_that_says_that_it_blocks_has_a_rule_of_its_own():
    assert blocking(reading(100, "cudaMemcpy")) == []


def test_without_steps_copies_that_hold_up_the_host_are_judged_as_well():
    begins = [step * 1_000 * US for step in range(2)]
    keys = [{"correlation_id": 1}, {"correlation_id": 2}]
    view = trace(
        kernels=[(begin, 400 * US, f"k{begin}") for begin in begins],
        cuda_api=[
            (begin + 390 * US, 321 * US, "cudaMemcpyAsync", key) for begin, key in zip(begins, keys, strict=True)
        ],
        memcpy=[(b + 700 * US, US, "d2h", "device", "pageable", 4, key) for b, key in zip(begins, keys, strict=True)],
    )
    (finding,) = blocking(view)
    assert finding.cost_ns == 300 * US + 290 * US  # the last work of the device is the copy


def test_a_wait_outside_of_any_operation_has_no_cause():
    (finding,) = sync_findings(**waiting("cudaDeviceSynchronize"))
    assert "mostly cudaDeviceSynchronize)" in finding.message
    assert "cause" not in {fact.key for fact in finding.evidence}


@pytest.mark.parametrize("api", ["HIP", "CUDA"])
def test_a_report_has_the_words_of_the_api_that_the_program_called(api):
    literals = waiting("cudaStreamSynchronize", op="aten::nonzero")
    calls = [(begin, dur, name.replace("cuda", api.lower()), *more) for begin, dur, name, *more in literals["cuda_api"]]
    report = analyze(tables(**{**literals, "cuda_api": calls}))
    assert report.section("cuda_api").title == f"{api} API time share"
    assert figure(report, "api").title == f"{api} API time by function"
    text = renderer("terminal").render(report, RenderOptions(100))
    assert ("CUDA" in text, "HIP" in text) == (api == "CUDA", api == "HIP")


def test_words_of_hip_leave_modules_and_kernels_as_they_are():
    text = "CUDA: cudaMemcpyAsync; torch.cuda.synchronize; CUDAFunctor_add; CUDA graphs; mse_kernel_cuda"
    said = "HIP: hipMemcpyAsync; torch.cuda.synchronize; CUDAFunctor_add; HIP graphs; mse_kernel_cuda"
    assert in_words_of_hip(text) == said


def test_hip_calls_are_judged_like_those_of_cuda():
    (finding,) = sync_findings(**waiting("hipStreamSynchronize", op="aten::nonzero"))
    assert "torch.where" in finding.advice[0]
    assert finding.evidence[0].value == 1.0


def remarks(view):
    return ANALYSIS.run(view).remarks


def test_the_section_says_which_asynchronous_copies_wait_and_what_first_calls_do():
    assert remarks(reading(200)) == ("5 of 5 calls of cudaMemcpyAsync wait until their copy is done, 1.60 ms in all.",)
    assert remarks(reading(200, memory="pinned", kind="h2d", name="cudaMemcpy")) == ()
    ms = 1_000 * US
    calls = [(0, 80 * ms, "cudaFree"), (90 * ms, 3 * ms, "cudaLaunchKernel"), (99 * ms, US, "cudaLaunchKernel")]
    assert remarks(trace(cuda_api=calls)) == (
        "1 call of cudaFree took 80.0 ms to create the context of a device, which comes once.",
        "1 call of cudaLaunchKernel took 3.00 ms to load device code, which comes once.",
    )
    (prose,) = [block.text for block in ANALYSIS.describe(ANALYSIS.run(reading(200))).blocks if hasattr(block, "text")]
    assert prose.startswith("5 of 5 calls of cudaMemcpyAsync wait")


def test_what_takes_less_than_a_hundredth_of_the_time_of_calls_is_not_remarked():
    first = [(0, 2_000 * US, "cudaLaunchKernel"), *((n * 10_000 * US, US, "cudaLaunchKernel") for n in range(1, 9))]
    assert len(remarks(trace(cuda_api=first))) == 1
    assert remarks(trace(cuda_api=[*first, (90_000 * US, 250_000 * US, "cudaStreamSynchronize")])) == ()
