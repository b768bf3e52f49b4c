"""Public traces of PyTorch's profiler give the numbers that other tools give of them."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.registry import identify
from traceviz.trace.tables import TraceTables

HTA = "facebookresearch__HolisticTraceAnalysis__"
LENS = "AMD-AGI__TraceLens__"

# name: kernels, their ns, distinct names, calls, copies, fills, host operations, steps, collectives
COUNTS: dict[str, tuple[int, ...]] = {
    f"{LENS}Falconsai_nsfw_image_detection__1016002": (154, 1_220_926, 14, 383, 0, 2, 3_376, 1, 0),
    f"{LENS}gaunernst_bert-small-uncased__1016001": (60, 307_197, 11, 132, 1, 0, 1_865, 1, 0),
    f"{LENS}moe_01_many_experts_few_tokens": (36, 231_454, 11, 79, 0, 0, 147, 0, 0),
    f"{HTA}benchmark_result_2869224_1695835535_trace": (79, 10_692_000, 16, 361, 16, 3, 367, 0, 0),
    f"{HTA}benchmark_simple_add_trace": (4, 16_000, 2, 15, 0, 0, 36, 0, 0),
    f"{HTA}d80adeb__event_sync_trace": (3, 369_000, 1, 39, 0, 3, 6, 0, 0),
    f"{HTA}event_sync_trace": (4, 49_000, 4, 12, 1, 0, 11, 1, 0),
    f"{HTA}mi250_minitoy_train_ROCm6_2_kineto": (14, 110_881, 12, 21, 2, 0, 73, 2, 0),
    f"{HTA}nccl_data": (2_700, 162_532_340, 70, 8_740, 960, 114, 14_388, 3, 21),
    f"{HTA}sampled_rank-0": (1_154, 606_519_000, 194, 1_204, 40, 10, 2_402, 2, 10),
    f"{HTA}sampled_rank-1": (1_104, 651_026_000, 183, 1_154, 40, 10, 2_367, 2, 10),
    f"{HTA}trace_diff_control": (8_568, 446_813_000, 170, 24_692, 228, 654, 40_794, 6, 60),
    f"{HTA}triton_example": (1, 1_760, 1, 2, 0, 0, 4, 1, 0),
    "pytorch__kineto__2d19c63__worker0.pt.trace": (9_538, 635_237_000, 63, 10_800, 12, 377, 42_438, 6, 0),
    "pytorch__kineto__worker0.1623143089861.pt.trace": (8_772, 591_532_000, 67, 11_923, 12, 312, 23_646, 6, 0),
}


def read(folder: Path, name: str, *tables: str) -> TraceTables:
    file = folder / "kineto" / f"{name}.json.gz"
    reader = identify(file)
    assert reader.format == "kineto"
    return TraceTables(dict(reader.read(file, ReadRequest(frozenset(tables) if tables else None))))


def column(trace: TraceTables, table: str, name: str) -> list[Any]:
    return trace.arrow(table)[name].to_pylist()


def notes(trace: TraceTables) -> dict[str, int | None]:
    return dict(zip(column(trace, "notes", "code"), column(trace, "notes", "count"), strict=True))


LARGE = {name for name, (kernels, *_) in COUNTS.items() if kernels > 2_000}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in COUNTS]
)
def test_every_event_of_a_public_trace_becomes_a_row(public_traces, name):
    trace = read(public_traces, name)
    rows = (
        trace.rows("kernels"),
        sum(column(trace, "kernels", "dur_ns")),
        len(set(column(trace, "kernels", "name"))),
        *(trace.rows(table) for table in ("cuda_api", "memcpy", "memset", "host_ops", "steps", "collectives")),
    )
    assert rows == COUNTS[name]


@pytest.mark.parametrize(
    "name", [f"{LENS}Falconsai_nsfw_image_detection__1016002", f"{LENS}gaunernst_bert-small-uncased__1016001"]
)
def test_kernels_their_times_and_their_ops_equal_tracelens(public_traces, name):
    expected = {}
    file = public_traces / "expected" / "kineto" / f"{name.replace(LENS, LENS + 'h100__')}__kernel_summary.csv"
    with file.open(encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            times = (round(float(row[f"Kernel duration (µs)_{of}"]) * 1000) for of in ("sum", "min", "max"))
            key = (row["Parent cpu_op"], row["Kernel name"], int(row["Kernel stream"]))
            expected[key] = (int(row["Kernel duration (µs)_count"]), *times)
    durations: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for kernel in read(public_traces, name, "kernels").arrow("kernels").to_pylist():
        durations[kernel["op"], kernel["name"], kernel["stream"]].append(kernel["dur_ns"])
    assert {key: (len(of), sum(of), min(of), max(of)) for key, of in durations.items()} == expected


def test_host_only_trace_has_no_device(public_traces):
    trace = read(public_traces, f"{HTA}rank_non_gpu")
    assert set(trace) == {"run", "devices", "processes", "threads", "host_ops", "op_args", "steps", "settings", "notes"}
    assert (trace.rows("host_ops"), trace.rows("devices")) == (2_467, 0)
    assert "no-device" in notes(trace)


def test_two_ranks_of_128_become_one_trace(public_traces, tmp_path):
    for rank in (0, 1):
        name = f"{HTA}sampled_rank-{rank}.json.gz"
        (tmp_path / name).symlink_to(public_traces / "kineto" / name)
    trace = TraceTables(dict(identify(tmp_path).read(tmp_path, ReadRequest())))
    assert column(trace, "processes", "rank") == [0, 1]
    settings = dict(zip(column(trace, "settings", "key"), column(trace, "settings", "value"), strict=True))
    assert settings["distributedInfo.world_size"] == "128"
    assert (trace.rows("kernels"), trace.rows("collectives"), trace.rows("steps")) == (2_258, 20, 4)


def test_collectives_of_nccl_data_have_the_sizes_that_hta_tests(public_traces):
    rows = read(public_traces, f"{HTA}nccl_data", "collectives").arrow("collectives").to_pylist()
    first = next(row for row in rows if row["name"] == "allreduce")
    assert (first["in_elements"], first["out_elements"], first["group"]) == (2_049_000, 2_049_000, "0")


def test_helper_threads_of_nccl_are_threads_of_their_own(public_traces):
    trace = read(public_traces, f"{HTA}nccl_data", "cuda_api")
    assert column(trace, "threads", "tid") == [-549_452_224, 2_910_249, 2_919_752]
    assert notes(trace)["threads-unresolved"] == 42


def test_step_marker_of_another_pid_belongs_to_the_program(public_traces):
    trace = read(public_traces, f"{HTA}triton_example", "steps")
    assert column(trace, "processes", "pid") == [1_670_242]
    assert column(trace, "steps", "process_id") == [0]


def test_rocm_trace_has_kinds_and_bytes_of_copies_and_shapes_of_launches(public_traces):
    trace = read(public_traces, f"{HTA}mi250_minitoy_train_ROCm6_2_kineto")
    assert column(trace, "memcpy", "kind") == ["h2d", "h2d"]
    assert column(trace, "memcpy", "bytes") == [2_560, 2_560]
    assert column(trace, "kernels", "grid_x").count(None) == 0
    assert set(column(trace, "devices", "compute_capability")) == {None}


def test_oldest_file_is_a_bare_list_whose_first_kernels_were_launched_before_it(public_traces):
    trace = read(public_traces, "pytorch__kineto__2d19c63__worker0.pt.trace")
    assert notes(trace) == {"launches-missing": 765}
    loads = [name for name in column(trace, "host_ops", "category") if name == "input"]
    assert len(loads) == 6
