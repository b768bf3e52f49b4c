"""The time of every step by class: what is drawn of three steps, of ranks, of thousands."""

from traceviz.render.figures.of_reports import steps
from traceviz.render.figures.registry import figure
from traceviz.render.figures.values import NoFigure, StackedBars
from traceviz.report import BY_STEP, EVERY_STEP, Bar, Bars, Column, Fact, Grid, Report, Section, Verdict
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
