"""``traceviz report --format html``: a page with the timeline that was asked for."""

import json
import re

import pytest

from tests.conftest import REPOSITORY
from tests.support.command import run

TRACE = REPOSITORY / "sample_traces" / "synthetic" / "launch_bound.sqlite"


def header(page):
    found = re.search(r'<script type="application/json" id="tv-timeline">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1]) if found else None


@pytest.fixture
def page(tmp_path):
    """The page that a report with some options is."""

    def made(*options):
        result = run("report", TRACE, "--format", "html", "-o", tmp_path / "report.html", "--force", *options)
        assert (result.returncode, result.stderr) == (0, "")
        return (tmp_path / "report.html").read_text(encoding="utf-8")

    return made


def test_a_page_has_the_whole_timeline_and_the_places_of_its_findings(page):
    shown = header(page())
    assert (shown["events"], shown["kept"], shown["details"]) == (5940, 5940, [])
    assert [place["code"] for place in shown["places"]] == ["TV202"]


def test_fewer_events_are_all_there_in_some_stretches_of_time(page):
    shown = header(page("--timeline-events", "1500"))
    assert shown["events"] == 5940
    assert 1000 < shown["kept"] < 1600
    assert shown["details"]


def test_no_events_are_no_timeline(page):
    assert header(page("--timeline-events", "0")) is None


def test_a_window_is_on_the_clock_of_the_trace(page):
    shown = header(page("--from", "50ms", "--to", "80ms"))
    assert (shown["start"], shown["end"]) == (50_000_000, 80_000_000)


def test_other_formats_have_no_timeline_to_limit():
    result = run("report", TRACE, "--timeline-events", "10")
    assert result.returncode == 2
    assert "--timeline-events is about the timeline of a page" in result.stderr


def test_a_negative_number_of_events_is_refused():
    assert run("report", TRACE, "--format", "html", "--timeline-events", "-1").returncode == 2
