"""`--basis kineto` gives the figures and sentences of PyTorch's TensorBoard plugin, step by step, of every capture."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.analyses.options import AnalysisOptions

pytestmark = pytest.mark.oracle

SCRIPT = Path(__file__).with_name("tb_plugin_oracle.py")

PUBLIC = Path(os.environ.get("TRACEVIZ_TRACES", "")) / "kineto" if os.environ.get("TRACEVIZ_TRACES") else None
FOLDERS = [folder for folder in (REPOSITORY / "sample_traces" / "kineto", PUBLIC) if folder]
FILES = sorted(file for folder in FOLDERS for file in folder.glob("*.json*"))

CLASSES = ("kernel", "memcpy", "memset", "communication", "runtime", "data_loader", "cpu_exec", "other", "step")

FLOAT_US = 0.05
"""The plugin adds up microseconds in floats, each off by up to 0.12 ns, or by 125 ns if they count from 1970."""

TENSOR_CORES = "Tensor Cores eligible"
"""Of this sentence the plugin takes the kernels' operators from ids that are wrong in some recordings, and AMD's
devices for such with tensor cores: it is compared only in captures whose ids hold (:data:`LINKED`)."""
LINKED = ("worker0.1623143089861", "d80adeb__event_sync", "nccl_data", "Falconsai", "bert-small")


@pytest.fixture(scope="module")
def plugin(torch_python: str) -> str:
    """A Python that has the plugin."""
    imported = subprocess.run([torch_python, "-c", "import torch_tb_profiler"], capture_output=True, check=False)
    if imported.returncode:
        reason = f"{torch_python} has no torch-tb-profiler"
        if os.environ.get("TRACEVIZ_REQUIRE_TORCH"):
            pytest.fail(reason)
        pytest.skip(reason)
    return torch_python


@functools.cache  # two tests ask about each file
def answer(python: str, file: Path) -> dict[str, Any]:
    done = subprocess.run([python, SCRIPT, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the plugin failed on {file.name}: {done.stderr[-2000:]}"
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def title_rows(blocks: list[dict[str, Any]], title: str) -> list[dict[str, Any]]:
    return next((block["rows"] for block in blocks if block.get("title") == title), [])


def percentages(summary: list[dict[str, str]], title: str) -> list[float]:
    return [float(entry["value"].split()[0]) / 100 for entry in summary or [] if entry["title"] == title]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_steps_gpus_and_recommendations_are_the_plugin_s(file: Path, plugin: str) -> None:
    theirs = answer(plugin, file)
    report = api.report_on(file, sections=["breakdown"], options=AnalysisOptions(basis="kineto"))
    blocks = json.loads(api.to_text(report, "json"))["sections"][0]["blocks"]
    steps = title_rows(blocks, "Steps")
    assert [row["stepnum"] for row in steps] == [row["name"] for row in theirs["steps"]]
    for mine, step in zip(steps, theirs["steps"], strict=True):
        for name in CLASSES:
            assert mine[f"{name}_ns"] / 1000 == pytest.approx(step[name], abs=FLOAT_US), (mine["stepnum"], name)
    gpus = title_rows(blocks, "GPUs")
    for key, title in (("utilisation", "GPU Utilization"), ("sm_efficiency", "Est. SM Efficiency")):
        stated = percentages(theirs["gpus"], title)
        assert [row[key] for row in gpus if row[key] is not None] == pytest.approx(stated, abs=5.01e-5), title
    occupancies = percentages(theirs["gpus"], "Est. Achieved Occupancy")
    assert [row["occupancy"] for row in gpus if row["occupancy"] is not None] == pytest.approx(occupancies, abs=5.01e-5)
    plain = [re.sub("<[^>]*>", "", sentence) for sentence in theirs["recommendations"]]
    said = str(report.fact("breakdown", "recommendations"))
    for sentence in plain:
        assert sentence in said or (TENSOR_CORES in sentence and not any(name in file.name for name in LINKED))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_kernels_have_the_plugin_s_blocks_per_sm(file: Path, plugin: str) -> None:
    table = (answer(plugin, file)["kernels"] or {"data": {"columns": [], "rows": []}})["data"]
    names = [column["name"] for column in table["columns"]]
    theirs = {row[0]: dict(zip(names, row, strict=True)) for row in table["rows"]}
    if "Mean Blocks Per SM" not in names:
        return
    report = api.report_on(file, sections=["gpu_efficiency"])
    kernels = title_rows(json.loads(api.to_text(report, "json"))["sections"][0]["blocks"], "Kernels")
    assert kernels
    for mine in kernels:
        row = theirs[mine["name"]]
        assert (mine["calls"], round(mine["total_ns"] / 1000)) == (
            row["Calls"],
            pytest.approx(row["Total Duration (us)"], abs=1),
        )
        assert (mine["blocks_per_sm"] or 0.0) == pytest.approx(row["Mean Blocks Per SM"], abs=0.00501), mine["name"]
