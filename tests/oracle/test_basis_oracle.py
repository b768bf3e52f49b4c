"""`--basis xprof` gives the figures and sentences of xprof itself, step by step."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from traceviz import api
from traceviz.analyses.options import AnalysisOptions
from traceviz.report import Report, Skipped

from .conftest import Ask

pytestmark = pytest.mark.oracle

SAMPLES = REPOSITORY / "sample_traces"
MANIFEST: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
FILES = sorted(entry["file"] for entry in MANIFEST if ".xplane.pb" in entry["file"] and "tpu" not in entry["file"])

COLUMNS = {
    "deviceComputeTimeMs": "device_compute_ns",
    "deviceToDeviceTimeMs": "device_to_device_ns",
    "deviceCollectivesTimeMs": "device_collectives_ns",
    "hostComputeTimeMs": "host_compute_ns",
    "kernelLaunchTimeMs": "kernel_launch_ns",
    "infeedTimeMs": "infeed_ns",
    "outfeedTimeMs": "outfeed_ns",
    "compileTimeMs": "compile_ns",
    "otherTimeMs": "other_ns",
    "stepTimeMs": "step_ns",
}


def by_xprof(report: Report) -> list[dict[str, Any]]:
    """Return the rows that the report has for each step, by the rules of xprof."""
    section = json.loads(api.to_text(report, "json"))["sections"][0]
    return next(block for block in section["blocks"] if block.get("title") == "Steps")["rows"]


@pytest.mark.parametrize("name", FILES)
def test_every_step_has_the_classes_that_xprof_gives_it(name: str, ask_xprof: Ask) -> None:
    _, table, *_ = ask_xprof("input_pipeline", SAMPLES / name)
    report = api.report_on(SAMPLES / name, sections=["breakdown"], options=AnalysisOptions(basis="xprof"))
    if not table["rows"]:
        assert [skipped.slug for skipped in report.skipped] == ["breakdown"]
        assert table["properties"]["input_conclusion"] in report.skipped[0].reason or no_groups(report.skipped[0])
        return
    ours = by_xprof(report)
    assert [row["stepnum"] for row in ours] == [row["stepnum"] for row in table["rows"]]
    for mine, theirs in zip(ours, table["rows"], strict=True):
        for column, key in COLUMNS.items():
            assert mine[key] / 1e6 == pytest.approx(theirs[column], abs=1e-3), (mine["stepnum"], column)


def no_groups(skipped: Skipped) -> bool:
    """Return whether the capture links nothing to steps; xprof then reports the same as for steps without time."""
    return "links no events to such steps" in skipped.reason


@pytest.mark.parametrize("name", FILES)
def test_the_conclusion_is_the_sentence_of_xprof(name: str, ask_xprof: Ask) -> None:
    _, table, *_ = ask_xprof("input_pipeline", SAMPLES / name)
    report = api.report_on(SAMPLES / name, sections=["breakdown"], options=AnalysisOptions(basis="xprof"))
    if report.skipped:
        assert len(table["rows"]) == 0
        return
    said = table["properties"]
    assert report.fact("breakdown", "conclusion") == said["input_conclusion"]
    text = " ".join(api.to_text(report, "terminal").split())
    for key in ("kernel_launch_statement", "all_other_statement", "device_collectives_statement"):
        assert " ".join(said[key].split()) in text
