"""Every shipped sample gives the verdict and exactly the findings that the manifest promises."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from scripts.causes import GOOD, Truth, judge, said_in, truths
from tests.conftest import REPOSITORY

SAMPLES = REPOSITORY / "sample_traces"
ENTRIES: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
TRUTHS: dict[str, Truth] = {truth.name: truth for truth in truths() if truth.collection == "samples"}
Reports = Callable[..., dict[str, Any]]


def facts_of(report: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (section["slug"], fact["key"]): fact["value"]
        for section in report["sections"]
        for block in section["blocks"]
        for fact in block.get("facts", ())
    }


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["file"])
def test_the_report_says_what_the_manifest_promises_and_names_the_true_cause(
    entry: dict[str, Any], report_of: Reports, request: pytest.FixtureRequest
) -> None:
    if entry["file"].endswith(".nsys-rep"):
        request.getfixturevalue("nsys")
    report = report_of(SAMPLES / entry.get("folder", entry["file"]))
    facts = facts_of(report)
    assert facts.get(("steps", "count"), 0) == entry["steps"]
    assert report["verdict"]["code"] == entry["verdict"]
    assert sorted({finding["code"] for finding in report["findings"]}) == sorted(entry["findings"])
    name = entry.get("folder", entry["file"])
    scored = judge(TRUTHS[name], said_in(report))
    assert scored.judgement in GOOD, scored.reason


def test_the_best_case_of_the_slow_map_is_what_the_repaired_pipeline_takes(report_of: Reports) -> None:
    """The two captures differ in nothing but the pipeline, and were recorded one after the other."""
    slow = facts_of(report_of(SAMPLES / "xplane/slow_map.xplane.pb.gz"))
    repaired = facts_of(report_of(SAMPLES / "xplane/repaired.xplane.pb"))
    assert slow["input_pipeline", "stage"] == "Map"
    assert slow["steps", "median_ns"] > 2.2 * repaired["steps", "median_ns"]
    assert slow["input_pipeline", "best_case_step_ns"] == pytest.approx(repaired["steps", "median_ns"], rel=0.10)


@pytest.mark.parametrize(("name", "stage"), [("generator", "Generator"), ("tfrecord", "TFRecord")])
def test_the_stage_to_blame_is_named(name: str, stage: str, report_of: Reports) -> None:
    facts = facts_of(report_of(SAMPLES / f"xplane/{name}.xplane.pb.gz"))
    assert facts["input_pipeline", "stage"] == stage
    assert 0.5 < facts["input_pipeline", "input_share"] < 0.7
