"""Figures of archives and of trends from documents of a few literals."""

import pytest

from traceviz.render.figures.registry import figure, figure_or_none
from traceviz.render.figures.values import CurvePoint
from traceviz.report import (
    POPULATION,
    TREND,
    Bar,
    Bars,
    Column,
    Fact,
    Grid,
    Level,
    Point,
    Prose,
    Report,
    Section,
    Series,
    Verdict,
)
from traceviz.report.verdicts import VerdictCode


def grid(title, names, *rows):
    return Grid(tuple(Column(name, name) for name in names.split()), tuple(map(tuple, rows)), title)


def archive(*sections):
    return Report(
        (Fact("source", "archive", "9 traces"),), Verdict(VerdictCode.POPULATION, ""), sections, schema=POPULATION
    )


def test_3_frameworks_are_3_bars_of_their_functions():
    rows = (("torch", "cudaFree", 0.9), ("torch", "cuInit", 0.1), ("jax", "cuInit", 1.0), ("tensorflow", "cudaFree", 1))
    drawn = figure(archive(Section("cuda_api", "", (grid("", "by name share_of_api", *rows),))), "frameworks")
    assert [row.label for row in drawn.rows] == ["torch", "jax", "tensorflow"]
    assert [(part.key, part.value) for part in drawn.rows[0].parts] == [("cuInit", 0.1), ("cudaFree", 0.9)]
    assert drawn.title == "CUDA API time by function, for each by"


def test_calls_that_were_not_read_are_no_figure():
    assert figure_or_none(archive(Section("cuda_api", "", (Prose("Not read."),))), "frameworks") is None


def test_outliers_are_sorted_by_distance_and_say_what_was_expected():
    names = "source rank metric shown shown_median score"
    rows = (("a.json", None, "input_share", "5.0 %", "40.0 %", -4.0), ("b.json", 1, "launch", "43 %", "0 %", 29.3))
    drawn = figure(archive(Section("outliers", "", (grid("Every figure", names, *rows),))), "outliers")
    assert [(bar.label, bar.value, bar.beside) for bar in drawn.bars] == [
        ("launch: b.json, rank 1", 29.3, "43 % against 0 %"),
        ("input_share: a.json", -4.0, "5.0 % against 40.0 %"),
    ]


def test_findings_at_stake_are_in_device_time_where_there_are_devices():
    names = "code name traces gpu_stake_ns share_of_gpu stake_ns share_of_recorded"
    stakes = grid("", names, ("TV101", "input-bound", 3, 500, 0.5, 900, 0.4), ("TV9", "free", 1, None, None, 7, 0.1))
    drawn = figure(archive(Section("at_stake", "", (stakes,))), "at_stake")
    assert [(bar.label, bar.value, bar.share, bar.detail) for bar in drawn.bars] == [
        ("input-bound (TV101)", 500, 0.5, "3 traces")
    ]
    assert drawn.axis.label == "device time at most"


def test_verdicts_are_one_bar_of_all_traces():
    bars = Bars("Verdicts", "4 traces", "count", (Bar("bound", "bound", 3, 0.75), Bar("serving", "serving", 1, 0.25)))
    drawn = figure(archive(Section("verdicts", "", (bars,))), "verdicts")
    assert (drawn.rows[0].total, drawn.whole[0].share) == (4, 0.75)


def trend(*blocks):
    return Report(
        (Fact("source", "trend", "step_mean by date"), Fact("by", "by", "date")),
        Verdict(VerdictCode.REGRESSION, "Worse."),
        (Section("trend", "Mean step", blocks),),
        schema=TREND,
    )


def course(title, values, *levels, names="abcdef"):
    points = tuple(Point(name, value) for name, value in zip(names, values, strict=False))
    return Series(title, "ns", points, tuple(Level(*level) for level in levels))


CHANGES = ("Changes", "at before after change verdict", ("d", 10.0, 15.0, 0.5, "regression"))


def test_a_trend_has_its_runs_its_levels_and_a_mark_between_the_runs_where_it_changed():
    drawn = figure(trend(course("x, 6 runs; ▲", (10, 10, 10, 15, 15, None), (0, 10), (3, 15)), grid(*CHANGES)), "trend")
    runs, levels = drawn.panels[0].lines
    assert [point.y for point in runs.points] == [10, 10, 10, 15, 15, None]
    assert levels.points == (CurvePoint(-0.5, 10), CurvePoint(2.5, None), CurvePoint(2.5, 15), CurvePoint(5.5, None))
    assert [(mark.x, mark.label) for mark in drawn.marks] == [(2.5, "d: +50.0 %")]
    assert drawn.x.names == tuple("abcdef")
    assert drawn.panels[0].axis.start == pytest.approx(8.75)
    assert (drawn.title, drawn.subtitle) == ("Mean step", "x, 6 runs")


def test_groups_share_one_axis_of_all_their_keys_in_natural_order():
    series = course("torch: x", (1, 2), names=("v2", "v10")), course("jax: x", (5,), names=("v9",))
    drawn = figure(trend(*series), "trend")
    assert drawn.x.names == ("v2", "v9", "v10")
    assert [[point.x for point in panel.lines[0].points] for panel in drawn.panels] == [[0, 2], [1]]
    assert [panel.axis.label for panel in drawn.panels] == ["torch", "jax"]


def test_of_6_groups_4_are_drawn():
    drawn = figure(trend(*(course(f"{n}: x", (1, 2)) for n in range(6))), "trend")
    assert (len(drawn.panels), drawn.notes) == (4, ("2 more groups are in the tables.",))
