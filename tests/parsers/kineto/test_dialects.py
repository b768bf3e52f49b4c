"""Traces of the profilers of PaddlePaddle and MXNet, as those write them, become the same tables as PyTorch's."""

from __future__ import annotations

import polars as pl

from tests.parsers.kineto import files as k
from tests.parsers.kineto.dialects import GPU, STEP, mxnet_trace, paddle, paddle_trace
from tests.parsers.kineto.tables import notes, read_bytes, rows
from traceviz.parsers.base import HEAD_BYTES, Match
from traceviz.parsers.kineto.readers import KinetoReader


def test_a_trace_of_paddle_has_its_framework_steps_and_input(tmp_path):
    trace = read_bytes(tmp_path, paddle_trace(STEP))
    assert rows(trace, "run", "producer", "framework") == [("PaddlePaddle profiler", "PaddlePaddle")]
    assert rows(trace, "steps", "step", "start_ns", "dur_ns") == [(4, 0, 900_000), (5, 910_000, 50_000)]
    operations = trace.scan("host_ops").select(pl.col("name", "category").cast(pl.String)).collect().rows()
    assert dict(operations) == {
        "ProfilerStep#4": "step",
        "ProfilerStep#5": "step",
        "_DataLoaderIterSingleProcess": "input",
        "Sequential": "annotation",
        "conv2d": "op",
        "conv2d infer_meta": "runtime",
        "phi::conv2d": "op",
        "optimizer": "annotation",
    }
    assert rows(trace, "kernels", "name") == []


def test_python_and_cpp_of_a_thread_of_paddle_are_one_thread_and_nest_to_the_nanosecond(tmp_path):
    trace = read_bytes(tmp_path, paddle_trace(STEP))
    assert len(rows(trace, "threads", "thread_id")) == 1
    assert "events-overlapping" not in notes(trace)
    ends = {name: start + lasts for name, start, lasts in rows(trace, "host_ops", "name", "start_ns", "dur_ns")}
    assert (ends["conv2d"], ends["phi::conv2d"]) == (191_300, 191_200)


def test_times_of_paddle_nest_although_each_is_off_by_the_error_of_a_float(tmp_path):
    early = paddle("relu", 20.0, 1.0, "Operator")
    early["args"]["start_time"] = "19.970 us"
    outer = paddle("add dygraph", 300.999, 10.0, "Operator")
    inner = paddle("add infer_meta", 305.0, 5.9, "OperatorInner")
    trace = read_bytes(tmp_path, paddle_trace([*STEP, early, outer, inner]))
    assert "events-overlapping" not in notes(trace)
    starts = dict(rows(trace, "host_ops", "name", "start_ns"))
    assert starts["add infer_meta"] - starts["add"] == 4_001


def test_device_work_of_paddle_belongs_to_its_calls(tmp_path):
    trace = read_bytes(tmp_path, paddle_trace([*STEP, *GPU]))
    assert rows(trace, "kernels", "name", "stream", "correlation_id", "grid_x", "dur_ns") == [
        ("implicit_convolve_sgemm", 9, 31, 8, 40_500)
    ]
    assert rows(trace, "memcpy", "bytes", "kind", "device_id") == [(4096, "h2d", 0)]
    assert rows(trace, "cuda_api", "name", "correlation_id") == [("cudaLaunchKernel", 31)]


def test_operators_of_mxnet_are_those_of_one_program_on_two_threads(tmp_path):
    trace = read_bytes(tmp_path, mxnet_trace())
    assert rows(trace, "run", "producer", "framework") == [("MXNet profiler", "MXNet")]
    assert (len(rows(trace, "processes", "process_id")), len(rows(trace, "threads", "thread_id"))) == (1, 2)
    assert rows(trace, "host_ops", "name", "category", "dur_ns") == [
        ("FullyConnected", "op", 250_000),
        ("WaitForVar", "runtime", 10_000),
        ("Convolution", "op", 100_000),
    ]


def test_both_are_recognised_by_their_beginning(tmp_path):
    read_bytes(tmp_path, paddle_trace(STEP))
    file = tmp_path / "worker.pt.trace.json"
    assert KinetoReader().sniff(file.read_bytes()[:HEAD_BYTES], file) == Match.YES
    read_bytes(tmp_path, mxnet_trace())
    assert KinetoReader().sniff(file.read_bytes()[:HEAD_BYTES], file) >= Match.MAYBE


CALLS = [
    ("cuMemAlloc_v2", 0, 5),
    ("cuLaunchKernel", 10, 2),
    ("hipMemcpyAsync", 20, 3),
    ("cudaStreamSynchronize", 30, 9),
]


def test_functions_of_cuda_and_hip_are_calls_in_files_of_other_programs(tmp_path):
    events = [{"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": dur} for name, start, dur in CALLS]
    others = [
        {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": 50, "dur": 1} for name in ("custom", "cuddle", "curl")
    ]
    trace = read_bytes(tmp_path, k.bare([*events, *others]))
    calls = trace.arrow("cuda_api").to_pylist()
    assert [(row["name"], row["domain"]) for row in calls] == [
        ("cuMemAlloc_v2", "driver"),
        ("cuLaunchKernel", "driver"),
        ("hipMemcpyAsync", "runtime"),
        ("cudaStreamSynchronize", "runtime"),
    ]
    assert trace.rows("host_ops") == 3
    assert "kernels" not in trace
