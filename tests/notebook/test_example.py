"""The notebook of the examples, as it is in the repository, executed."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.conftest import REPOSITORY
from tests.notebook.executed import outputs_of

pytestmark = pytest.mark.process

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
    times = re.search(
        r"([\d.]+)(?: ms| s)? → ([\d.]+) (?:ms|s)", outputs[-1].plain
    )  # also where others used the machine
    assert times is not None, outputs[-1].plain
    assert float(times[1]) > 1.2 * float(times[2])
