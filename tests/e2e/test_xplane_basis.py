"""`traceviz report --basis` on real captures gives what TensorBoard and xprof printed for them."""

import json

import pytest

COLUMNS = {
    "device_compute_ns": ("deviceComputeTimeMs", "device_compute_ms"),
    "device_to_device_ns": ("deviceToDeviceTimeMs", "device_to_device_ms"),
    "device_collectives_ns": ("deviceCollectivesTimeMs", "device_collectives_ms"),
    "host_compute_ns": ("hostComputeTimeMs", "host_compute_ms"),
    "kernel_launch_ns": ("kernelLaunchTimeMs", "host_prepare_ms"),
    "infeed_ns": ("infeedTimeMs", "host_wait_input_ms"),
    "outfeed_ns": ("outfeedTimeMs", "output_ms"),
    "compile_ns": ("compileTimeMs", "host_compile_ms"),
    "other_ns": ("otherTimeMs", "unknown_time_ms"),
    "step_ns": ("stepTimeMs", "step_time_ms"),
}
"""Our column, that of xprof's page, and that of TensorBoard's file."""

T4 = "ecbme4040__e4040-2022fall-assign2-yg2820__2022_11_04_21_26_12__instance-ecbm.xplane.pb"
MACOS = "ecbme4040__e4040-2022fall-assign2-yg2820__2022_10_31_19_09_08__gaoyihaodeMacBook-Pro.local.xplane.pb"
EIGHT_GPUS = "tensorflow__profiler__34.83.195.179_6003.xplane.pb"
MI300X = "AMD-AGI__TraceLens__chi-mi300x-013.ord.vultr.cpe.ice.amd.com.xplane.pb"


@pytest.fixture
def report(public_traces, report_of):
    return lambda name, basis: report_of(public_traces / "xplane" / name, "--basis", basis, "--section", "breakdown")


@pytest.fixture
def expected(public_traces):
    def load(name, program):
        return json.loads((public_traces / "expected" / "xplane" / f"{name}.json").read_text())[program]

    return load


def facts(document):
    return {fact["key"]: fact["value"] for fact in document["sections"][0]["blocks"][0]["facts"]}


def per_step(document):
    return next(block for block in document["sections"][0]["blocks"] if block.get("title") == "Steps")["rows"]


@pytest.mark.parametrize("name", [T4, MACOS, EIGHT_GPUS])
def test_xprof_s_classes_of_every_step(name, report, expected):
    document, theirs = report(name, "xprof"), expected(name, "xprof_2_24_2")
    rows = [dict(zip(theirs["columns"], row, strict=True)) for row in theirs["steps"]]
    assert [row["stepnum"] for row in per_step(document)] == [row["stepnum"] for row in rows]
    for mine, row in zip(per_step(document), rows, strict=True):
        for key, (column, _) in COLUMNS.items():
            assert mine[key] / 1e6 == pytest.approx(row[column], abs=1e-3), column
    assert facts(document)["conclusion"] == theirs["conclusion"]


@pytest.mark.parametrize(("name", "input_share"), [(T4, 0.06355530457878065), (MACOS, 0.006675804650218297)])
def test_tensorboard_s_classes_of_every_step(name, input_share, report, expected):
    document, theirs = report(name, "tensorboard"), expected(name, "tensorboard_2022")["steps"]
    assert len(per_step(document)) == len(theirs) == 1
    for key, (_, column) in COLUMNS.items():
        assert per_step(document)[0][key] / 1e6 == pytest.approx(theirs[0].get(column, 0.0), abs=1e-3), column
    assert facts(document)["input_share"] == pytest.approx(input_share, abs=1e-6)


def test_the_classic_rules_see_the_input_wait_of_eight_gpus(report):
    (step,) = per_step(report(EIGHT_GPUS, "tensorboard"))
    milliseconds = {key: step[key] / 1e6 for key in ("step_ns", "infeed_ns", "kernel_launch_ns", "other_ns")}
    assert milliseconds == pytest.approx(  # what the converter of TensorFlow 2.12 makes of this file
        {"step_ns": 21.310352, "infeed_ns": 2.38981, "kernel_launch_ns": 3.565773, "other_ns": 0.47923}, abs=1e-3
    )


def test_a_capture_without_steps_is_skipped_with_a_reason(report):
    (skipped,) = report(MI300X, "xprof")["skipped"]
    assert skipped["slug"] == "breakdown"
    assert "use --basis traceviz" in skipped["reason"]


def test_our_classes_see_the_wait_that_xprof_does_not(report):
    ours = {row["class"]: row["total_ns"] for row in report(T4, "traceviz")["sections"][0]["blocks"][2]["rows"]}
    theirs = {row["class"]: row["total_ns"] for row in report(T4, "xprof")["sections"][0]["blocks"][3]["rows"]}
    assert ours["input_wait"] == pytest.approx(572_529, abs=1_000)
    assert theirs["infeed"] == 0


@pytest.mark.parametrize(("basis", "count", "input_share"), [("xprof", 10, 0.0), ("tensorboard", 12, 0.0)])
def test_both_miss_the_wait_of_a_gpu_that_ours_sees(basis, count, input_share, samples, report_of):
    file = samples / "synthetic" / "gpu_keras_input_bound.xplane.pb"
    document = report_of(file, "--basis", basis, "--section", "breakdown", "--section", "input_pipeline")
    assert facts(document)["basis"] == basis
    assert (facts(document)["steps"], facts(document)["input_share"]) == (count, input_share)
    assert document["verdict"]["code"] == "highly-input-bound"


def test_an_unknown_basis_is_refused_before_the_trace_is_read(tmp_path, traceviz):
    done = traceviz("report", tmp_path / "missing.pb", "--basis", "vtune", code=2)
    assert "There is no basis 'vtune'.\n  Known: kineto, tensorboard, traceviz, xprof." in done.stderr
