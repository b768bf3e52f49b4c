"""Kernels by name, shape and family, and launch-bound devices."""

import statistics

import pytest

from tests.analyses import sections
from tests.analyses.builders import trace
from traceviz.analyses.device.kernels import KernelsAnalysis
from traceviz.report import Bars, Severity

GEMM = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, A>(int)"


def section(view):
    return KernelsAnalysis().describe(KernelsAnalysis().run(view))


def rows(view, number=0):
    return sections.grids(KernelsAnalysis(), view)[number]


def facts(view):
    return sections.facts(KernelsAnalysis(), view)


def test_kernels_are_summed_by_name_with_class_and_share():
    gemm, add = rows(trace(kernels=[(0, 60, GEMM), (70, 15, ADD), (90, 10, ADD), (110, 15, ADD)]))
    assert (gemm["family"], gemm["precision"], gemm["tensor_core"], gemm["calls"]) == ("gemm", "bf16", True, 1)
    assert (gemm["total_ns"], gemm["share_of_kernel_time"], gemm["stddev_ns"]) == (60, 0.6, 0.0)
    assert (add["family"], add["precision"], add["tensor_core"], add["calls"]) == ("elementwise", "f32", False, 3)
    assert (add["total_ns"], add["median_ns"], add["min_ns"], add["max_ns"]) == (40, 15.0, 10, 15)
    assert add["stddev_ns"] == pytest.approx(statistics.stdev([15, 10, 15]))


def test_shares_add_up_to_one_and_families_to_all_kernel_time():
    view = trace(kernels=[(i * 100, 7 + i % 11, name) for i in range(50) for name in (GEMM, ADD, "mine")])
    assert sum(row["share_of_kernel_time"] for row in rows(view)) == pytest.approx(1.0)
    bars = next(block for block in section(view).blocks if isinstance(block, Bars))
    assert sum(bar.value for bar in bars.bars) == facts(view)["total_ns"]
    assert {bar.key for bar in bars.bars} == {"gemm", "elementwise", "unknown"}


def test_classified_and_tensor_core_shares_are_of_kernel_time():
    values = facts(trace(kernels=[(0, 50, GEMM), (60, 30, ADD), (100, 20, "mine")]))
    assert (values["total_ns"], values["calls"]) == (100, 3)
    assert (values["classified_share"], values["tensor_core_share"]) == (0.8, 0.5)


def test_without_kernels_shares_are_not_measured():
    values = facts(trace(kernels=[], memset=[(0, 5, 8)]))
    assert (values["total_ns"], values["classified_share"], values["tensor_core_share"]) == (0, None, None)


def test_launch_shapes_are_told_apart_for_machines():
    view = trace(kernels=[(0, 5, "k", {"grid_x": 8, "block_x": 128}), (9, 7, "k"), (20, 9, "k")])
    shapes = {(row["grid"], row["block"]): (row["calls"], row["total_ns"]) for row in rows(view, 1)}
    assert shapes == {("8x1x1", "128x1x1"): (1, 5), ("1x1x1", "1x1x1"): (2, 16)}


def kernel_every(period, dur, count=1_000, **extra):
    return [(i * period, dur, "k", dict(extra)) for i in range(count)]


def launch_bound(kernels, **tables):
    analysis = KernelsAnalysis()
    return analysis.judge(analysis.run(trace(kernels=kernels, **tables)))


def test_kernels_of_single_framework_ops_get_the_advice_to_compile_first():
    (single,) = launch_bound(kernel_every(10_000, 4_000, op="a:Mul"))
    (compiled,) = launch_bound(kernel_every(10_000, 4_000, op="fusion.1", module="jit_f"))
    assert "XLA" in single.advice[0]
    assert len(single.advice) == len(compiled.advice) + 1
    assert single.advice[1:] == compiled.advice


def test_short_kernels_with_idle_behind_each_are_launch_bound():
    (finding,) = launch_bound(kernel_every(10_000, 4_000))
    assert (finding.code, finding.severity) == ("TV202", Severity.ERROR)
    assert finding.cost_ns == 999 * 6_000
    assert finding.share == pytest.approx(0.6, rel=1e-3)
    assert "4.00 µs on average" in finding.message
    facts = {fact.key: fact.value for fact in finding.evidence}
    assert facts == {"calls": 1_000, "mean_ns": 4_000.0, "starved_share": 0.999, "idle_ns": 999 * 6_000}


@pytest.mark.parametrize(("dur", "raised"), [(9_999, True), (10_000, False)])
def test_kernels_are_short_below_ten_microseconds(dur, raised):
    assert bool(launch_bound(kernel_every(dur + 5_000, dur))) is raised


@pytest.mark.parametrize(("gap", "raised"), [(1_999, False), (2_000, True), (100_000, True), (100_001, False)])
def test_gaps_of_the_device_itself_and_gaps_with_another_cause_are_not_launches(gap, raised):
    assert bool(launch_bound(kernel_every(5_000 + gap, 5_000))) is raised


@pytest.mark.parametrize(("short", "raised"), [(601, True), (600, False)])
def test_a_few_long_kernels_do_not_hide_many_short_ones(short, raised):
    """601 kernels of 4 µs and 600 of 30 µs: the median is 4 µs, the mean 17 µs. With 600 of each, both are 17 µs."""
    kernels = [(i * 40_000, 4_000 if i < short else 30_000, "k") for i in range(short + 600)]
    findings = launch_bound(kernels)
    assert bool(findings) is raised
    assert all("Kernels take 4.00 µs in the median" in finding.message for finding in findings)
    assert [fact.value for finding in findings for fact in finding.evidence if fact.key == "median_ns"] == [
        4_000.0
    ] * raised


def test_half_of_the_kernels_must_be_followed_by_idle():
    pairs = [(i * 20_000 + j * 5_000, 5_000, "k") for i in range(500) for j in range(2)]
    assert launch_bound(pairs) == ()
    single = [(i * 20_000 + 50_000_000, 5_000, "k") for i in range(10)]
    assert launch_bound(pairs + single) != ()


@pytest.mark.parametrize(("kernels_per_step", "raised"), [(5, False), (20, True)])
def test_idle_below_five_percent_of_the_steady_steps_stays_silent(kernels_per_step, raised):
    # of each step of 1 ms, 4 or 19 gaps of 6 µs: 2.4 % or 11.4 %
    steps = [(i * 1_000_000, 1_000_000, i) for i in range(20)]
    kernels = [(start + j * 10_000, 4_000, "k") for start, _, _ in steps for j in range(kernels_per_step)]
    assert bool(launch_bound(kernels, steps=steps)) is raised


def test_a_device_that_copies_meanwhile_is_not_starved():
    copies = [(i * 10_000 + 4_000, 6_000, "h2d", "pinned", "device", 8) for i in range(1_000)]
    assert launch_bound(kernel_every(10_000, 4_000), memcpy=copies) == ()


def test_kernels_of_cuda_graphs_are_launched_together_and_not_judged():
    assert launch_bound(kernel_every(10_000, 4_000, graph_node_id=3)) == ()


def test_long_kernels_on_one_device_do_not_excuse_another():
    slow = [(i * 1_000_000, 990_000, "k", {"device_id": 1}) for i in range(10)]
    (finding,) = launch_bound(kernel_every(10_000, 4_000) + slow)
    assert finding.share == pytest.approx(0.3, rel=1e-2)  # of two devices' time


NCHW = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(P)"
NHWC = "void cudnn::ops::nhwcToNchwKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>(P)"


def conversions(*kernels):
    """Return TV310 of two steps of 1000 ns with these kernels in each."""
    rows = [(i * 1_000 + start, dur, name) for i in range(2) for start, dur, name in kernels]
    view = trace(kernels=rows, steps=[(i * 1_000, 1_000, i) for i in range(2)])
    return [finding for finding in KernelsAnalysis().judge(KernelsAnalysis().run(view)) if finding.code == "TV310"]


@pytest.mark.parametrize(
    ("name", "dur", "raised"),
    [
        (NCHW, 49, False),
        (NCHW, 50, True),
        (NHWC, 50, True),
        ("void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 256, 32, 32>(P)", 50, True),
        ("batched_transpose_16x32_half", 50, True),
        ("void tensorflow::functor::ShuffleInTensor3Simple<float, 2, 1, 0>(int, P)", 50, True),
        ("nchwToFoldedNhwcKernel", 50, False),
        # transposes that a program asks for, and kernels that work in a layout
        ("input_transpose_fusion", 500, False),
        ("sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x32x64", 500, False),
        ("void tensorflow::BiasNHWCKernel<float>(int)", 500, False),
    ],
)
def test_layout_conversions_count_from_5_percent_of_kernel_time_on(name, dur, raised):
    assert bool(conversions((0, 1_000 - dur, GEMM), (1_000 - dur, dur, name))) == raised


def test_layout_conversions_are_named_and_weighed_by_the_step_and_count_once_where_they_overlap():
    (found,) = conversions((0, 300, GEMM), (300, 80, NCHW), (340, 60, NHWC))
    assert found.message == (
        "25.0 % of the time in which kernels run goes into converting the layout of tensors (nchwToNhwcKernel and "
        "nhwcToNchwKernel): 10.0 % of the steady step time."
    )
    assert (found.severity, found.cost_ns, found.share) == (Severity.WARNING, 200, 0.1)
    assert {fact.key: fact.value for fact in found.evidence} == {"calls": 4, "layout_ns": 200, "kernel_ns": 800}
