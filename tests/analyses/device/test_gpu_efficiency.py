"""SM efficiency and occupancy from launch shapes: per GPU, per kernel, and when grids are too small."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz import api
from traceviz.analyses.device.gpu_efficiency import GpuEfficiencyAnalysis
from traceviz.analyses.run import analyze
from traceviz.report import Prose, Severity, Skipped

A100 = {"ordinal": 0, "sm_count": 108, "compute_capability": "8.0", "max_threads_per_sm": 2048}
V100 = {"ordinal": 0, "sm_count": 80, "compute_capability": "7.0", "max_threads_per_sm": 2048}
TEN_SMS = {"ordinal": 0, "sm_count": 10, "max_threads_per_sm": 1000}


def kernel(start, dur, blocks=1, threads=32, name="sgemm", **more):
    return (start, dur, name, {"grid_x": blocks, "block_x": threads, **more})


def run(device=TEN_SMS, **literals):
    return GpuEfficiencyAnalysis().run(trace(devices=[(0, "GPU", device)], **literals))


def of(device=TEN_SMS, **literals):
    (gpu,) = run(device, **literals).gpus
    return gpu


class TestSmEfficiency:
    def test_is_the_share_of_sms_with_a_block_and_idle_time_counts_as_0(self):
        gpu = of(kernels=[kernel(0, 40, blocks=5), kernel(60, 20, blocks=30)], steps=[(0, 100, 0)])
        assert gpu.judged.sm_efficiency == pytest.approx((40 * 0.5 + 20 * 1.0) / 100)
        assert gpu.judged.blocks_per_sm == pytest.approx((40 * 0.5 + 20 * 3.0) / 60)
        assert (gpu.judged.kernel_ns, gpu.judged.window_ns) == (60, 100)

    def test_adds_up_kernels_that_run_at_once_and_stops_at_all_sms(self):
        kernels = [kernel(0, 40, blocks=5), kernel(20, 40, blocks=7, stream=8)]
        gpu = of(kernels=kernels, steps=[(0, 100, 0)])
        assert gpu.judged.sm_efficiency == pytest.approx((20 * 0.5 + 20 * 1.0 + 20 * 0.7) / 100)

    def test_counts_only_judged_time(self):
        kernels = [kernel(0, 50, blocks=10), kernel(150, 100, blocks=5)]
        gpu = of(kernels=kernels, steps=[(100, 100, 0), (200, 100, 1)])
        assert gpu.judged.sm_efficiency == pytest.approx(100 * 0.5 / 200)
        assert gpu.kernel_ns == 150

    def test_takes_the_producer_s_blocks_per_sm_before_its_own(self):
        gpu = of(kernels=[kernel(0, 100, blocks=10, blocks_per_sm=0.25)])
        assert gpu.judged.sm_efficiency == 0.25

    def test_is_unknown_and_not_0_where_the_gpu_is_unknown(self):
        skipped = run({"ordinal": 0}, kernels=[kernel(0, 100)])
        assert isinstance(skipped, Skipped)
        assert "how many multiprocessors" in skipped.reason

    def test_of_a_device_without_figures_is_none_beside_one_with(self):
        result = GpuEfficiencyAnalysis().run(
            trace(
                devices=[(0, "A", TEN_SMS), (1, "B", {"ordinal": 1})],
                kernels=[kernel(0, 100, blocks=5), kernel(0, 100, device_id=1)],
            )
        )
        assert [gpu.judged.sm_efficiency for gpu in result.gpus] == [0.5, None]
        assert result.mean("sm_efficiency", "window_ns") == 0.5
        text = " ".join(" ".join(str(b) for b in GpuEfficiencyAnalysis().describe(result).blocks).split())
        assert "Not known: blocks per SM of 50.0 % of kernel time and occupancy of 50.0 % of kernel time." in text


class TestOccupancy:
    @pytest.mark.parametrize(
        ("device", "launch", "stated"),
        [
            # blocks, threads, registers and shared memory of launches that PyTorch recorded, and what it states
            (V100, (448, 256, 128, 32768), 25),
            (V100, (1024, 256, 62, 9216), 50),
            (V100, (1024, 256, 80, 6400), 38),
            (V100, (576, 64, 126, 8448), 22),
            (V100, (512, 512, 32, 144), 100),
            (A100, (80, 128, 94, 25600), 5),
            (A100, (1792, 256, 32, 4224), 100),
            (A100, (512, 128, 32, 0), 30),
        ],
    )
    def test_equals_what_the_profiler_of_pytorch_states(self, device, launch, stated):
        blocks, threads, registers, shared = launch
        shape = {"registers_per_thread": registers, "static_shared_bytes": shared}
        gpu = of(device, kernels=[kernel(0, 100, blocks, threads, **shape)])
        assert 100 * gpu.judged.occupancy == pytest.approx(stated, abs=0.5)

    @pytest.mark.parametrize(
        ("registers", "shared", "resident"),
        [
            (32, 0, 8),  # 2048 threads / 256
            (33, 0, 6),  # 40 registers after rounding: 12 warps in each quarter of the SM, 48 in all
            (255, 0, 1),  # 2 warps in each quarter, 8 in all
            (32, 40 * 1024, 4),  # 164 KiB / (40 + 1 reserved)
            (32, 41 * 1024, 3),
        ],
    )
    def test_is_limited_by_warps_registers_and_shared_memory(self, registers, shared, resident):
        shape = {"registers_per_thread": registers, "dynamic_shared_bytes": shared}
        gpu = of(A100, kernels=[kernel(0, 100, 100_000, 256, **shape)])
        assert gpu.judged.occupancy == pytest.approx(resident * 256 / 2048)

    def test_is_limited_by_the_number_of_blocks(self):
        shape = {"registers_per_thread": 16, "static_shared_bytes": 0}
        turing = {**A100, "compute_capability": "7.5", "max_threads_per_sm": 1024}
        assert of(turing, kernels=[kernel(0, 100, 100_000, 32, **shape)]).judged.occupancy == 16 * 32 / 1024

    def test_of_kernels_is_weighted_by_their_time(self):
        kernels = [kernel(0, 30, achieved_occupancy=0.5), kernel(50, 10, achieved_occupancy=0.1)]
        assert of(kernels=kernels).judged.occupancy == pytest.approx((30 * 0.5 + 10 * 0.1) / 40)

    def test_stated_as_0_is_computed_since_a_kernel_that_runs_fills_something(self):
        launch = {"registers_per_thread": 64, "dynamic_shared_bytes": 80 * 1024, "achieved_occupancy": 0.0}
        assert of(A100, kernels=[kernel(0, 100, 1080, 128, **launch)]).judged.occupancy == 2 * 128 / 2048

    def test_of_blocks_that_have_an_sm_each_needs_no_limits(self):
        assert of(kernels=[kernel(0, 100, blocks=5, threads=100)]).judged.occupancy == 0.5 * 100 / 1000

    @pytest.mark.parametrize("missing", ["registers_per_thread", "static_shared_bytes", "compute_capability"])
    def test_is_unknown_where_a_limit_is(self, missing):
        shape = {"registers_per_thread": 64, "static_shared_bytes": 0}
        device = {key: value for key, value in A100.items() if key != missing}
        shape = {key: value for key, value in shape.items() if key != missing}
        gpu = of(device, kernels=[kernel(0, 100, 1080, 128, **shape)])
        assert gpu.judged.occupancy is None
        assert gpu.judged.sm_efficiency == 1.0

    def test_takes_a_stated_theoretical_occupancy_for_the_limit(self):
        assert of(kernels=[kernel(0, 100, 1000, 100, occupancy=0.3)]).judged.occupancy == pytest.approx(0.3)
        assert of(kernels=[kernel(0, 100, 20, 100, occupancy=0.3)]).judged.occupancy == pytest.approx(0.2)

    def test_of_a_launch_that_the_limits_forbid_is_unknown(self):
        shape = {"registers_per_thread": 32, "static_shared_bytes": 300 * 1024}
        assert of(A100, kernels=[kernel(0, 100, 1080, 128, **shape)]).judged.occupancy is None


class TestKernels:
    def test_have_figures_weighted_by_their_time(self):
        kernels = [kernel(0, 30, blocks=5), kernel(50, 10, blocks=20), kernel(80, 5, blocks=1, name="small")]
        rows = run(kernels=kernels).kernels.select("name", "calls", "total_ns", "sm_efficiency", "blocks_per_sm").rows()
        assert rows == [("sgemm", 2, 40, (30 * 0.5 + 10) / 40, (30 * 0.5 + 10 * 2) / 40), ("small", 1, 5, 0.1, 0.1)]

    def test_of_unknown_shape_have_none(self):
        unknown = dict.fromkeys(("grid_x", "grid_y", "grid_z"), None)
        kernels = [kernel(0, 30, blocks=5), kernel(50, 10, name="graph", **unknown)]
        assert run(kernels=kernels).kernels.select("name", "sm_efficiency").rows() == [("sgemm", 0.5), ("graph", None)]


class TestWhatIsNotKnown:
    def test_is_told_with_its_share_of_kernel_time_and_nothing_where_all_is_known(self):
        known = {"blocks_per_sm": 2.0, "achieved_occupancy": 0.5}
        texts = []
        for second in (known, {"blocks_per_sm": 2.0}):
            view = trace(kernels=[(0, 300, "a", known), (400, 100, "b", second)])
            analysis = GpuEfficiencyAnalysis()
            blocks = analysis.describe(analysis.run(view)).blocks
            texts += [block.text for block in blocks if isinstance(block, Prose)]
        assert len(texts) == 2
        assert "Not known" not in texts[0]
        assert texts[1].endswith("Not known: occupancy of 25.0 % of kernel time.")


class TestSmallGrids:
    @pytest.mark.parametrize(("dur", "raised"), [(249, False), (250, True), (251, True)])
    def test_are_a_finding_from_a_fifth_of_the_judged_time_on(self, dur, raised):
        """Two of ten SMs have a block: eight tenths of the kernel's time are empty."""
        report = analyze(
            tables(devices=[(0, "GPU", TEN_SMS)], kernels=[kernel(0, dur, blocks=2)], steps=[(0, 1000, 0)])
        )
        findings = [f for f in report.findings if f.code == "TV204"]
        assert bool(findings) == raised
        if raised:
            assert (findings[0].cost_ns, findings[0].severity) == (round(dur * 0.8), Severity.ERROR)
            assert "100.0 % of kernel time is in grids with fewer blocks" in findings[0].message

    def test_are_no_finding_where_grids_fill_the_gpu(self):
        kernels = [kernel(0, 900, blocks=10), kernel(900, 100, blocks=1)]
        assert not GpuEfficiencyAnalysis().judge(run(kernels=kernels, steps=[(0, 1000, 0)]))

    def test_beside_a_large_kernel_leave_nothing_empty(self):
        kernels = [kernel(0, 900, blocks=1), kernel(0, 900, blocks=9, stream=8)]
        assert of(kernels=kernels, steps=[(0, 1000, 0)]).judged.empty_ns == 0

    def test_of_communication_are_small_on_purpose(self):
        kernels = [kernel(0, 900, blocks=2, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")]
        result = run(kernels=kernels, steps=[(0, 1000, 0)])
        assert result.gpus[0].judged.empty_ns == 0
        assert not GpuEfficiencyAnalysis().judge(result)

    def test_speak_of_free_memory_where_that_is_known(self):
        """The rule that knows more speaks alone."""
        report = analyze(
            tables(
                devices=[(0, "GPU", {**TEN_SMS, "memory_bytes": 1000})],
                kernels=[kernel(0, 900, blocks=1)],
                steps=[(0, 1000, 0)],
                memory_events=[(1, "alloc", 8, {"in_use_bytes": 100, "available_bytes": 900})],
            )
        )
        codes = {f.code for f in report.findings}
        assert "TV409" in codes
        assert "TV204" not in codes


def test_the_report_says_what_was_estimated_from_what():
    kernels = [kernel(0, 500, blocks=20, threads=100, achieved_occupancy=0.25)]
    report = analyze(
        tables(devices=[(0, "GPU", TEN_SMS)], kernels=kernels, steps=[(0, 1000, 0)]), sections=["gpu_efficiency"]
    )
    assert report.fact("gpu_efficiency", "utilisation") == 0.5
    assert report.fact("gpu_efficiency", "sm_efficiency") == 0.5
    assert report.fact("gpu_efficiency", "occupancy") == 0.25
    text = " ".join(api.to_text(report).split())
    assert (
        "SM efficiency is estimated from blocks per SM, occupancy as the trace states it; neither was measured." in text
    )


def test_full_gpus_and_unknown_ones_are_no_finding_whatever_the_threshold():
    view = trace(kernels=[(0, 10, "k", {"grid_x": None, "achieved_occupancy": 0.5})])
    analysis = GpuEfficiencyAnalysis(empty_share=0.0)
    assert analysis.judge(analysis.run(view)) == ()


def test_a_grid_beyond_all_bounds_fills_the_gpu_once():
    grid = {"grid_x": 2**31 - 1, "grid_y": 65535, "grid_z": 65535}
    view = trace(
        kernels=[(0, 10, "k", grid), (5, 15, "k", {"blocks_per_sm": 0.5})], devices=[(0, "X", {"sm_count": 1})]
    )
    assert GpuEfficiencyAnalysis().run(view).gpus[0].judged.sm_efficiency == 0.75
