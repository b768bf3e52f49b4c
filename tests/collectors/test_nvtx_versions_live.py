"""Ranges of the package nvtx arrive for any version; only an older nsys loses those of newer versions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import traceviz
from traceviz.core.nsys_program import find_nsys

pytestmark = pytest.mark.live

VERSIONS = Path(__file__).parents[2] / "build" / "nvtx"
PROGRAM = """
import nvtx
for step in range(5):
    with nvtx.annotate(f"step {step}"):
        pass
@nvtx.annotate("decorated", domain="mine", category="c")
def decorated(): ...
decorated()
nvtx.push_range("pushed")
nvtx.pop_range()
"""


@pytest.mark.parametrize("version", ["0.2.8", "0.2.17"])
def test_ranges_of_the_oldest_and_the_newest_package_are_recorded(version: str, tmp_path: Path) -> None:
    package = VERSIONS / version
    if find_nsys() is None or not package.is_dir():
        pytest.skip("needs nsys, and packages of `make nvtx`")
    (tmp_path / "program.py").write_text(PROGRAM)
    collect = [sys.executable, "-m", "traceviz", "collect", "--with", "nsys", "-o", "run", "--stacks-rate", "0", "--"]
    done = subprocess.run(
        [*collect, sys.executable, "program.py"],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ranges = traceviz.open(tmp_path / "run").scan("nvtx").collect()
    names = ranges["name"].cast(str).to_list()
    assert [name for name in names if name.startswith("step ")] == [f"step {step}" for step in range(5)]
    assert [
        dict(row) for row in ranges.filter(ranges["name"].cast(str) == "decorated").select("domain").to_dicts()
    ] == [{"domain": "mine"}]
    assert names.count("pushed") == 1
