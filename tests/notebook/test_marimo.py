"""Reports in a marimo notebook, exported as marimo shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import traceviz
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

SAMPLE = REPOSITORY / "sample_traces/synthetic/input_bound.sqlite"
BOOK = f"""
import marimo

app = marimo.App()


@app.cell
def _():
    import traceviz

    report = traceviz.analyze({str(SAMPLE)!r})
    report
    return (report,)


@app.cell
def _(report):
    report.section("kernels")


if __name__ == "__main__":
    app.run()
"""


def test_marimo_shows_a_report_and_a_section_as_pieces_of_its_page(tmp_path: Path) -> None:
    book, page = tmp_path / "book.py", tmp_path / "book.html"
    book.write_text(BOOK)
    command = [sys.executable, "-m", "marimo", "export", "html", str(book), "-o", str(page), "--no-include-code"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    exported = page.read_text()
    shown = []
    while '"text/html": ' in exported:
        exported = exported.partition('"text/html": ')[2]
        shown.append(json.JSONDecoder().raw_decode(exported)[0])
    drawn = [text for text in shown if text.startswith('<div class="tv-fragment">')]
    assert len(drawn) == 2
    assert traceviz.analyze(SAMPLE).verdict.sentence.partition(";")[0].partition(",")[0].split(":")[0] in drawn[0]
    assert all("<script" not in text for text in drawn)
    assert "sm80_xmma_wgrad" in drawn[1]
