"""The CUDA API share is the same table from every source: Nsight Systems, XPlane, Kineto, nvprof."""

import re
from functools import cache
from pathlib import Path

import pytest

from traceviz import api

PUBLIC = {
    "nsys": "nsys/GindaChen__nsys-ai__mfu_2gpu_before.sqlite",
    "xplane": "xplane/tensorflow__profiler__34.83.195.179_6003.xplane.pb",
    "kineto": "kineto/pytorch__kineto__worker0.1623143089861.pt.trace.json.gz",
    "kineto_rocm": "kineto/facebookresearch__HolisticTraceAnalysis__mi250_minitoy_train_ROCm6_2_kineto.json.gz",
    "nvprof": "nvprof/josiahdavis__profiling-lm__net.sql",
    "nvprof_nvvp": "nvprof/syed-ahmed__TensorFlow-Tutorial__out.nvvp",
}
SHIPPED = {
    "nsys": "synthetic/healthy.sqlite",
    "xplane": "synthetic/gpu_keras_input_bound.xplane.pb",
    "kineto": "synthetic/torch_healthy.pt.trace.json.gz",
}
COLUMNS = [
    *("name", "domain", "calls", "total_ns", "share_of_api", "share_of_wall", "startup_ns", "steady_ns", "exposed_ns"),
    *("mean_ns", "median_ns", "min_ns", "max_ns", "stddev_ns"),
]
CALLS = {
    "kineto": {"cudaLaunchKernel": 8772, "cudaMemcpyAsync": 12, "cudaStreamSynchronize": 12},
    "kineto_rocm": {"hipLaunchKernel": 12, "hipMemcpyWithStream": 2, "hipExtModuleLaunchKernel": 2},
    "nvprof": {"cudaLaunchKernel": 160, "cudaMalloc": 2, "cudaMemcpyAsync": 21},
    "nvprof_nvvp": {"cudaStreamCreateWithFlags": 8, "cudaLaunch": 25, "cudaMemcpyAsync": 26},
}


@cache
def share_of(path: Path):
    return api.report_on(path, sections=["cuda_api"])


def check_table(report):
    rows = report.rows("cuda_api")
    assert [list(row) for row in rows] == [COLUMNS] * len(rows)
    assert len(rows) >= 3
    assert sum(row["share_of_api"] for row in rows) == pytest.approx(1.0)
    assert sum(row["total_ns"] for row in rows) == report.fact("cuda_api", "api_total_ns")
    assert {row["domain"] for row in rows} <= {"runtime", "driver"}
    assert not [row["name"] for row in rows if re.search(r"_v\d{4,}$", row["name"])]
    assert all(row["min_ns"] <= row["median_ns"] <= row["max_ns"] for row in rows)


@pytest.mark.parametrize("source", SHIPPED)
def test_shipped_samples_of_every_source_give_the_14_columns(samples, source):
    check_table(share_of(samples / SHIPPED[source]))


@pytest.mark.parametrize("source", PUBLIC)
def test_public_traces_of_every_source_give_the_14_columns(public_traces, source):
    check_table(share_of(public_traces / PUBLIC[source]))


@pytest.mark.parametrize("source", CALLS)
def test_functions_are_counted_by_their_names(public_traces, source):
    counted = {row["name"]: row["calls"] for row in share_of(public_traces / PUBLIC[source]).rows("cuda_api")}
    assert {name: counted.get(name) for name in CALLS[source]} == CALLS[source]
