"""The benchmark runs from end to end, on a thousandth of its rows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

JOBS = ("nsys report", "nsys section", "nsys convert", "nsys folder", "nsys-rep")


@pytest.mark.slow
def test_the_benchmark_measures_every_route_and_agrees_with_nsys(nsys: str, repository: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Before.\n<!-- whole -->\nold\n<!-- /whole -->\nAfter.\n")
    options = ["--scale", "0.001", "--runs", "1", "--only", "nsys", "--data", str(tmp_path), "--markdown", str(page)]
    done = subprocess.run(
        [sys.executable, str(repository / "benchmarks" / "whole.py"), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "12 API names" in done.stderr
    assert "equal to nsys stats" in done.stderr
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[3:] if not line.startswith(" ")] == [*JOBS]
    table = "\n".join(lines[2:])
    assert [table.count(f" {route} ") for route in ("pandas", "nsys stats", "traceviz, again")] == [1, 2, 1]
    written = page.read_text().splitlines()
    assert [written[0], written[-1], "old" in written] == ["Before.", "After.", False]
    assert sum(line.startswith("|") for line in written) == len(lines) - 1
    with sqlite3.connect(tmp_path / "big-0.001.sqlite") as database:
        counts = [
            database.execute(f"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_{kind}").fetchone()[0]
            for kind in ("RUNTIME", "KERNEL")
        ]
    database.close()
    assert counts == [3_000, 1_500]


@pytest.mark.process
def test_a_page_without_a_place_for_the_table_is_refused_before_anything_is_measured(
    repository: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- whole -->\n")
    command = [sys.executable, str(repository / "benchmarks" / "whole.py"), "--data", str(tmp_path), "--markdown", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("no place for the table")) == (1, 1)
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.slow
def test_growth_states_an_exponent_and_compares_the_report_within_little_memory(
    repository: Path, tmp_path: Path
) -> None:
    program = (
        "import growth, made_traces; from pathlib import Path; from whole_tables import text; "
        "growth.SIZES = (0.0045, 0.009); "
        f"print(text(growth.measured(Path({str(tmp_path)!r}), {{'traceviz': {sys.executable!r}}}, 1, 45)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=repository / "benchmarks"
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum("exponent" in line for line in lines) == 4
    assert "traceviz, the same figures" in lines[-1]
