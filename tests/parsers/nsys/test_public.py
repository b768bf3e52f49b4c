"""Real captures of nsys 2020.5 to 2026.2: our tables give the figures that NVIDIA's own scripts print."""

import functools
import os
from pathlib import Path

import pytest

from tests.parsers.nsys.stats import SUMMARIES, differences, expected_rows
from traceviz.analyses.run import analyze
from traceviz.core.nsys_program import find_nsys
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.registry import identify
from traceviz.trace.tables import TraceTables

TRACES = Path(os.environ.get("TRACEVIZ_TRACES", ""))
EXPECTED = TRACES / "expected" / "nsys"
CASES = sorted(EXPECTED.glob("*/*.csv")) if os.environ.get("TRACEVIZ_TRACES") else []
CASES = [case for case in CASES if case.stem in SUMMARIES]

pytestmark = pytest.mark.skipif(not CASES, reason="TRACEVIZ_TRACES names no folder of public traces")


@functools.cache
def tables_of(name: str) -> TraceTables:
    path = TRACES / "nsys" / name
    return TraceTables(dict(identify(path).read(path, ReadRequest())))


def needs_nsys(name: str) -> None:
    if not name.endswith(".sqlite") and find_nsys() is None:
        pytest.skip("nsys is not installed")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.stem}")
def test_every_row_equals_nsys_stats(case):
    needs_nsys(case.parent.name)
    assert len(expected_rows(case)) >= 1
    assert differences(tables_of(case.parent.name), case) == []


def test_two_gpu_capture_has_the_kernel_time_that_its_authors_state():
    kernels = tables_of("GindaChen__nsys-ai__mfu_2gpu_before.sqlite").kernels.collect()
    transfers = kernels.filter(kernels["name"].cast(str).str.contains("ncclDevKernel_SendRecv"))
    assert kernels["device_id"].n_unique() == 2
    assert round(kernels["dur_ns"].sum() / 1e6, 2) == 535.20
    assert (len(transfers), round(transfers["dur_ns"].sum() / 1e6, 3)) == (66, 25.402)


def test_graph_option_without_graph_launches_is_no_complaint():
    tables = tables_of("GindaChen__nsys-ai__mfu_2gpu_before.sqlite")
    assert "graph-kernels-hidden" not in tables.arrow("notes")["code"].to_pylist()


def test_tracing_of_cuda_makes_missing_tables_empty_and_not_absent():
    tables = tables_of("GindaChen__nsys-ai__mock.sqlite")
    assert "memset" in tables
    assert tables.rows("memset") == 0
    assert "os_calls" not in tables


def test_tracing_of_nvtx_without_ranges_makes_an_empty_table():
    tables = tables_of("hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite")
    assert tables.rows("nvtx") == 0
    assert "nvtx" in tables


def test_device_number_is_cudas_and_not_the_place_in_the_export():
    tables = tables_of("hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite")
    devices = {row["device_id"]: row for row in tables.arrow("devices").to_pylist()}
    used = tables.kernels.collect()["device_id"].unique().to_list()
    assert used == [0]
    assert devices[0]["uuid"] == "b17c6502-716a-c2c7-0f65-854136d5f79f"
    assert (devices[0]["sm_count"], devices[0]["max_threads_per_sm"], len(devices)) == (108, 2048, 4)


def test_capture_and_export_versions_are_told_apart():
    needs_nsys("x.qdrep")
    run = tables_of("openhackathons-org__gpubootcamp__jacobi_report.qdrep").run_facts()
    assert run["producer_version"].startswith("2020.5.1.85")
    assert run["driver_version"] == "460.32.03"
    assert run["cuda_version"] == "11.2"


def test_only_processes_with_events_are_named():
    tables = tables_of("hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite")
    assert [row["name"] for row in tables.arrow("processes").to_pylist()] == ["cuda-cloverleaf"]


def test_private_strings_are_left_out_unless_asked_for():
    path = TRACES / "nsys" / "hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite"
    private = TraceTables(dict(identify(path).read(path, ReadRequest(keep_private=True)))).run_facts()
    plain = tables_of(path.name).run_facts()
    assert (plain["host"], plain["command"]) == (None, None)
    assert private["host"] == "nid008553"
    assert private["command"] == "cuda-cloverleaf --in ../CloverLeaf-hip/InputDecks/clover_bm32_prof.in"


def test_profiler_complaints_reach_the_notes_without_paths():
    notes = tables_of("hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite").arrow("notes").to_pylist()
    complaints = [row for row in notes if row["code"] == "profiler-diagnostic"]
    assert len(complaints) == 4
    assert all(row["severity"] == "warning" for row in complaints)
    assert not any("/" in row["message"] for row in complaints)


def test_clock_does_not_depend_on_the_tables_asked_for():
    path = TRACES / "nsys" / "NVIDIA__Fuser__a049892__report1.sqlite"
    whole = tables_of(path.name)
    part = TraceTables(dict(identify(path).read(path, ReadRequest(tables=frozenset({"nvtx"})))))
    assert part.run_facts() == whole.run_facts()
    assert whole.run_facts()["span_ns"] == 10_479_704_228
    assert "kernels" not in part
    assert part.arrow("nvtx").equals(whole.arrow("nvtx"))


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("GindaChen__nsys-ai__mfu_2gpu_before.sqlite", "PyTorch"),
        ("GindaChen__nsys-ai__mock.sqlite", "PyTorch"),
        ("NVIDIA__Fuser__64ee035__report1.sqlite", "PyTorch 2.6.0a0+git45ed7c1"),
        ("NVIDIA__Fuser__a049892__report1.sqlite", "PyTorch"),
        ("hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite", None),
    ],
)
def test_the_framework_is_the_one_that_the_program_used(name, framework):
    assert tables_of(name).run_facts()["framework"] == framework


def test_a_cnn_of_channels_first_converts_the_layout_of_its_images_for_a_fifth_of_its_kernel_time():
    needs_nsys("openhackathons-org__AI-Profiler__baseline.nsys-rep")
    tables = tables_of("openhackathons-org__AI-Profiler__baseline.nsys-rep")
    kernels = tables.kernels.collect().to_pandas()
    converting = kernels["name"].astype(str).str.contains("nchwToNhwcKernel|nhwcToNchwKernel")
    assert round(kernels["dur_ns"][converting].sum() / kernels["dur_ns"].sum(), 3) == 0.183
    (found,) = [finding for finding in analyze(tables).findings if finding.code == "TV310"]
    facts = {fact.key: fact.value for fact in found.evidence}
    assert (facts["calls"], round(facts["layout_ns"] / facts["kernel_ns"], 3)) == (696, 0.184)
