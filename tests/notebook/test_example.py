"""The notebook of the examples, as it is in the repository, executed."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from tests.conftest import REPOSITORY
from tests.notebook.executed import outputs_of

pytestmark = pytest.mark.slow

EXAMPLE = REPOSITORY / "examples/notebook.ipynb"


def test_the_example_is_kept_without_outputs() -> None:
    cells = [cell for cell in nbformat.read(EXAMPLE, as_version=4).cells if cell.cell_type == "code"]
    assert len(cells) == 11
    assert [cell.outputs or cell.execution_count for cell in cells if cell.outputs or cell.execution_count] == []


def test_the_example_runs_and_finds_the_slow_loader(tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    folder.mkdir()
    (tmp_path / "sample_traces").symlink_to(REPOSITORY / "sample_traces")
    outputs = outputs_of(nbformat.read(EXAMPLE, as_version=4), folder)
    assert [output.errors for output in outputs] == [()] * 11, [output.traceback for output in outputs]
    shown = [output.shown[-1] for output in outputs if output.shown]
    assert sum("text/html" in bundle for bundle in shown) == 8
    manifests = [json.loads(path.read_text()) for path in folder.glob("traceviz-runs/*/manifest.json")]
    took = {manifest["tags"]["loader"]: manifest["duration_ns"] for manifest in manifests}
    assert took["slow"] > 30 * 20e6
    assert took["slow"] - took["quick"] > 30 * 10e6
    assert "Total time" in outputs[-1].plain or "faster" in outputs[-1].plain
