"""Reports on real public traces agree with NVIDIA's own nsys stats, and judge them as a person would."""

import csv
import json

import pytest

from traceviz import api
from traceviz.trace.names.cuda_names import api_kind

DATA = [
    "GindaChen__nsys-ai__mfu_2gpu_before.sqlite",
    "GindaChen__nsys-ai__mock.sqlite",
    "NVIDIA__Fuser__64ee035__report1.sqlite",
    "NVIDIA__Fuser__a049892__report1.sqlite",
    "hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite",
    "openhackathons-org__AI-Profiler__baseline.nsys-rep",
    "openhackathons-org__AI-Profiler__baseline_nvtx.nsys-rep",
    "openhackathons-org__gpubootcamp__jacobi_memcpy_nvlink_report.qdrep",
    "openhackathons-org__gpubootcamp__jacobi_report.qdrep",
]

WITHOUT_RANGES = [DATA[1], DATA[4], DATA[5]]
WITH_OS_CALLS = DATA[4:7]


@pytest.fixture(scope="module")
def report_on(public_traces):
    """Reports by file name, each made once."""
    made = {}

    def make(name):
        if name not in made:
            made[name] = api.report_on(public_traces / "nsys" / name)
        return made[name]

    return make


def expected(public_traces, name, table):
    path = public_traces / "expected" / "nsys" / name / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def grids(report, slug):
    section = json.loads(api.to_text(report, "json"))["sections"]
    return [b for s in section if s["slug"] == slug for b in s["blocks"] if b["type"] == "grid"]


@pytest.mark.parametrize("name", DATA)
def test_the_api_section_equals_nsys_stats(report_on, public_traces, name):
    theirs = {}
    for row in expected(public_traces, name, "cuda_api_sum"):
        stem, _, version = row["Name"].rpartition("_v")
        theirs[stem if stem and version.isdigit() and len(version) >= 4 else row["Name"]] = row
    ours = {row["name"]: row for row in report_on(name).rows("cuda_api")}
    assert set(ours) == set(theirs)
    for key, row in theirs.items():
        mine = ours[key]
        assert mine["calls"] == int(row["Num Calls"])
        assert mine["total_ns"] == int(row["Total Time (ns)"])
        assert (mine["min_ns"], mine["max_ns"]) == (int(row["Min (ns)"]), int(row["Max (ns)"]))
        assert mine["median_ns"] == float(row["Med (ns)"])
        assert mine["mean_ns"] == pytest.approx(float(row["Avg (ns)"]), abs=0.051)  # nsys rounds halves up
        assert mine["stddev_ns"] == pytest.approx(float(row["StdDev (ns)"]), abs=0.051)
        assert f"{100 * mine['share_of_api']:.1f}" == row["Time (%)"]


@pytest.mark.parametrize("name", DATA)
def test_kernels_by_launch_shape_equal_nsys_stats(report_on, public_traces, name):
    theirs = sorted(
        (row["Name"], int(row["Instances"]), int(row["Total Time (ns)"]), float(row["Med (ns)"]))
        for row in expected(public_traces, name, "cuda_gpu_kern_sum")
    )
    by_shape = grids(report_on(name), "kernels")[1]["rows"]
    assert sorted((r["name"], r["calls"], r["total_ns"], r["median_ns"]) for r in by_shape) == theirs


@pytest.mark.parametrize("name", [name for name in DATA if name not in WITHOUT_RANGES])
def test_ranges_equal_nsys_stats(report_on, public_traces, name):
    rows = expected(public_traces, name, "nvtx_sum")
    assert rows
    ours = sorted((r["name"], r["calls"], r["total_ns"], r["median_ns"]) for r in report_on(name).rows("ranges"))
    theirs = [(r["Range"], int(r["Instances"]), int(r["Total Time (ns)"]), float(r["Med (ns)"])) for r in rows]
    assert [
        row for row in theirs if (row[0].partition(":")[2] or row[0], *row[1:]) not in ours and row not in ours
    ] == []


@pytest.mark.parametrize("name", WITH_OS_CALLS)
def test_os_calls_equal_nsys_stats(report_on, public_traces, name):
    rows = expected(public_traces, name, "osrt_sum")
    assert rows
    ours = {
        r["name"]: (r["calls"], r["total_ns"], r["median_ns"], r["max_ns"]) for r in report_on(name).rows("os_calls")
    }
    assert ours == {
        r["Name"]: (int(r["Num Calls"]), int(r["Total Time (ns)"]), float(r["Med (ns)"]), int(r["Max (ns)"]))
        for r in rows
    }


@pytest.mark.parametrize("name", DATA)
def test_classes_add_up_and_busy_and_idle_make_the_span(report_on, name):
    report = report_on(name)
    if "breakdown" in {section.slug for section in report.sections}:
        assert sum(row["total_ns"] for row in report.rows("breakdown")) == report.fact("breakdown", "step_ns")
    span = report.fact("device_use", "span_ns")
    facts = {fact.key: fact.value for fact in report.facts("capture")}
    seen = facts.get("judged_until_ns", span) - facts.get("judged_from_ns", 0)  # unknown before and after
    known = [row["busy_ns"] + row["idle_ns"] for row in report.rows("device_use")]
    assert all(time == span for time in known) if seen >= span else all(seen <= time <= span for time in known)


def test_two_gpus_of_a_torchrun_job(report_on):
    report = report_on("GindaChen__nsys-ai__mfu_2gpu_before.sqlite")
    assert report.fact("kernels", "total_ns") == 535_200_650
    assert len(report.rows("device_use")) == 2
    (nccl,) = report.rows("communication")
    assert (nccl["name"].startswith("ncclDevKernel_SendRecv"), nccl["calls"]) == (True, 66)
    assert nccl["total_ns"] == 25_401_752


def test_a_training_run_with_ranges_is_highly_input_bound_by_its_data_loading(report_on):
    report = report_on("openhackathons-org__AI-Profiler__baseline_nvtx.nsys-rep")
    assert report.verdict.code == "highly-input-bound"
    assert report.fact("input_pipeline", "verdict") == "highly input-bound"
    assert report.fact("input_pipeline", "stage") == "Data loading"
    ranges = {row["name"]: row for row in report.rows("ranges")}
    assert (ranges["Data loading"]["calls"], ranges["Data loading"]["total_ns"]) == (60, 11_300_391_719)
    assert ranges["Train"]["total_ns"] == 11_799_147_227
    assert round(report.fact("kernels", "total_ns") / 1e6, 2) == 379.93
    (stage,) = [row for row in report.rows("input_pipeline") if row["stage"] == "Data loading"]
    assert (stage["capture_calls"], stage["capture_ns"]) == (60, 11_300_391_719)
    assert report.findings[0].code == "TV101"


def test_the_same_program_without_ranges_is_only_possibly_input_bound(report_on):
    report = report_on("openhackathons-org__AI-Profiler__baseline.nsys-rep")
    assert report.verdict.code == "possibly-input-bound"
    stages = [row["stage"] for row in report.rows("input_pipeline")]
    assert stages[:2] == ["host blocked in poll", "unrecorded host time"]
    assert report.findings[0].code == "TV102"


def test_one_kernel_launched_over_and_over_is_no_training_step(report_on):
    report = report_on("openhackathons-org__gpubootcamp__jacobi_report.qdrep")
    assert report.fact("input_pipeline", "verdict") == "cannot judge"


def test_most_api_time_is_in_functions_whose_purpose_is_known(report_on):
    for name in DATA:
        rows = report_on(name).rows("cuda_api")
        known = sum(row["total_ns"] for row in rows if api_kind(row["name"]) != "other")
        assert known > 0.9 * sum(row["total_ns"] for row in rows)


def test_report_database_and_folder_agree_to_the_nanosecond(public_traces, tmp_path):
    from traceviz.core.nsys_program import find_nsys

    if find_nsys() is None:
        pytest.skip("nsys is not installed")
    report = public_traces / "nsys" / "openhackathons-org__AI-Profiler__baseline.nsys-rep"
    api.convert(report, tmp_path / "folder")
    whole, folder = api.report_on(report), api.report_on(tmp_path / "folder")
    assert folder.sections == whole.sections
    assert folder.findings == whole.findings
    assert folder.verdict == whole.verdict
