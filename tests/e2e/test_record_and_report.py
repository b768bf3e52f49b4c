"""A real program, recorded by the real nsys, reported on by the installed command."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_nsys import recorded

from .conftest import Run

STEPS = 12
DELAY_S = 0.1
"""The reader's pause per batch: many times what a step computes, so that the loop waits on a busy machine, too."""
RANGES = ("data loading", "forward", "backward", "optimizer")


@pytest.fixture(scope="module")
def loop(nsys: str, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of nsys: a .nsys-rep, or a .qdstrm if nsys does not find the package's importer."""
    pytest.importorskip("nvtx", reason="the example needs nvtx (dependency group dev)")
    folder = tmp_path_factory.mktemp("recorded")
    example = repository / "examples" / "nvtx_training_loop.py"
    program = [sys.executable, str(example), "--steps", str(STEPS), "--delay", str(DELAY_S)]
    report, said = recorded(program, folder, "--trace=nvtx,osrt")
    assert report is not None, said
    return report


@pytest.fixture(scope="module")
def report(loop: Path, installed: Run) -> dict[str, Any]:
    return dict(json.loads(installed("report", loop, "--format", "json").stdout))


def section(report: dict[str, Any], slug: str) -> dict[str, Any]:
    return next(section for section in report["sections"] if section["slug"] == slug)


def facts(report: dict[str, Any], slug: str) -> dict[str, Any]:
    blocks = section(report, slug)["blocks"]
    return {fact["key"]: fact["value"] for block in blocks for fact in block.get("facts", ())}


def rows(report: dict[str, Any], slug: str) -> list[dict[str, Any]]:
    return next(block["rows"] for block in section(report, slug)["blocks"] if "rows" in block)


def test_the_report_counts_every_range_that_the_program_opened(report: dict[str, Any]) -> None:
    calls = {row["name"]: row["calls"] for row in rows(report, "ranges")}
    assert {name: calls[name] for name in RANGES} == dict.fromkeys(RANGES, STEPS)


def test_the_steps_are_those_that_the_program_annotated(report: dict[str, Any]) -> None:
    assert facts(report, "steps")["count"] == STEPS


def test_operating_system_calls_are_those_that_nsys_counts(
    report: dict[str, Any], loop: Path, nsys: str, tmp_path: Path
) -> None:
    if loop.suffix != ".nsys-rep":
        pytest.skip("nsys stats reads no .qdstrm")
    version = subprocess.run([nsys, "--version"], capture_output=True, text=True, check=True).stdout
    name = "osrtsum" if "2022" in version else "osrt_sum"
    command = [nsys, "stats", "--format", "csv", "--report", name, shutil.copy(loop, tmp_path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("Time (%)"))
    theirs = {
        row["Name"]: (int(row["Num Calls"]), int(row["Total Time (ns)"]))
        for row in csv.DictReader(line for line in lines[header:] if line)
    }
    ours = {row["name"]: (row["calls"], row["total_ns"]) for row in rows(report, "os_calls")}
    assert ours == theirs
    assert ours["clock_nanosleep"][0] == STEPS  # one pause of the reader thread per batch


def test_the_loop_is_named_input_bound(report: dict[str, Any]) -> None:
    figures = facts(report, "input_pipeline")
    assert figures["verdict"] == "highly input-bound"
    assert 0.5 < figures["input_share"] <= 1.0


def test_what_the_capture_could_not_hold_is_skipped_and_not_zero(report: dict[str, Any]) -> None:
    assert {"cuda_api", "kernels", "copies"} <= {skipped["slug"] for skipped in report["skipped"]}


def test_report_convert_and_report_again_agree(
    loop: Path, report: dict[str, Any], traceviz: Run, tmp_path: Path
) -> None:
    traceviz("convert", loop, "-o", tmp_path / "folder")
    again = json.loads(traceviz("report", tmp_path / "folder", "--format", "json").stdout)
    assert again["sections"] == report["sections"]
    assert again["findings"] == report["findings"]


def test_the_terminal_report_of_a_recording_names_the_slow_range(loop: Path, traceviz: Run) -> None:
    text = traceviz("report", loop, "--width", "80").stdout
    assert "data loading" in text
    assert max(len(line) for line in text.splitlines()) <= 80
