"""Figures of comparisons from documents of a few literals."""

from dataclasses import replace

import pytest

from traceviz.core.errors import UsageError
from traceviz.render.figures.registry import FIGURES, figure, figure_or_none, figures
from traceviz.render.figures.values import CurvePoint, Curves, Intervals, SignedBars, StackedBars
from traceviz.report import (
    AMOUNTS_OF_LANES,
    CLASSES_OF_SIDES,
    COMPARISON,
    PARTS_OF_SIDES,
    Column,
    Fact,
    Grid,
    Lane,
    Prose,
    Report,
    Section,
    Timeline,
    Verdict,
)
from traceviz.report.verdicts import VerdictCode

MS = 1_000_000
UNITS = {"mean_ns": "ns", "value": "per_second", "tag.batch": "number", "tag.devices": "number"}


def grid(title, names, *rows, audience="all"):
    columns = tuple(Column(name, name, UNITS.get(name, "text")) for name in names.split())
    return Grid(columns, tuple(map(tuple, rows)), title, audience=audience)


def comparison(slug, *blocks, sides=2):
    about = (Fact("source", "comparison", "a → b"), Fact("base", "base", "a"), Fact("new", "new", "b"))
    facts = (*about, Fact("sides", "sides", sides, "count"))
    return Report(facts, Verdict(VerdictCode.FASTER, "Faster."), (Section(slug, slug, blocks),), schema=COMPARISON)


def effect(*more):
    names = "side runs mean_ns low_ns high_ns speedup speedup_low speedup_high verdict"
    base = ("a", 3, 20 * MS, 19 * MS, 21 * MS, 1.0, None, None, "base")
    fast = ("b", 3, 10 * MS, 9.5 * MS, 10.5 * MS, 2.0, 1.8, 2.2, "faster")
    gone = ("c", 1, None, None, None, None, None, None, "crashed: out of memory")
    return comparison("effect", grid("", names, base, fast, gone), *more)


def test_3_sides_have_their_own_intervals_and_their_speedup_beside_them():
    drawn = figure(effect(), "sides")
    assert isinstance(drawn, Intervals)
    assert [(row.value, row.low, row.high) for row in drawn.rows] == [
        (20 * MS, 19 * MS, 21 * MS),
        (10 * MS, 9.5 * MS, 10.5 * MS),
        (None, None, None),
    ]
    assert [row.beside for row in drawn.rows] == [
        *("20.0 ms · base", "10.0 ms · 2.00× faster"),
        "crashed: out of memory",
    ]
    assert drawn.rows[1].detail == "1.80× faster to 2.20× faster, 95 % interval"
    assert (drawn.reference, drawn.reference_label) == (20 * MS, "a")
    assert drawn.interval == "95 % interval, between runs where a side has several"


def test_classes_of_2_sides_add_up_and_are_in_one_order():
    rows = (
        ("a", "device_compute", "device compute", 4 * MS),
        ("a", "input_wait", "input wait", 6 * MS),
        ("a", "other", "other", 0),
        ("b", "device_compute", "device compute", 4 * MS),
        ("b", "input_wait", "input wait", None),
        ("b", "other", "other", 0),
    )
    drawn = figure(effect(grid(CLASSES_OF_SIDES, "side class label mean_ns", *rows)), "classes")
    assert isinstance(drawn, StackedBars)
    assert [(row.label, row.total) for row in drawn.rows] == [("a", 10 * MS), ("b", 4 * MS)]
    assert [(part.key, part.share) for part in drawn.rows[0].parts] == [("device_compute", 0.4), ("input_wait", 0.6)]
    assert drawn.classes == (("device_compute", "device compute"), ("input_wait", "input wait"))
    assert drawn.notes == ("b does not measure input wait: its time there is in other classes.",)


def test_parts_of_runs_have_colours_that_no_class_has():
    rows = (("a", "compilation", "compilation", 3 * MS), ("b", "compilation", "compilation", 1 * MS))
    drawn = figure(effect(grid(PARTS_OF_SIDES, "side part label mean_ns", *rows)), "parts")
    assert [part.key for row in drawn.rows for part in row.parts] == ["part compilation"] * 2


def test_parts_are_in_the_order_of_the_side_that_has_most_of_them():
    rows = [("a", name, name, MS) for name in ("imports", "steps", "shutdown")]
    rows += [("b", name, name, MS) for name in ("imports", "compilation", "steps", "shutdown")]
    drawn = figure(effect(grid(PARTS_OF_SIDES, "side part label mean_ns", *rows)), "parts")
    assert [label for _, label in drawn.classes] == ["imports", "compilation", "steps", "shutdown"]


def kernels(*rows):
    return comparison("kernels", grid("per step", "status name base_ns new_ns difference_ns", *rows))


def test_kernels_that_changed_are_sorted_by_how_much_and_equal_ones_are_left_out():
    drawn = figure(
        kernels(
            ("faster", "gemm", 9 * MS, 5 * MS, -4 * MS),
            ("new", "copy", 0, 6 * MS, 6 * MS),
            ("same", "relu", 90 * MS, 91 * MS, 1 * MS),
            ("slower", "tiny", 1, 3, 2),
        ),
        "kernels",
    )
    assert isinstance(drawn, SignedBars)
    assert [(bar.label, bar.value, bar.beside, bar.remark) for bar in drawn.bars] == [
        ("copy", 6 * MS, "0 ns → 6.00 ms", "new"),
        ("gemm", -4 * MS, "9.00 ms → 5.00 ms", ""),
    ]
    assert (drawn.better, drawn.subtitle) == ("lower", "a → b: per step")
    assert drawn.notes == ("1 more kernel changed, by 2 ns together.",)


def test_20_kernels_are_12_bars_and_a_note():
    drawn = figure(kernels(*(("slower", f"k{n}", 0, n * MS, n * MS) for n in range(1, 21))), "kernels")
    assert len(drawn.bars) == 12
    assert drawn.notes == ("8 more kernels changed, by 36.0 ms together.",)


def test_nothing_that_changed_is_no_figure():
    with pytest.raises(UsageError, match="no kernel changed"):
        figure(kernels(("same", "relu", 5, 5, 0)), "kernels")


API = "name base_share new_share share_difference base_ns new_ns difference_ns"


def test_calls_without_steady_steps_change_by_points_of_their_share():
    rows = (("cudaFree", 0.5, 0.25, -0.25, None, None, None), ("cudaMalloc", 0.5, 0.75, 0.25, None, None, None))
    drawn = figure(comparison("cuda_api", grid("", API, *rows)), "api_changes")
    assert [(bar.label, bar.value, bar.beside) for bar in drawn.bars] == [
        ("cudaFree", -0.25, "50.0 % → 25.0 %"),
        ("cudaMalloc", 0.25, "50.0 % → 75.0 %"),
    ]
    assert (drawn.axis.unit, drawn.better) == ("ratio", "")


def test_shares_of_2_sides_come_from_the_grid_of_the_pair_and_of_3_from_that_of_every_side():
    pair = figure(comparison("cuda_api", grid("", API, ("cudaFree", 0.995, 0.2, -0.8, 1, 1, 0))), "api")
    assert [(row.label, row.parts[0].value) for row in pair.rows] == [("a", 0.995), ("b", 0.2)]
    rows = [(side, "cudaFree", share) for side, share in (("a", 0.3), ("b", 0.2), ("c", 0.1))]
    rows += [("a", "cuInit", 0.009), ("b", "cudaMalloc", 0.8)]
    drawn = figure(comparison("cuda_api", grid("", "side name share_of_api", *rows)), "api")
    assert [key for key, _ in drawn.classes] == ["cudaMalloc", "cudaFree", "other"]
    assert [row.total for row in drawn.rows] == pytest.approx([0.309, 1.0, 0.1])
    assert drawn.notes == ("1 other function, none with much time in any bar.",)


def sampled(values, sides=2, unit="bytes", amount=8e9):
    lanes = tuple(Lane(f"memory, {side}", values[side], "8 GB") for side in values)
    rows = ((lane.label, "memory", side, "8 GB", unit, amount) for side, lane in zip(values, lanes, strict=True))
    amounts = grid(AMOUNTS_OF_LANES, "lane label side whole unit amount", *rows)
    return comparison("resources", Timeline("over time", 0, 100, lanes), amounts, sides=sides)


def test_a_run_of_half_the_time_ends_in_the_middle_and_amounts_are_in_bytes():
    drawn = figure(sampled({"a": (0.5, 1.0), "b": (0.25, None)}), "resources")
    assert isinstance(drawn, Curves)
    (panel,) = drawn.panels
    assert panel.lines[0].points == (CurvePoint(0, 4e9), CurvePoint(50, 8e9), CurvePoint(100, None))
    assert panel.lines[1].points == (CurvePoint(0, 2e9), CurvePoint(50, None))
    assert (drawn.x.unit, drawn.x.end, drawn.notes) == ("ns", 100, ())


def test_shares_are_0_to_1_of_what_full_height_is():
    panel = figure(sampled({"a": (0.5,), "b": (0.25,)}, unit="ratio", amount=1.0), "resources").panels[0]
    assert (panel.axis.start, panel.axis.end, panel.full) == (0, 1, "8 GB")


def test_2_sides_of_5_say_so_and_reports_without_amounts_have_no_figure():
    report = sampled({"a": (0.5,), "b": (0.25,)}, sides=5)
    assert figure(report, "resources").notes == ("2 of 5 sides: others were not sampled, or come after them.",)
    (section,) = report.sections
    assert figure_or_none(replace(report, sections=(replace(section, blocks=section.blocks[:1]),)), "resources") is None


def test_a_lane_without_values_is_a_line_without_points():
    report = sampled({"a": (), "b": (1.0,)})
    assert [len(line.points) for line in figure(report, "resources").panels[0].lines] == [0, 2]


def test_what_is_no_number_is_not_drawn():
    report = sampled({"a": (1.0,), "b": (1.0,)}, amount=float("inf"))
    assert figure(report, "resources").panels[0].lines[0].points[0].y == 0.0
    huge = effect(grid(CLASSES_OF_SIDES, "side class label mean_ns", ("a", "x", "x", float("nan")), ("a", "y", "y", 1)))
    assert [row.total for row in figure(huge, "classes").rows] == [1]


def curve(*rows):
    names = "tag.framework tag.batch value low high"
    return comparison("curve", grid("", names, *rows), Prose("Best is batch=64."))


def test_a_curve_has_a_line_for_each_value_of_the_other_tag_and_intervals():
    rows = [("torch", n, 100.0 * n, 90.0 * n, 110.0 * n) for n in (8, 16, 64)]
    drawn = figure(curve(*rows, ("mxnet", 8, None, None, None)), "curve")
    torch, mxnet = drawn.panels[0].lines
    assert torch.points[2] == CurvePoint(64, 6400, 5760, 7040)
    assert mxnet.points == (CurvePoint(8, None),)
    assert (drawn.x.label, drawn.x.log) == ("batch", True)
    assert drawn.notes == ("Vertical strokes: 95 % intervals.",)


def test_numbers_less_than_8_times_apart_are_on_an_even_axis():
    assert not figure(curve(("torch", 8, 1.0, None, None), ("torch", 63, 2.0, None, None)), "curve").x.log


def test_scaling_has_the_ideal_and_the_law_as_dashed_lines_and_efficiency_below():
    names = "tag.devices value speedup speedup_low speedup_high ideal efficiency amdahl"
    rows = ((1, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0), (4, 2.0, 2.5, 2.2, 2.8, 4.0, 0.625, 2.4))
    drawn = figure(comparison("scaling", grid("", names, *rows)), "scaling")
    speed, efficiency = drawn.panels
    assert [(line.style, line.points[1].y) for line in speed.lines] == [("line", 2.5), ("dashed", 2.4), ("dashed", 4.0)]
    assert efficiency.lines[0].points == (CurvePoint(1, 1.0), CurvePoint(4, 0.625))


def test_a_figure_of_another_kind_of_report_says_whose_it_is():
    with pytest.raises(UsageError, match=r"'steps': figures of this name are of single traces") as error:
        figure(effect(), "steps")
    assert error.value.fix == "It has: sides."
    assert len(FIGURES.names()) == 17
    assert [name for name, _ in figures(effect())] == ["sides"]
