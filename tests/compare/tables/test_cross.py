"""Two tags against each other: cells, what they are compared with, and failures in place of figures."""

import csv
import io
from dataclasses import replace

import pytest

from tests.compare.tables.studies import run, study
from traceviz import api
from traceviz.api import RenderOptions
from traceviz.compare.effect import Outcome
from traceviz.compare.report.document import document
from traceviz.compare.sides.measures import BUSY
from traceviz.core.errors import UsageError
from traceviz.report import Grid, Note, Severity

CRASHED = ("failed", "out of memory")


def frameworks(**more):
    """Return two frameworks and three models, three times each; the last pair crashes twice, or always."""
    runs = [
        run(step, framework=framework, model=model, repeat=repeat, **more)
        for framework, model, step in (
            *(("torch", "alexnet", 20), ("torch", "resnet", 100), ("torch", "vgg", 300)),
            *(("paddle", "alexnet", 10), ("paddle", "resnet", 125)),
        )
        for repeat in range(3)
    ]
    return [*runs, *(run(framework="paddle", model="vgg", repeat=repeat, ending=CRASHED) for repeat in range(3))]


def grids(comparison, slug="cross"):
    return [block for block in document(comparison).blocks(slug) if isinstance(block, Grid)]


def cells(grid):
    return {row[0]: row[1:] for row in grid.rows}


def test_two_tags_make_a_table_of_6_cells_with_the_failure_as_one_of_them():
    values, _, _ = grids(study(frameworks(), ["framework", "model"], "torch,alexnet"))
    assert [column.name for column in values.columns] == ["tag.framework", "model=alexnet", "model=resnet", "model=vgg"]
    assert list(cells(values)) == ["torch", "paddle"]  # the base first
    assert cells(values)["torch"] == pytest.approx((20e6, 100e6, 300e6), rel=2e-3)
    assert cells(values)["paddle"][2] == "crashed: out of memory"


def test_models_are_compared_with_the_same_model_only():
    _, factors, _ = grids(study(frameworks(), ["framework", "model"], "torch,alexnet"))
    assert factors.title == "speed-up, against torch of the same column"
    assert cells(factors)["torch"] == (1.0, 1.0, 1.0)
    assert cells(factors)["paddle"] == (pytest.approx(2.0), pytest.approx(0.8), None)


def test_the_verdict_is_on_the_model_of_the_base_though_another_is_5_times_as_fast():
    comparison = study(frameworks(), ["framework", "model"], "torch,resnet")
    assert (comparison.shown.new.label, comparison.shown.judgement.outcome) == ("paddle, resnet", Outcome.SLOWER)


@pytest.mark.parametrize(
    ("against", "shown"), [("row", "side=32, on"), ("column", "side=16, off"), ("all", "side=16, on")]
)
def test_the_verdict_stays_in_the_row_or_column_that_cells_are_compared_in(against, shown):
    runs = [
        run(step, side=n, cache=cache)
        for n, cache, step in ((32, "off", 9), (32, "on", 8), (16, "off", 5), (16, "on", 3))
    ]
    assert study(runs, ["side", "cache"], "32,off", against=against).shown.new.label.replace("cache=", "") == shown


def test_projects_are_other_work_as_models_are():
    runs = [
        run(step, project=name, stage=stage)
        for name, stage, step in (("a", "before", 9), ("a", "after", 8), ("b", "after", 3))
    ]
    comparison = study(runs, ["project", "stage"])
    assert (comparison.sides[0].label, comparison.shown.new.label) == ("a, before", "a, after")
    assert grids(comparison)[1].title == "speed-up, against before of the same row"


def test_the_user_may_compare_with_1_cell():
    tables = study(frameworks(), ["framework", "model"], "torch,alexnet", against="all")
    assert cells(grids(tables)[1])["torch"] == (1.0, pytest.approx(0.2), pytest.approx(1 / 15))


def test_settings_of_one_program_are_all_compared_with_its_base():
    runs = [run(step, cache=cache, workers=n) for cache, n, step in (("off", 1, 9), ("off", 2, 6), ("on", 1, 3))]
    values, factors, _ = grids(study(runs, ["cache", "workers"]))
    assert factors.title == "speed-up, against cache=off, workers=1"
    assert cells(factors) == {"off": (1.0, pytest.approx(1.5)), "on": (pytest.approx(3.0), None)}
    assert cells(values)["on"][1] is None  # no such run


def test_every_cell_is_a_row_for_machines_with_how_many_runs_ended_how():
    runs = [*frameworks(), run(framework="torch", model="vgg", repeat=3, ending=("timed-out", "timed out after 60 s"))]
    every = grids(study(runs, ["framework", "model"], "torch,alexnet"))[2]
    rows = [dict(zip((column.name for column in every.columns), row, strict=True)) for row in every.rows]
    assert (len(rows), every.audience) == (6, "machine")
    vgg = {row["tag.framework"]: row for row in rows if row["tag.model"] == "vgg"}
    assert (vgg["torch"]["runs"], vgg["torch"]["stopped"], vgg["torch"]["ended"]) == (4, 1, "timed out after 60 s")
    assert vgg["torch"]["low"] < vgg["torch"]["value"] < vgg["torch"]["high"]
    assert vgg["torch"]["speedup"] == 1.0
    assert (vgg["paddle"]["value"], vgg["paddle"]["ended"]) == (None, "crashed: out of memory")


def test_a_speed_of_one_run_on_a_busy_machine_has_no_factor():
    note = Note(BUSY, Severity.WARNING, "Other programs used 2 of 2 cores.")
    runs = [
        run(measures={"total_ns": 8e9 / (x * y), "samples_per_second": 5 * x * y}, x=x, y=y)
        for x in (1, 2)
        for y in (1, 2)
    ]
    shown = {"measures": ("samples-per-second",)}
    assert cells(grids(study(runs, ["x", "y"], **shown))[1])["2"] == (2.0, 4.0)
    busy = [*runs[:3], replace(runs[3], notes=(note,))]
    assert cells(grids(study(busy, ["x", "y"], **shown))[1])["2"] == (2.0, "unclear")


def test_a_difference_that_may_be_chance_has_no_factor():
    steps = {("a", 1): (10, 10.1, 9.9), ("a", 2): (20, 20.2, 19.8), ("b", 1): (4, 25, 11), ("b", 2): (5, 5.1, 4.9)}
    runs = [run(step, x=x, y=y, repeat=n) for (x, y), of in steps.items() for n, step in enumerate(of)]
    factors = cells(grids(study(runs, ["x", "y"]))[1])
    assert factors["b"] == ("unclear", pytest.approx(2.0, rel=0.01))


def test_third_tags_make_1_table_for_each_value_and_pairs_that_do_not_cross_make_none():
    runs = [run(x + y + z, x=x, y=y, z=z) for x in (1, 2) for y in (1, 2) for z in (3, 5)]
    titles = [grid.title for grid in grids(study(runs, ["x", "y", "z"], cross=True))]
    assert titles[0] == "z=3: mean step"
    assert sum(title.startswith("z=5") for title in titles) == 2
    assert grids(study([run(1, x=1, y=1), run(2, x=2, y=2)], ["x", "y"])) == []


def test_a_table_of_30_columns_fits_80_cells():
    runs = [run(x + y, steps=6, model=x, batch=f"size-{y}") for x in (1, 2) for y in range(1, 31)]
    shown = api.to_text(study(runs, ["model", "batch"]), options=RenderOptions(width=80, sections=("cross",)))
    assert max(map(len, shown.splitlines())) <= 80
    assert all(f"size-{y}" in shown for y in range(1, 31))


def test_a_cross_table_takes_2_tags():
    with pytest.raises(UsageError, match=r"--by names x only"):
        study([run(1, x=1), run(2, x=2)], ["x"], cross=True)
    with pytest.raises(UsageError, match=r"--measure accuracy is shown in tables, and there is none"):
        study([run(1, x=1), run(2, x=2)], ["x"], measures=("accuracy",))


def test_the_figure_may_be_a_measure_of_whole_runs_or_a_metric():
    runs = [
        run(x, x=x, y=y, learned={"accuracy": x / 10 + y}, measures={"total_ns": x * y * 1e9})
        for x in (2, 4)
        for y in (1, 3)
    ]
    comparison = study(runs, ["x", "y"], measures=("total_ns", "accuracy"))
    values, factors, _, learned, every = grids(comparison)
    assert comparison.basis.name == "total"
    assert (cells(values)["4"], cells(factors)["4"]) == ((4e9, 12e9), (0.5, pytest.approx(1 / 6)))
    assert (learned.title, cells(learned)["4"]) == ("accuracy", (1.4, 3.4))
    assert every.title == "every cell"  # an accuracy has no factor, as 1 is its most
    with pytest.raises(UsageError, match=r"There is no measure 'acuracy'.*accuracy"):
        document(study(runs, ["x", "y"], measures=("acuracy",)))


def test_csv_has_a_row_for_each_of_6_cells_with_plain_numbers():
    comparison = study(frameworks(), ["framework", "model"], "torch,alexnet")
    text = api.to_text(comparison, "csv", RenderOptions(sections=("cross",)))
    head, *rows = csv.reader(io.StringIO(text))
    assert (len(rows), head[:4]) == (6, ["tag.framework", "tag.model", "measure", "runs"])
    crashed = dict(zip(head, next(row for row in rows if row[:2] == ["paddle", "vgg"]), strict=True))
    assert (crashed["ended"], crashed["value [ns]"], crashed["stopped"]) == ("crashed: out of memory", "", "3")
