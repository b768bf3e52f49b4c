"""Programs run under the real PyTorch profiler: captures as traceviz reads them, and PyTorch's own results."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import traceviz
from tests.conftest import REPOSITORY
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.memory import MemoryAnalysis
from traceviz.analyses.program.operators import OperatorsAnalysis

pytestmark = pytest.mark.live

EXAMPLES = REPOSITORY / "examples"
SCRIPT = Path(__file__).with_name("torch_oracle.py")
NO_DEVICE = "no-device"
INSIDE_FRAMES = "events-overlapping"
"""With Python frames: a range starts inside of the call that starts it, and ends inside of the call that ends it."""

Record = Callable[..., Path]
"""``record(program, option, ...)``: the folder that the program left."""
Asked = tuple[TraceView, dict[str, Any]]
"""A capture, and PyTorch's own results."""


def run(python: str, home: Path, *command: str) -> str:
    """Run a program that only its own options control."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}
    environment |= {"GLOO_SOCKET_IFNAME": "lo", "TMPDIR": str(home)}
    done = subprocess.run(
        [python, *command], env=environment, cwd=home, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def record(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Function that runs a program of examples/."""

    def run_example(program: str, *options: str) -> Path:
        home = tmp_path_factory.mktemp("live")
        run(torch_python, home, str(EXAMPLES / program), "--profile", "logs", *options)
        return home / "logs"

    return run_example


@pytest.fixture(scope="module")
def ranks(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks on this machine; the second has more to do."""
    home = tmp_path_factory.mktemp("ranks")
    launcher = ("-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2")
    run(torch_python, home, *launcher, str(EXAMPLES / "pytorch_ddp.py"), "--profile", "logs", "--straggler", "1")
    return home / "logs"


@pytest.fixture(scope="module")
def asked(torch_python: str, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """A training step, captured and described by PyTorch."""
    home = tmp_path_factory.mktemp("asked")
    answer = run(torch_python, home, str(SCRIPT), str(home / "step.pt.trace.json.gz"))
    return TraceView(traceviz.open(home / "step.pt.trace.json.gz")), json.loads(answer)


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_the_slow_loader_is_recorded_and_named_as_the_single_process_that_it_is(record: Record) -> None:
    report = traceviz.report_on(only_file(record("pytorch_input_pipeline.py", "--loader", "slow", "--steps", "9")))
    assert report.fact("steps", "count") == 9
    assert report.verdict.code == "highly-input-bound"
    assert {"TV101", "TV108"} <= {finding.code for finding in report.findings}


def test_the_repaired_loader_gives_no_finding_of_the_input(record: Record) -> None:
    report = traceviz.report_on(only_file(record("pytorch_input_pipeline.py", "--loader", "repaired", "--steps", "9")))
    assert report.fact("steps", "count") == 9
    assert {finding.code for finding in report.findings} & {"TV101", "TV102", "TV108", "TV109"} == set()


def test_stacks_memory_and_shapes_are_read_with_no_note_of_anything_lost(record: Record) -> None:
    options = ("--loader", "repaired", "--steps", "3", "--stacks", "--memory", "--shapes")
    trace = traceviz.open(only_file(record("pytorch_input_pipeline.py", *options)))
    assert set(trace.notes.collect()["code"]) <= {NO_DEVICE, INSIDE_FRAMES}
    categories = trace.host_ops.group_by("category").agg(pl.len()).collect()
    assert {"op", "python", "input", "step"} <= set(categories["category"].cast(pl.String))
    assert trace.steps.collect()["step"].sort().to_list() == [3, 4, 5]
    assert trace.memory_events.select(pl.len()).collect().item() > 100


def test_the_captures_of_two_ranks_make_one_report_with_the_steps_of_both(ranks: Path) -> None:
    report = traceviz.report_on(ranks)
    assert report.fact("steps", "count") == 16
    assert sorted(path.name.split(".")[0] for path in ranks.iterdir()) == ["rank0", "rank1"]


def test_every_operator_has_the_calls_and_times_of_key_averages(asked: Asked) -> None:
    trace, answer = asked
    result = OperatorsAnalysis().run(trace)
    operators = {row["name"]: row for row in result.by_name.iter_rows(named=True)}
    expected = {row["name"]: row for row in answer["operators"]}
    ranges = {name for name in expected if name.startswith("Optimizer.") or name == "[memory]"}
    assert set(operators) == set(expected) - ranges
    assert len(operators) > 50
    for name, row in operators.items():
        times = row["calls"], row["host_ns"] / 1000, row["host_self_ns"] / 1000
        said = expected[name]
        assert times == pytest.approx((said["calls"], said["total_us"], said["self_us"]), abs=0.001), name


def test_the_most_memory_in_use_is_what_pytorch_counted(asked: Asked) -> None:
    trace, answer = asked
    (pool,) = MemoryAnalysis().run(trace).pools
    assert pool.peak_bytes == answer["memory"]["peak"] > 100_000
    assert pool.allocations + pool.frees == answer["memory"]["events"]


def test_bytes_of_all_allocations_and_releases_add_up_to_what_pytorch_says(asked: Asked) -> None:
    trace, answer = asked
    events = trace.frame("memory_events", "kind", "bytes")
    signed = pl.when(pl.col("kind") == "free").then(-pl.col("bytes")).otherwise(pl.col("bytes"))
    assert events.select(signed.sum()).item() == answer["memory"]["balance"]


def test_a_compiled_model_shows_its_compilation(torch_python: str, tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("torch.compile needs a C++ compiler, and c++ is not on PATH")
    file = tmp_path / "compiled.pt.trace.json.gz"
    run(torch_python, tmp_path, str(SCRIPT), str(file), "--compile")
    ops = traceviz.open(file).host_ops.filter(pl.col("category") == "compile").collect()
    assert ops.height >= 1
    assert ops["dur_ns"].max() > 100_000_000
