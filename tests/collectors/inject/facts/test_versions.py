"""Versions of Python and of imported frameworks: noted by the hooks with any collector, and read into the manifest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from traceviz.collectors.base import Plan
from traceviz.collectors.frameworks.harvest import read_versions
from traceviz.collectors.run.plan import added_environment


def package(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)


@pytest.mark.process
@pytest.mark.parametrize("collectors", ["resources", "stacks,resources"])
def test_the_manifest_has_the_versions_of_what_the_program_imported_and_of_nothing_else(
    tmp_path: Path, collectors: str
) -> None:
    cuda = "class version:\n    cuda = '12.4'\n"
    package(tmp_path / "lib", "torch", f"__version__ = '2.9.1'\n{cuda}")
    package(tmp_path / "lib", "jax", "__version__ = '0.8.0'\n")
    package(tmp_path / "lib", "keras", "raise SystemExit('nothing may import it')\n")
    program = f"import sys, time; sys.path.append({str(tmp_path / 'lib')!r}); import torch; time.sleep(0.7)"
    line = [
        sys.executable,
        "-m",
        "traceviz",
        "collect",
        "--no-report",
        "--with",
        collectors,
        "-o",
        str(tmp_path / "run"),
        "--",
    ]
    done = subprocess.run([*line, sys.executable, "-c", program], check=False, capture_output=True, cwd=REPOSITORY)
    assert done.returncode == 0
    document = json.loads((tmp_path / "run/manifest.json").read_text())
    versions = document["versions"]
    assert {name: versions.get(name) for name in ("torch", "cuda", "python", "jax", "keras")} == {
        "torch": "2.9.1",
        "cuda": "12.4",
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "jax": None,
        "keras": None,
    }
    assert document["machine"]["cpu"]


def test_python_is_that_of_the_program_and_lines_that_were_cut_are_left_out(tmp_path: Path) -> None:
    assert read_versions(tmp_path, 12) == {}
    (tmp_path / "processes.jsonl").write_text(
        '{"pid": 11, "python": "3.9.1"}\n[3]\n{"pid": 12, "python": "3.12.4"}\n{"pid": 1'
    )
    (tmp_path / "versions.jsonl").write_text('{"versions": {"torch": "2.9", "cuda": 12}}\n{"versions": 3}\n{"ver')
    assert read_versions(tmp_path, 12) == {"python": "3.12.4", "torch": "2.9"}
    assert read_versions(tmp_path, 99) == {"python": "3.9.1", "torch": "2.9"}


@pytest.mark.parametrize(
    ("name", "has_hooks"), [("resources", True), ("py-spy", True), ("nsys", True), ("fake", False)]
)
def test_recorders_outside_of_the_program_bring_the_hooks_that_note_versions(
    tmp_path: Path, name: str, *, has_hooks: bool
) -> None:
    added = added_environment(Plan(tmp_path, (), (name,)), (), {"PYTHONPATH": "/mine"})
    assert (added.get("TRACEVIZ_INJECT") == str(tmp_path / "inject.json")) == has_hooks
    assert added.get("PYTHONPATH", ":/mine").endswith(":/mine")
