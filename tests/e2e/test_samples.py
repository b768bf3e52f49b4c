"""Every shipped sample gives the verdict and exactly the findings that the manifest promises."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

SAMPLES = Path(__file__).resolve().parents[2] / "sample_traces"
ENTRIES: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_the_report_says_what_the_manifest_promises(
    entry: dict[str, Any], traceviz: Run, request: pytest.FixtureRequest
) -> None:
    if not entry["file"].endswith(".sqlite"):
        request.getfixturevalue("nsys")
    report = json.loads(traceviz("report", SAMPLES / entry["file"], "--format", "json").stdout)
    facts = {
        (section["slug"], fact["key"]): fact["value"]
        for section in report["sections"]
        for block in section["blocks"]
        for fact in block.get("facts", ())
    }
    assert facts["steps", "count"] == entry["steps"]
    assert report["verdict"]["code"] == entry["verdict"]
    assert sorted({finding["code"] for finding in report["findings"]}) == sorted(entry["findings"])
