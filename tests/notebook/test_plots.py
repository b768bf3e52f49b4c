"""traceviz.plot: one figure of a report, a trace or a comparison."""

import json
from pathlib import Path

import pytest

import traceviz
from tests.render.figures.test_of_reports import by_step
from tests.render.svg.drawn import parsed, titles
from traceviz.core.errors import OutputExistsError, UsageError
from traceviz.core.units import format_value

SLOW = "sample_traces/kineto/slow.pt.trace.json.gz"
REPAIRED = "sample_traces/kineto/repaired.pt.trace.json.gz"


def test_a_plot_of_a_trace_is_that_of_its_tables_and_of_its_report():
    tables = traceviz.open(SLOW)
    drawn = traceviz.plot(tables, "steps")
    assert drawn.svg == traceviz.plot(traceviz.analyze(tables), "steps").svg
    assert len(titles(drawn.svg)) == 1 + 2 * 10
    assert "step 3: input wait 113 ms (56.5 %)" in titles(drawn.svg)


def test_each_part_says_what_the_json_report_has_of_it():
    report = traceviz.report_on(Path(SLOW))
    steps = next(
        block
        for section in json.loads(traceviz.to_text(report, "json"))["sections"]
        for block in section["blocks"]
        if block.get("title") == "By step"
    )["rows"]
    said = titles(traceviz.plot(report, "steps").svg)
    assert len(steps) == 10
    for row in steps:
        share = format_value(row["input_wait"] / row["dur_ns"], "ratio")
        assert f"step {row['step']}: input wait {format_value(row['input_wait'], 'ns')} ({share})" in said


def test_a_comparison_has_figures_of_its_sides():
    drawn = traceviz.plot(traceviz.compare_runs(SLOW, REPAIRED), "classes")
    assert len(drawn.figure.rows) == 2
    assert parsed(drawn.svg).get("width") == "720"


def test_the_picture_in_the_readme_is_that_of_the_sample():
    """Made by: traceviz report sample_traces/kineto/slow.pt.trace.json.gz --format svg -o docs/steps.svg --force."""
    assert Path("docs/steps.svg").read_text(encoding="utf-8") == traceviz.plot(SLOW, "steps").svg + "\n"


def test_a_notebook_shows_the_figure_as_wide_as_it_is_asked_for():
    drawn = traceviz.plot(by_step((1, 0, 60, 40)), width=480, height=300)
    assert drawn._repr_svg_() == drawn._repr_html_() == drawn.svg
    assert parsed(drawn.svg).get("width") == "480"
    assert repr(drawn) == "<Plot 'Time of every step, by class', 480 pixels wide>"


def test_a_file_is_written_whole_and_replaced_only_by_force(tmp_path):
    drawn = traceviz.plot(by_step((1, 0, 60, 40)))
    path = drawn.save(tmp_path / "steps.svg")
    assert path.read_text(encoding="utf-8") == drawn.svg + "\n"
    with pytest.raises(OutputExistsError):
        drawn.save(path)
    assert drawn.save(str(path), force=True) == path
    assert [one.name for one in tmp_path.iterdir()] == ["steps.svg"]


def test_a_figure_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match=r"no figure 'api'.*It has: steps"):
        traceviz.plot(by_step((1, 0, 60, 40)), "api")
