"""The input verdict on public captures of TensorFlow and JAX, against figures of TensorBoard's own files."""

import pytest

from tests.support.reports import report_of

T4 = "xplane/ecbme4040__e4040-2022fall-assign2-yg2820__2022_11_04_21_26_12__instance-ecbm.xplane.pb"
MAC = "xplane/ecbme4040__e4040-2022fall-assign2-yg2820__2022_10_31_19_09_08__gaoyihaodeMacBook-Pro.local.xplane.pb"
TPU = "xplane/openxla__xprof__2cc1243__tpu_inference_2.xplane.pb"
MI300 = "xplane/AMD-AGI__TraceLens__chi-mi300x-013.ord.vultr.cpe.ice.amd.com.xplane.pb"


def classes(report):
    return {row["class"]: row["total_ns"] for row in report.rows("breakdown")}


def test_the_input_wait_of_a_gpu_run_is_seen_to_the_nanosecond(public_traces):
    report = report_of(public_traces / T4)
    assert report.fact("breakdown", "step_ns") == 9_008_359
    assert classes(report)["input_wait"] == 572_529
    assert classes(report)["device_compute"] == 5_673_352
    assert report.fact("input_pipeline", "waiting_share") == pytest.approx(0.06355530457878065)
    assert report.verdict.code == "moderately-input-bound"
    assert report.fact("input_pipeline", "stage") == "handing the batch over"


def test_a_program_on_the_host_waits_as_tensorboard_says(public_traces):
    report = report_of(public_traces / MAC)
    assert report.fact("breakdown", "step_ns") == 78_792_000
    assert classes(report)["input_wait"] == 526_000
    assert report.verdict.code == "not-input-bound"
    assert "Only one step was captured." in report.verdict.sentence


def test_modules_that_a_tpu_repeats_are_its_steps(public_traces):
    report = report_of(public_traces / TPU)
    assert (report.fact("steps", "count"), report.fact("steps", "marker")) == (99, "jit_f")
    assert report.verdict.sentence.endswith("The steps were inferred from repeating compiled modules.")


def test_calls_that_jax_repeats_are_steps(public_traces):
    report = report_of(public_traces / MI300)
    assert (report.fact("steps", "count"), report.fact("steps", "marker")) == (9, "PjitFunction(forward_3d_conv)")
    assert classes(report)["device_compute"] == 3_586_493
