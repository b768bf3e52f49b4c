"""Unmodified programs of PaddlePaddle and MXNet, run by the Pythons that TRACEVIZ_PADDLE and TRACEVIZ_MXNET name."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.collectors.inject.runs import run_under
from tests.conftest import REPOSITORY
from traceviz import api

pytestmark = pytest.mark.live


@pytest.fixture
def phases(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """Function that runs a program of a framework and counts the phases from its hooks by kind and name."""

    def run(framework: str, how: str) -> Counter[tuple[str, str]]:
        python = request.getfixturevalue(f"{framework}_python")
        program = REPOSITORY / f"tests/collectors/{framework}_training.py"
        ran = run_under(tmp_path, ["stacks"], [python, "-W", "ignore", str(program), how])
        assert (ran.code, ran.stdout[-8:], ran.problems) == (0, "trained\n", []), ran.stderr
        assert "traceviz" not in ran.stderr
        files = tmp_path.glob("raw/stacks/*/stacks.jsonl")
        records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return Counter((record[1], record[2]) for record in records if record[0] == "phase")

    return run


@pytest.mark.parametrize(
    ("framework", "how", "source", "steps", "epochs"),
    [
        ("paddle", "plain", "paddle_optimizer", 29, 3),
        ("paddle", "workers", "paddle_optimizer", 29, 3),
        ("paddle", "fit", "paddle_fit", 30, 3),
        ("paddle", "static", "paddle_call", 34, 0),
        ("mxnet", "plain", "mxnet_optimizer", 29, 3),
        ("mxnet", "workers", "mxnet_optimizer", 29, 3),
        ("mxnet", "module", "mxnet_optimizer", 29, 3),
        ("mxnet", "infer", "mxnet_call", 40, 0),
    ],
)
def test_steps_and_epochs_are_counted(  # noqa: PLR0917 a table
    phases, framework: str, how: str, source: str, steps: int, epochs: int
) -> None:
    """Of the first step with an optimizer, only the end is seen; in a static graph, the program that repeats leads."""
    told = phases(framework, how)
    assert {name: count for (kind, name), count in told.items() if kind == "step"} == {source: steps}
    assert told["epoch", framework] == epochs


def test_the_trace_of_paddles_own_profiler_has_its_steps_and_operators(phases, tmp_path: Path) -> None:
    assert phases("paddle", "profiled")["epoch", "paddle"] == 3
    (file,) = tmp_path.glob("*.paddle_trace.json")
    trace = api.open_trace(file)
    assert trace.scan("steps").sort("start_ns").collect()["step"].to_list() == list(range(5, 15))
    names = Counter(trace.scan("host_ops").collect()["name"].cast(pl.String))
    assert (names["matmul"], names["phi::matmul_grad"], names["optimizer"]) == (20, 20, 10)
    assert trace.run_facts()["framework"] == "PaddlePaddle"
    assert "events-overlapping" not in trace.arrow("notes")["code"].to_pylist()


def test_the_trace_of_mxnets_own_profiler_has_its_operators(phases, tmp_path: Path) -> None:
    assert phases("mxnet", "profiled")["step", "mxnet_optimizer"] == 29
    trace = api.open_trace(tmp_path / "profile.json")
    assert trace.run_facts()["framework"] == "MXNet"
    names = Counter(trace.scan("host_ops").collect()["name"].cast(pl.String))
    assert names["adam_update"] == 30 * 4
