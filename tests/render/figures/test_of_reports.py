"""Figures of a report on one trace, from documents of a few literals."""

from __future__ import annotations

import pytest

from traceviz.render.figures.of_reports import api, steps, utilization
from traceviz.render.figures.registry import figure
from traceviz.render.figures.values import CurvePoint, Curves, NoFigure, RankedBars, StackedBars
from traceviz.report import BY_STEP, EVERY_STEP, Bar, Bars, Column, Fact, Grid, Lane, Report, Section, Timeline, Verdict
from traceviz.report.verdicts import VerdictCode

MS = 1_000_000
KEYS = (
    Column("step", "Step", "id"),
    Column("process", "Process", "id"),
    Column("dur_ns", "Duration", "ns", additive=True),
)
CLASSES = (
    *(Column("input_wait", "input wait", "ns"), Column("allocation", "allocation", "ns")),
    Column("host_compute", "host compute", "ns"),
)


def by_step(*rows):
    """Return a report of steps: number, rank, milliseconds of input wait and of host compute."""
    table = tuple((step, rank, (wait + host) * MS, wait * MS, 0, host * MS) for step, rank, wait, host in rows)
    whole = sum(row[2] for row in table)
    bars = (
        Bar(one.name, one.label, value := sum(row[place] for row in table), value / whole)
        for place, one in enumerate(CLASSES, 3)
    )
    classes = Section(
        "breakdown", "", (Bars("Step time", "steps", "ns", tuple(bars)), Grid((*KEYS, *CLASSES), table, BY_STEP))
    )
    return report(classes)


def every_step(*rows):
    columns = (*KEYS[:1], KEYS[2], Column("warmup", "Warm-up", "bool"), Column("cut", "Cut", "bool"))
    return Section("steps", "", (Grid(columns, rows, EVERY_STEP),))


def report(*sections):
    return Report((Fact("source", "trace", "slow.json"),), Verdict(VerdictCode.NONE, ""), sections)


def drawn(of) -> StackedBars:
    found = figure(of, "steps")
    assert isinstance(found, StackedBars)
    return found


def test_3_steps_are_3_bars_whose_parts_add_up_to_them():
    found = drawn(by_step((1, 0, 60, 40), (2, 0, 20, 60), (3, 0, 0, 50)))
    assert [row.label for row in found.rows] == ["1", "2", "3"]
    assert [row.total for row in found.rows] == [100 * MS, 80 * MS, 50 * MS]
    assert [part.share for part in found.rows[1].parts] == [0.25, 0.75]
    assert found.subtitle == "3 steady steps of slow.json"


def test_the_legend_has_the_shares_that_the_report_states_and_no_class_without_time():
    found = drawn(by_step((1, 0, 60, 40), (2, 0, 20, 80)))
    assert [(part.key, part.share) for part in found.whole] == [("input_wait", 0.4), ("host_compute", 0.6)]
    assert [key for key, _ in found.classes] == ["input_wait", "host_compute"]


def test_2_ranks_stand_beside_each_other_and_of_5_a_bar_is_the_mean():
    two = drawn(by_step(*((step, rank, 10, 10 * rank) for step in (7, 8) for rank in range(2))))
    assert [(row.label, row.remark, row.group) for row in two.rows[:3]] == [
        *(("7", "of rank 0", "7"), ("7", "of rank 1", "7"), ("8", "of rank 0", "8"))
    ]
    five = drawn(by_step(*((step, rank, 10, 10 * rank) for step in (7, 8) for rank in range(5))))
    assert [(row.total, row.most) for row in five.rows] == [(30 * MS, 50 * MS)] * 2
    assert five.notes == ("Each bar is the mean of all ranks; the line above it is the slowest of them.",)


def test_120_steps_are_120_bars_and_121_are_61_of_2_steps():
    many = [(step, 0, 10, 20 + 10 * (step % 2)) for step in range(121)]
    assert len(drawn(by_step(*many[:120])).rows) == 120
    found = drawn(by_step(*many))
    assert len(found.rows) == 61
    first, last = found.rows[0], found.rows[-1]
    assert (first.label, first.remark, first.total, first.most) == ("0", "to 1", 35 * MS, 40 * MS)
    assert (last.label, last.remark, last.total, last.most) == ("120", "", 30 * MS, None)
    assert found.rows_label == "steps"


def test_5000_steps_are_100_bars_of_50():
    assert len(drawn(by_step(*((step, 0, 10, 20) for step in range(5_000)))).rows) == 100


def test_steps_whose_classes_are_not_known_are_whole_and_warm_up_is_left_out_and_said():
    found = drawn(report(every_step((0, 55 * MS, True, False), (1, 20 * MS, False, False), (2, 9 * MS, False, True))))
    assert [(row.label, row.total) for row in found.rows] == [("1", 20 * MS)]
    assert [key for key, _ in found.classes] == ["step"]
    assert found.notes == ("1 warm-up step left out: it took 55.0 ms.",)


def test_a_report_without_steps_has_no_such_figure():
    assert steps(report()) == NoFigure("no single step is known in it")


def test_a_saved_report_with_other_columns_values_or_none_is_drawn_as_far_as_it_goes():
    strange = Grid((KEYS[0], CLASSES[0]), (("a", None), (None, -5), ("b", float("nan")), ("b", 7)), BY_STEP)
    found = drawn(report(Section("breakdown", "", (strange,))))
    assert sum(row.total for row in found.rows) == 7 / 2
    assert steps(report(Section("breakdown", "", (Grid((CLASSES[0],), ((5,),), BY_STEP),)))) == NoFigure(
        "no single step is known in it"
    )


S = 1_000_000_000


def use_of(**timelines):
    sections = tuple(Section(slug, slug, (timeline,)) for slug, timeline in timelines.items())
    return utilization(Report((Fact("source", "trace", "train.nsys-rep"),), Verdict(VerdictCode.NONE, ""), sections))


def test_use_of_a_device_is_stacked_by_kind_with_computing_at_the_bottom():
    parts = ("device_compute", "computing", (0.5, 0.25)), ("copy", "copies and fills alone", (0.25, 0.5))
    found = use_of(device_use=Timeline("", 0, 2 * S, (Lane("GPU 0", (0.75, 0.75), parts=parts),)))
    assert isinstance(found, Curves)
    (panel,) = found.panels
    assert [(line.key, line.style, [point.y for point in line.points]) for line in panel.lines] == [
        ("copy", "stacked", [0.75, 0.75, None]),
        ("device_compute", "stacked", [0.5, 0.25, None]),
    ]
    assert panel.remark == "mean 75.0 %"


def test_a_device_and_2_metrics_of_the_host_are_3_panels_over_the_time_of_both():
    device = Timeline("", 0, 4 * S, (Lane("GPU 0", (0.0, 1.0)),))
    host = Timeline("", -2 * S, 8 * S, (Lane("CPU", (0.5, None), "16 cores"), Lane("memory", (0.1, 0.2), "42.1 GB")))
    found = use_of(device_use=device, host=host)
    assert isinstance(found, Curves)
    assert [(panel.axis.label, panel.full, panel.remark) for panel in found.panels] == [
        *(("GPU 0", "", "mean 50.0 %"), ("CPU", "16 cores", ""), ("memory", "42.1 GB", ""))
    ]
    assert (found.x.start, found.x.end) == (-2 * S, 8 * S)
    assert found.title == "Use of devices and the host over time"


def test_a_slice_begins_where_the_one_before_ends():
    found = use_of(device_use=Timeline("", 0, 4 * S, (Lane("GPU 0", (0.25, 1.0)),)))
    assert isinstance(found, Curves)
    assert found.panels[0].lines[0].points == (CurvePoint(0, 0.25), CurvePoint(2 * S, 1.0), CurvePoint(4 * S, None))


def test_of_18_lanes_16_are_drawn_and_the_rest_is_said():
    found = use_of(device_use=Timeline("", 0, S, tuple(Lane(f"GPU {n}", (0.5,)) for n in range(18))))
    assert isinstance(found, Curves)
    assert len(found.panels) == 16
    assert found.notes == ("2 more are left out.",)


def test_memory_of_a_device_is_called_so():
    memory = Timeline("", 0, S, (Lane("CUDA:0", (0.5,)),))
    found = use_of(device_use=Timeline("", 0, S, (Lane("GPU 0", (0.5,)),)), memory=memory)
    assert isinstance(found, Curves)
    assert [panel.axis.label for panel in found.panels] == ["GPU 0", "memory of CUDA:0"]
    assert (found.title, use_of(memory=memory).title) == ("Use of devices over time", "Use of device memory over time")


def test_devices_that_did_nothing_are_no_figure():
    nothing = NoFigure("neither devices nor the host were busy in it, or nobody sampled them")
    assert use_of() == nothing
    assert use_of(device_use=Timeline("", 0, S, (Lane("GPU 0", (0.0, None)),))) == nothing


COLUMNS = (
    *(Column("name", "Function"), Column("domain", "API"), Column("calls", "Calls", "count", additive=True)),
    *(Column("total_ns", "Total", "ns", additive=True), Column("share_of_api", "Share", "ratio", additive=True)),
)


def api_of(*rows):
    grid = Grid(
        COLUMNS, tuple((name, domain, calls, round(share * 100 * MS), share) for name, domain, calls, share in rows)
    )
    run = (Fact("source", "trace", "train.nsys-rep"),)
    return api(Report(run, Verdict(VerdictCode.NONE, ""), (Section("cuda_api", "", (grid,)),)))


def test_functions_below_1_percent_are_one_bar():
    found = api_of(
        *(("cudaMalloc", "runtime", 9, 0.01), ("cudaLaunchKernel", "runtime", 1_000, 0.973)),
        *(("cudaFree", "runtime", 3, 0.0099), ("cuInit", "driver", 1, 0.0071)),
    )
    assert isinstance(found, RankedBars)
    assert [bar.label for bar in found.bars] == ["cudaLaunchKernel", "cudaMalloc", "2 other functions"]
    assert [bar.value for bar in found.bars] == pytest.approx([0.973, 0.01, 0.017])
    assert [bar.detail for bar in found.bars] == ["97.3 ms in 1,000 calls", "1.00 ms in 9 calls", "1.70 ms in 4 calls"]
    assert found.subtitle == "1,013 calls, 100 ms on all threads, of train.nsys-rep"


def test_functions_of_one_name_in_two_apis_are_told_apart():
    found = api_of(("cudaFree", "runtime", 1, 0.6), ("cudaFree", "driver", 1, 0.4))
    assert isinstance(found, RankedBars)
    assert [bar.label for bar in found.bars] == ["cudaFree (runtime)", "cudaFree (driver)"]


def test_of_30_functions_with_3_percent_each_20_have_a_bar():
    found = api_of(*((f"f{n}", "runtime", 1, 1 / 30) for n in range(30)))
    assert isinstance(found, RankedBars)
    assert len(found.bars) == 21
    assert found.bars[-1].label == "10 other functions"


def test_a_trace_without_calls_has_no_such_figure():
    assert api_of() == NoFigure("no call of the device's API was recorded")
