"""The host's work while no device worked: causes that are a finding, and causes that are not."""

from typing import Any

import pytest

from tests.analyses.builders import trace
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.host_waits import HostCauses, HostWaitsAnalysis
from traceviz.report import Bars, Finding, Grid, Prose, Severity, Skipped

ANALYSIS = HostWaitsAnalysis()
GPU = [(0, 100, "gemm"), (900, 100, "gemm")]
"""Device work at both ends of 1,000 ns: 800 ns between, 8 of 10 parts."""


def result(view: TraceView) -> HostCauses:
    found = ANALYSIS.run(view)
    assert isinstance(found, HostCauses)
    return found


def findings(**tables: Any) -> dict[str, Finding]:
    return {finding.code: finding for finding in ANALYSIS.judge(result(trace(kernels=GPU, **tables)))}


def test_operators_and_python_are_one_cause_with_one_remedy() -> None:
    found = findings(host_ops=[(100, 500, "train.py(7): augment", "python"), (600, 300, "aten::linear", "op")])
    assert list(found) == ["TV205"]
    assert found["TV205"].message == (
        "In 80.0 % of the time from first to last device work no device works while the host prepares work (Python "
        "50.0 %, operators 30.0 %); most of all in augment (train.py) (50.0 %)."
    )
    assert found["TV205"].cost_ns == 800
    assert {fact.key: fact.value for fact in found["TV205"].evidence} == {
        "python_ns": 500,
        "operator_ns": 300,
        "cause": "augment (train.py)",
        "calls": 1,
    }


@pytest.mark.parametrize(
    ("launch", "first"), [(850, "Compute it on the device"), (150, "Compile the step"), (None, "Compile the step")]
)
def test_operators_that_launch_nothing_compute_on_the_host_and_are_not_compiled(launch: int | None, first: str) -> None:
    ops = [(100, 700, "aten::randn", "op"), (110, 600, "aten::normal_", "op")]
    calls = [(launch, 1, "cudaLaunchKernel")] if launch else []
    found = findings(host_ops=ops, cuda_api=calls)
    assert found["TV205"].advice[0].startswith(first)
    assert any(line.startswith("Compile the step") for line in found["TV205"].advice) == (launch != 850)


@pytest.mark.parametrize(
    ("code", "tables"),
    [
        ("TV207", {"cuda_api": [(100, 200, "cudaDeviceSynchronize")]}),
        ("TV207", {"host_ops": [(100, 200, "$api.py:3154 block_until_ready", "python")]}),
        ("TV209", {"os_calls": [(100, 200, "fsync")]}),
        ("TV209", {"host_ops": [(100, 200, "<built-in function sleep>", "python")]}),
        ("TV209", {"host_ops": [(100, 200, "threading.py(359): wait", "python")]}),
        ("TV210", {"cuda_api": [(100, 200, "cudaStreamCreateWithFlags")]}),
        ("TV210", {"cuda_api": [(100, 120, "cudaMalloc"), (300, 80, "cudaFree")]}),
        ("TV211", {"cuda_api": [(100, 200, "cuModuleLoadDataEx")]}),
        ("TV211", {"nvtx": [(100, 200, "executor_utils::Nvrtc::CompileProgram")]}),
    ],
)
def test_a_cause_is_a_finding_from_a_fifth_of_the_judged_time_on(code: str, tables: dict[str, Any]) -> None:
    found = findings(**tables)
    assert list(found) == [code]
    assert (found[code].cost_ns, found[code].share, found[code].severity) == (200, 0.2, Severity.ERROR)
    shorter = {name: [(row[0], row[1] - 1, *row[2:]) for row in rows] for name, rows in tables.items()}
    assert findings(**shorter) == {}


def test_what_nothing_explains_is_no_finding_and_is_said_with_what_to_record() -> None:
    view = trace(run={"format": "kineto", "framework": "PyTorch"}, kernels=GPU, host_ops=[(100, 80, "aten::mm", "op")])
    assert ANALYSIS.judge(result(view)) == ()
    said = [block.text for block in ANALYSIS.describe(result(view)).blocks if isinstance(block, Prose)]
    assert len(said) == 1
    assert said[0].startswith("72.0 % is unexplained: no recorded event covers it. To see more, record torch.profiler")


def test_a_program_without_a_device_is_described_and_not_blamed() -> None:
    steps = [(n * 100, 100, n) for n in range(6)]
    view = trace(steps=steps, host_ops=[(n * 100, 90, "aten::mm", "op") for n in range(6)])
    found = result(view)
    assert ANALYSIS.judge(found) == ()
    section = ANALYSIS.describe(found)
    assert section.title == "What the steps did"
    (bars,) = (block for block in section.blocks if isinstance(block, Bars))
    assert [(bar.key, bar.share) for bar in bars.bars] == [("operator", 0.9), ("unexplained", 0.1)]


def test_the_place_of_a_cause_is_that_of_its_largest_part() -> None:
    view = trace(
        kernels=GPU,
        nvtx=[(90, 310, "forward"), (400, 510, "all_to_all")],
        cuda_api=[(100, 200, "cudaStreamSynchronize"), (500, 300, "cudaStreamSynchronize")],
    )
    (grid,) = (block for block in ANALYSIS.describe(result(view)).blocks if isinstance(block, Grid))
    names = [column.name for column in grid.columns]
    first = dict(zip(names, grid.rows[0], strict=True))
    assert (first["cause"], first["where"], first["time_ns"]) == ("cudaStreamSynchronize", "all_to_all", 500)


def test_devices_that_always_work_leave_nothing_to_explain() -> None:
    skipped = ANALYSIS.run(trace(kernels=[(0, 1_000, "gemm")], host_ops=[(0, 1_000, "aten::mm", "op")]))
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "devices worked all the time"


@pytest.mark.parametrize(
    ("samples", "record"),
    [
        (5, "more steps (collect --steps FIRST:END): too few samples of stacks lie in these"),
        (10, "torch.profiler.record_function around"),
    ],
)
def test_where_stacks_were_sampled_frames_are_not_what_to_record(samples: int, record: str) -> None:
    stacks = sampled((10, 100, "train.py:9 main", {"samples": samples}))
    view = trace(kernels=[(0, 10, "gemm"), (210, 10, "gemm")], host_ops=[], run={"framework": "PyTorch"}, **stacks)
    assert result(view).record[0].startswith(record)


@pytest.mark.parametrize(
    ("tables", "advice"),
    [
        ({"cuda_api": [(100, 700, "cuMemHostRegister_v2")]}, "Register host memory once"),
        ({"cuda_api": [(100, 700, "cudaHostRegister")]}, "Register host memory once"),
        ({"cuda_api": [(100, 700, "cudaMalloc")]}, "Allocate and create once"),
        ({"os_calls": [(100, 700, "wait4")]}, "Child processes"),
        ({"os_calls": [(100, 700, "fsync")]}, "Files"),
        ({"nvtx": [(100, 700, "h2d_layer_3")]}, "Parameters on the host"),
        ({"nvtx": [(100, 700, "solve")]}, "Let the device work at the same time"),
        ({"host_ops": [(100, 700, "aten::add", "op")]}, "Compile the step"),
        (
            {"scheduling": [(0, 1_000)], "cuda_api": [(0, 5, "cudaLaunchKernel")]},
            "Let the device work at the same time",
        ),
    ],
)
def test_the_first_advice_fits_what_takes_the_time(tables: dict[str, Any], advice: str) -> None:
    (found,) = findings(**tables).values()
    assert found.advice[0].startswith(advice)


def test_a_larger_batch_is_no_advice_for_work_that_is_no_operator() -> None:
    (found,) = findings(nvtx=[(100, 700, "solve")]).values()
    assert not any("batch" in line for line in found.advice)


def test_ranges_within_a_transfer_of_parameters_are_part_of_it() -> None:
    ranges = [(100, 700, "fetch_weights"), (200, 500, "tensor 7")]
    assert result(trace(kernels=GPU, nvtx=ranges)).kinds == {"parameter_transfer": 700, "unexplained": 100}
    ranges = [(100, 700, "tensor 7"), (300, 100, "fetch_weights")]
    assert result(trace(kernels=GPU, nvtx=ranges)).kinds == {
        "range": 600,
        "parameter_transfer": 100,
        "unexplained": 100,
    }


def test_migrations_of_managed_memory_are_a_finding_with_their_number_and_page_faults() -> None:
    us = 1_000
    moved = [
        (100 * us + 50 * us * n, 10 * us, "d2h" if n % 4 else "h2d", "managed", "managed", 4096) for n in range(200)
    ]
    settings = [("nsys.page_faults.host", "150")]
    view = trace(kernels=[(0, 100 * us, "add")], memcpy=moved, settings=settings)
    (found,) = ANALYSIS.judge(result(view))
    assert found.code == "TV212"
    assert found.message.endswith(
        "There are 200 migrations of 819 kB, 75.0 % of them to the host. Page faults: 150 of the host."
    )
    assert not ANALYSIS.judge(result(trace(kernels=GPU, memcpy=[(200, 10, "d2h", "managed", "managed", 4096)])))
