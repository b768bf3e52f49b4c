"""Public nvprof files: results of other tools, and facts seen in the files."""

import csv

import pytest

from tests.support.traces import read
from traceviz import api
from traceviz.core.errors import DamagedTraceError

PYTORCH = "josiahdavis__profiling-lm__net.sql"
TENSORFLOW = "syed-ahmed__TensorFlow-Tutorial__out.nvvp"
GPU_TRACE = "jakemdaly__PyTorch-GPU-Profiling__trace_l1_20200329_1.csv"
SUMMARY = "nanzifan__nvprof-result__print-gpu-summary.csv"
SESSION = "xstupi00__N-Body-OpenACC__profile.nvvp"


@pytest.fixture(scope="module")
def traces(public_traces):
    return public_traces / "nvprof"


def calls(path):
    """Return calls by function, from the section that a report shows."""
    section = api.report_on(path, sections=("cuda_api",)).section("cuda_api")
    grid = next(block for block in section.blocks if hasattr(block, "rows"))
    names = [column.name for column in grid.columns]
    return {row[names.index("name")]: row[names.index("calls")] for row in grid.rows}


def test_kernels_of_the_pytorch_run_equal_those_of_pyprof_one_by_one(public_traces, traces):
    with (public_traces / "expected/nvprof/josiahdavis__profiling-lm__lm.csv").open(encoding="utf-8") as file:
        expected = list(csv.DictReader(file))
    kernels = read(traces / PYTORCH).kernels.collect()
    assert (kernels.height, kernels["dur_ns"].sum()) == (160, 7_296_770)
    for row, of_pyprof in zip(kernels.to_dicts(), expected, strict=True):
        assert of_pyprof["Kernel"] in row["name"]
        assert row["dur_ns"] == int(of_pyprof["Sil(ns)"])
        assert of_pyprof["Grid"] == "{grid_x},{grid_y},{grid_z}".format_map(row)
        assert of_pyprof["Block"] == "{block_x},{block_y},{block_z}".format_map(row)
        assert (row["stream"], row["device_id"]) == (int(of_pyprof["Stream"]), int(of_pyprof["Device"]))


def test_calls_of_the_pytorch_run_have_their_names(traces):
    counts = calls(traces / PYTORCH)
    assert (counts["cudaLaunchKernel"], counts["cudaMalloc"], counts["cudaMemcpyAsync"]) == (160, 2, 21)
    assert sum(counts.values()) == 1968


def test_the_pytorch_run_is_known_as_one_with_its_ranges_and_its_device(traces):
    tables = read(traces / PYTORCH)
    assert (tables.run_facts()["framework"], tables.run_facts()["source_schema"]) == ("PyTorch", "12")
    assert tables.run_facts()["t0_unix_ns"] == 1_583_978_808_645_121_207
    assert (tables.rows("nvtx"), tables.rows("sync"), tables.rows("memcpy"), tables.rows("memset")) == (683, 23, 21, 8)
    assert tables.nvtx.select("depth").max().collect().item() == 7
    assert tables.devices.select("name", "sm_count").collect().row(0) == ("Tesla V100-SXM2-16GB", 80)
    assert sorted(tables.threads.select("tid").collect()["tid"]) == [452_974_336, 461_367_040, 3_940_300_608]
    assert tables.rows("notes") == 0


def test_calls_of_the_tensorflow_run_are_those_of_both_libraries(traces):
    counts = calls(traces / TENSORFLOW)
    assert (counts["cudaStreamCreateWithFlags"], counts["cudaLaunch"], counts["cudaMemcpyAsync"]) == (8, 25, 26)
    assert sum(counts.values()) == 286 + 383


def test_the_tensorflow_run_has_its_kernels_and_copies(traces):
    tables = read(traces / TENSORFLOW)
    kernels = tables.kernels.select("dur_ns").collect()["dur_ns"]
    assert (len(kernels), kernels.sum(), tables.rows("memcpy")) == (25, 1_230_629, 48)
    assert (tables.run_facts()["framework"], tables.run_facts()["source_schema"]) == ("TensorFlow", "8")


def test_every_kernel_of_a_database_finds_its_launch_call(traces):
    for name in (PYTORCH, TENSORFLOW):
        tables = read(traces / name)
        called = set(tables.cuda_api.select("correlation_id").collect()["correlation_id"])
        assert set(tables.kernels.select("correlation_id").collect()["correlation_id"]) <= called


def test_the_printed_gpu_trace_is_read_row_by_row(traces):
    path = traces / GPU_TRACE
    tables = read(path)
    printed = sum(line[:1].isdigit() for line in path.read_text(encoding="utf-8").splitlines())
    assert sum(tables.rows(name) for name in ("kernels", "memcpy", "memset")) == printed == 46
    assert tables.kernels.select("dur_ns").sum().collect().item() == 149_122_472
    assert tables.devices.select("name", "ordinal").collect().row(0) == ("NVIDIA Tegra X1", 0)
    assert "cuda_api" not in tables


def test_the_printed_summary_is_shown_as_what_it_is(traces):
    tables = read(traces / SUMMARY)
    assert tables.totals.select("calls", "total_ns", "max_ns").collect().row(0) == (6000, 268_352_834, 1_791_976)
    assert tables.rows("totals") == 10
    report = api.report_on(traces / SUMMARY)
    assert report.fact("totals", "device_total_ns") == 390_393_560
    assert "summary without events" in report.verdict.sentence


def test_the_session_of_the_visual_profiler_is_no_recording(traces):
    with pytest.raises(DamagedTraceError, match="holds no recording") as raised:
        read(traces / SESSION)
    assert "nbody" not in str(raised.value)
