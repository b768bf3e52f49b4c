"""Operators of public PyTorch traces against the results of TensorBoard's plugin and TraceLens."""

import csv
import json
from collections import Counter

import polars as pl
import pytest

from tests.support.reports import tables_of
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.precision import PrecisionAnalysis
from traceviz.analyses.program.modules import ModulesAnalysis
from traceviz.analyses.program.operators import OperatorsAnalysis
from traceviz.report import Skipped

pytestmark = pytest.mark.process

RESNET = "pytorch__kineto__worker0.1623143089861"
TRACELENS = ("Falconsai_nsfw_image_detection__1016002", "gaunernst_bert-small-uncased__1016001")


@pytest.fixture
def view(public_traces):
    def opened(name):
        return TraceView(tables_of(public_traces / "kineto" / name))

    return opened


@pytest.fixture
def resnet(view):
    return view(f"{RESNET}.pt.trace.json.gz")


@pytest.fixture
def plugin_rows(public_traces):
    lines = (public_traces / "expected" / "kineto" / f"{RESNET}__tb_plugin.txt").read_text().splitlines()
    return json.loads(lines[2])["data"]


def test_every_operator_has_the_figures_of_tensorboards_plugin_to_the_microsecond(resnet, plugin_rows):
    columns = ("name", "calls", "device_self_ns", "device_ns", "host_self_ns", "host_ns", "tensor_core_eligible")
    figures = {row[0]: row[1:] for row in OperatorsAnalysis().run(resnet).by_name.select(columns).iter_rows()}
    times = ("device_self_duration", "device_total_duration", "host_self_duration", "host_total_duration")
    expected = {
        row["name"]: (row["calls"], *(1000 * row[time] for time in times), row["tc_eligible"] == "Yes")
        for row in plugin_rows
    }
    assert len(expected) == 76
    assert figures == expected


def test_operators_are_in_the_order_of_tensorboards_plugin(resnet, plugin_rows):
    order = OperatorsAnalysis().run(resnet).by_name["device_self_ns"].to_list()
    assert order == [1000 * row["device_self_duration"] for row in plugin_rows]


def test_matrix_operators_launch_68_percent_of_the_kernel_time_and_use_no_tensor_cores(resnet):
    result = OperatorsAnalysis().run(resnet)
    assert round(100 * result.eligible_ns / result.kernel_ns) == 68
    assert (result.kernel_ns, result.tensor_core_ns) == (591_532_000, 0)
    assert [finding.code for finding in PrecisionAnalysis().judge(PrecisionAnalysis().run(resnet))] == ["TV405"]


def test_all_backward_work_of_the_convolutions_is_linked_to_their_forward_operator(resnet):
    operators = {row["name"]: row for row in OperatorsAnalysis().run(resnet).by_name.iter_rows(named=True)}
    assert operators["CudnnConvolutionBackward"]["device_ns"] == 273_428_000
    assert (
        operators["aten::conv2d"]["backward_ns"] == operators["aten::cudnn_convolution"]["backward_ns"] == 273_428_000
    )


@pytest.mark.parametrize("name", TRACELENS)
def test_kernel_time_by_operator_is_that_of_tracelens(view, public_traces, name):
    table = next((public_traces / "expected" / "kineto").glob(f"*{name}__kernel_summary.csv"))
    expected: Counter[str] = Counter()
    with table.open() as lines:
        for row in csv.DictReader(lines):
            expected[row["Parent cpu_op"]] += round(1000 * float(row["Kernel duration (µs)_sum"]))
    by_name = OperatorsAnalysis().run(view(f"AMD-AGI__TraceLens__{name}.json.gz")).by_name
    assert dict(by_name.filter(pl.col("kernel_ns") > 0).select("name", "kernel_ns").iter_rows()) == expected


def test_the_modules_of_a_vision_transformer_hold_all_its_device_time(view):
    result = ModulesAnalysis().run(view(f"AMD-AGI__TraceLens__{TRACELENS[0]}.json.gz"))
    modules = {row["path"].split(" / ")[-1]: row for row in result.alike.iter_rows(named=True) if row["level"] < 3}
    assert result.total("device_ns") == result.device_ns == 1_225_310
    assert (modules["ViTLayer"]["instances"], modules["ViTLayer"]["calls"]) == (12, 12)
    assert result.exact.height == 214


def test_no_device_work_of_any_trace_belongs_to_two_modules(public_traces):
    shares = {}
    for path in sorted((public_traces / "kineto").glob("*.json.gz")):
        result = ModulesAnalysis().run(TraceView(tables_of(path)))
        if not isinstance(result, Skipped) and result.device_ns:
            shares[path.name] = (result.total("device_ns") + result.total("backward_ns")) / result.device_ns
    assert len(shares) >= 8
    assert all(share <= 1 for share in shares.values())


def test_forward_and_backward_of_a_distributed_step_are_told_apart(view):
    result = ModulesAnalysis().run(view("facebookresearch__HolisticTraceAnalysis__nccl_data.json.gz"))
    times = {row["path"]: (row["device_ns"], row["backward_ns"]) for row in result.exact.iter_rows(named=True)}
    forward, backward = times["## forward ##"]
    assert result.source == "ranges"
    assert (round(forward / 1e6, 1), round(backward / 1e6, 1)) == (38.8, 74.7)
