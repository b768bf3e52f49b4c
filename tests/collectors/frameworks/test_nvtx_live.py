"""NVTX ranges that nsys records of real programs; the ranges need no package in the program's Python."""

from __future__ import annotations

import functools
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from tests.collectors.inject.runs import BY_NAME, Ran, run_under
from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.collectors.base import Plan

pytestmark = pytest.mark.live

TRAINING = REPOSITORY / "tests/collectors/torch_training.py"


def profile(folder: Path, *command: str, trace: str = "nvtx") -> tuple[Ran, Path]:
    """Run a command under nsys and the hooks, and export the report to the collector's folder."""
    nsys = shutil.which("nsys")
    if nsys is None:
        pytest.skip("nsys is not on PATH")
    report = folder / "raw/nsys/report"
    report.parent.mkdir(parents=True)
    flags = ["-t", trace, "-s", "none", "--cpuctxsw=none", "--force-overwrite=true"]
    ran = run_under(folder, ("nvtx",), command, wrapper=[nsys, "profile", *flags, "-o", str(report)])
    exported = report.with_suffix(".sqlite")
    subprocess.run(
        [nsys, "export", "--type=sqlite", "-o", exported, report.with_suffix(".nsys-rep")],
        check=True,
        capture_output=True,
    )
    return ran, exported


@pytest.fixture
def profiled(tmp_path):
    return functools.partial(profile, tmp_path)


@pytest.fixture(scope="module")
def of_torch(torch_python, tmp_path_factory):
    """One run of 20 steps, which several tests read and none changes."""
    return profile(tmp_path_factory.mktemp("torch"), torch_python, str(TRAINING), "plain", "20")


def harvested(folder: Path):
    return BY_NAME["nvtx"].harvest(Plan(folder, (), ("nvtx",)))


def names_in(report: Path, domain: str = "traceviz") -> Counter[str]:
    text = pl.col("name", "kind", "domain").cast(pl.String)
    ranges = api.open_trace(report).scan("nvtx").with_columns(text).collect()
    names = ranges.filter((pl.col("kind") != "mark") & (pl.col("domain") == domain))["name"]
    return Counter(name.split(" ")[0] if name.startswith(("step", "epoch")) else name for name in names)


def test_every_range_of_a_torch_program_arrives(of_torch):
    ran, report = of_torch
    assert (ran.code, ran.stdout.splitlines()[0]) == (0, "trained")
    arrived = names_in(report)
    expected = {"step": 20, "forward": 20, "backward": 20, "optimizer": 20, "data loading": 21, "epoch": 1}
    assert dict(arrived) == expected
    facts = harvested(report.parents[2]).facts
    assert (facts["emitted"], facts["arrived"], facts["ranges"]) == (102, 102, expected)
    assert facts["threads"]["intra_op"] == 1


def test_the_report_names_the_input_of_a_torch_program(of_torch):
    assert [finding.slug for finding in api.report_on(of_torch[1]).findings][:1] == ["input-bound"]


def test_a_report_without_the_ranges_is_a_problem(of_torch, tmp_path):
    shutil.copytree(of_torch[1].parents[2], tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run/raw/nsys/report.sqlite")) as database, database:
        database.execute("DELETE FROM NVTX_EVENTS")
    (problem,) = harvested(tmp_path / "run").problems
    assert problem.code == "nvtx-lost"
    assert "102 NVTX ranges" in problem.message


def test_ranges_of_keras_arrive_and_change_no_result(profiled, oracle_python):
    program = str(REPOSITORY / "tests/collectors/inject/keras_training.py")
    plain = subprocess.run([oracle_python, program], capture_output=True, text=True, check=True).stdout
    ran, report = profiled(oracle_python, program)
    assert ran.stdout.splitlines()[0] == plain.splitlines()[0]
    assert dict(names_in(report)) == {"step": 33, "epoch": 3, "data loading": 33, "compute": 33}


def test_a_trace_set_without_nvtx_is_said(profiled, torch_python, tmp_path):
    ran, _ = profiled(torch_python, str(TRAINING), "plain", "8", trace="osrt")
    assert ran.code == 0
    assert [problem.code for problem in harvested(tmp_path).problems] == ["nvtx-off"]


OWN = """
import importlib.metadata, nvtx
for _ in range(7):
    with nvtx.annotate("mine", domain="program"):
        pass
print(importlib.metadata.version("nvtx"))
"""


@pytest.mark.parametrize("version", ["0.2.11", "0.2.13"])
def test_the_programs_own_ranges_arrive_whatever_nvtx_it_has(profiled, tmp_path_factory, version):
    where = tmp_path_factory.mktemp("nvtx")
    get = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(where), f"nvtx=={version}"]
    if subprocess.run(get, capture_output=True, check=False).returncode:
        pytest.skip(f"nvtx {version} cannot be installed here")
    program = f"import sys; sys.path.insert(0, {str(where)!r})\n{OWN}"
    ran, report = profiled(sys.executable, "-c", program)
    assert ran.stdout.splitlines()[0] == version
    assert names_in(report, "program") == {"mine": 7}
