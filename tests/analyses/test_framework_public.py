"""Results of the framework analyses for public captures: figures counted independently from the files."""

import pytest

from tests.support.reports import tables_of
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.devices import DevicesAnalysis
from traceviz.analyses.device.memory import MemoryAnalysis
from traceviz.analyses.device.precision import PrecisionAnalysis
from traceviz.analyses.device.programs import DeviceProgramsAnalysis
from traceviz.analyses.program.framework_ops import FrameworkOpsAnalysis

T4 = "ecbme4040__e4040-2022fall-assign2-yg2820__2022_11_04_21_26_12__instance-ecbm.xplane.pb"
MI300 = "AMD-AGI__TraceLens__chi-mi300x-013.ord.vultr.cpe.ice.amd.com.xplane.pb"
TPU = "openxla__xprof__2cc1243__tpu_inference_2.xplane.pb"


@pytest.fixture
def view(public_traces):
    return lambda name: TraceView(tables_of(public_traces / "xplane" / name))


def test_memory_of_the_t4_peaks_in_a_convolutions_workspace(view):
    device, host = MemoryAnalysis().run(view(T4)).pools
    assert (device.pool.label, device.peak_bytes, device.capacity_bytes) == ("GPU_0_bfc", 53_543_168, 14_648_653_952)
    assert (device.lifetime_peak_bytes, host.pool.label, host.peak_bytes) == (107_324_160, "gpu_host_bfc", 3072)
    largest = device.holders.row(0)
    assert largest[0] == "gradient_tape/sequential/conv2d_2/Conv2D/Conv2DBackpropFilter"
    assert device.holders["bytes"].sum() == device.peak_bytes


def test_device_time_of_the_t4s_ops_is_that_of_its_kernels_and_copies(view):
    trace = view(T4)
    result = FrameworkOpsAnalysis().run(trace)
    work = sum(int(trace.frame(name, "dur_ns")["dur_ns"].sum()) for name in ("kernels", "memcpy"))
    unnamed = sum(
        int(frame.filter(frame["op"].is_null())["dur_ns"].sum())
        for frame in (trace.frame(name, "dur_ns", "op") for name in ("kernels", "memcpy"))
    )
    assert result.by_op["device_ns"].sum() == work - unnamed
    host = {row["op"]: row["host_self_ns"] for row in result.by_op.iter_rows(named=True)}
    assert (host["GatherV2"], host["IteratorGetNext/_3"]) == (364_260, 791_027)


def test_the_t4_runs_its_convolutions_in_32_bits(view):
    analysis = PrecisionAnalysis()
    result = analysis.run(view(T4))
    (finding,) = analysis.judge(result)
    assert finding.code == "TV405"
    assert result.full_ns == pytest.approx(4_720_000, rel=0.01)
    assert finding.cost_ns == round(result.full_ns * (1 - 1 / 2))  # no product name: at least this factor
    assert finding.message.endswith("16-bit floats faster (counted as 2 times as fast: no data sheet is known).")


def test_one_of_eight_devices_computes_on_the_mi300_machine_and_waits_too_much_to_need_the_others(view):
    analysis = DevicesAnalysis()
    result = analysis.run(view(MI300))
    assert (len(result.devices), result.computing, result.devices[7].kernel_ns) == (8, 1, 3_586_493)
    assert result.busy_ns / result.judged_ns == pytest.approx(0.115, abs=0.001)
    assert analysis.judge(result) == ()


def test_tpus_that_wait_for_copies_do_not_wait_for_infeed(view):
    analysis = DeviceProgramsAnalysis()
    result = analysis.run(view(TPU))
    assert [device.executions for device in result.devices] == [105, 103, 103, 103]
    assert [round(device.window_ns / 1e6) for device in result.devices] == [92563, 90456, 90763, 90418]
    assert [round(device.times["async_wait_ns"] / 1e6) for device in result.devices] == [76048, 76049, 76131, 76029]
    assert [round(device.times["compute_ns"] / 1e6) for device in result.devices] == [2371, 2375, 2286, 2372]
    assert [round(device.times["collective_ns"] / 1e6) for device in result.devices] == [365] * 4
    assert [round(device.step_ns / 1e6, 1) for device in result.devices] == [784.1, 784.1, 784.0, 783.9]
    assert all(device.window_ns == sum(device.times.values()) for device in result.devices)
    assert [(finding.code, finding.cost_ns) for finding in analysis.judge(result)] == [("TV410", 304_257_927_835)]
