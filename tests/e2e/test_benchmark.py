"""The benchmark runs from end to end, on a thousandth of its rows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_benchmark_measures_every_route_and_agrees_with_nsys(nsys: str, repository: Path, tmp_path: Path) -> None:
    options = ["--rows-scale", "0.001", "--runs", "1", "--data", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(repository / "benchmarks" / "nsys_convert.py"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "12 API names" in done.stdout
    assert "equal to nsys stats" in done.stdout
    for route in ("traceviz convert", "pandas", "traceviz report", "nsys stats"):
        assert done.stdout.count(f" {route} ") == 1
    with sqlite3.connect(tmp_path / "big-0.001.sqlite") as database:
        counts = [
            database.execute(f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_{kind}").fetchone()[0]
            for kind in ("RUNTIME", "KERNEL")
        ]
    database.close()
    assert counts == [3_000, 1_500]
