"""A selection has the figures that the report has of the same part of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.browser.timeline_pages import DRAWN, act, table
from traceviz import api
from traceviz.core.units import format_value
from traceviz.report import Bars, Facts, Grid, Report
from traceviz.trace.selection import Selection

pytestmark = pytest.mark.browser
SAMPLE = Path(__file__).parents[2] / "sample_traces" / "synthetic" / "input_bound.sqlite"
START, END = 367_204_567, 375_232_516
"""A step of the sample."""


def figures(report: Report, slug: str, key: str) -> int:
    """Return a fact of a section."""
    section = next(one for one in report.sections if one.slug == slug)
    facts = [fact for block in section.blocks if isinstance(block, Facts) for fact in block.facts]
    return next(fact.value for fact in facts if fact.key == key)  # type: ignore[return-value]


def test_a_step_has_the_figures_of_the_report_of_that_time(open_page: Open, tmp_path: Path) -> None:
    report, pictures = api.pictured(SAMPLE)
    path = tmp_path / "page.html"
    path.write_text(api.to_text(report, "html", pictures=pictures), encoding="utf-8")
    page = open_page(path).page
    page.wait_for_function(DRAWN)
    act(page, f"t.selectWindow({START} - m.start, {END} - m.start)")
    part = api.report_on(SAMPLE, selection=Selection(start_ns=START, end_ns=END))

    busy = figures(part, "device_use", "busy_ns")
    assert busy == 4_883_721
    assert [row[1:] for row in table(page, "Device busy")] == [[format_value(busy, "ns"), "60.8 %"]]

    classes = {row[0]: row[1] for row in table(page, "Time by class")}
    assert classes["device compute"] == format_value(figures(part, "kernels", "total_ns"), "ns") == "4.34 ms"
    assert classes["kernel launch"] == format_value(figures(part, "cuda_api", "exposed_ns"), "ns") == "12.1 µs"
    assert classes["Sum"] == format_value(END - START, "ns") == "8.03 ms"

    kernels = next(one for one in part.sections if one.slug == "kernels")
    families = next(block for block in kernels.blocks if isinstance(block, Bars)).bars
    shown = {row[0]: row[1] for row in table(page, "Device work by family")}
    assert {bar.label: format_value(bar.value, "ns") for bar in families}.items() <= shown.items()
    assert len(families) == 7

    calls = next(one for one in part.sections if one.slug == "cuda_api")
    grid = next(block for block in calls.blocks if isinstance(block, Grid))
    names = [column.name for column in grid.columns]
    expected = [[row[names.index(key)] for key in ("name", "total_ns", "calls")] for row in grid.rows]
    assert table(page, "API calls") == [[n, format_value(t, "ns"), format_value(c, "count")] for n, t, c in expected]
