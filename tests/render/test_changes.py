"""Columns of changes: signs, colours, bars on both sides of an axis; and tables as CSV."""

import csv
import io

import pytest

from traceviz.core.errors import UsageError
from traceviz.core.units import format_change
from traceviz.render.json import dumps, loads
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.render.rows import bar_ratios, shown_rows
from traceviz.render.terminal.blocks import bar_from_axis
from traceviz.report import COMPARISON, Column, Grid, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode

CHANGE = Column("difference_ns", "Change", "ns", 0, bar=True, signed=True, better="lower", additive=True)
SIDES = Grid(
    (Column("name", "Name", "text", 0), Column("base_ns", "Base", "ns", 0, additive=True), CHANGE),
    (("a", 9_000_000, -8_000_000), ("b", 1_000_000, 4_000_000), ("c", 0, 0), ("d", 5, None)),
)


def told(*grids, schema=COMPARISON, slug="effect"):
    return Report((), Verdict(VerdictCode.FASTER, "Faster."), (Section(slug, slug, grids),), schema=schema)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (-118_000_000, "ns", "−118 ms"),
        (1_200, "ns", "+1.20 µs"),
        (0, "ns", "0 ns"),
        (0.0, "ratio", "0.0 %"),
        (-0.665, "ratio", "−66.5 %"),
        (0.0001, "ratio", "+<0.1 %"),
        (-0.0001, "ratio", "−<0.1 %"),
        (-4_096, "bytes", "−4.10 kB"),
        (None, "ns", "-"),
        ("new", "ns", "new"),
    ],
)
def test_a_change_has_its_sign_and_no_change_none(value, unit, shown):
    assert format_change(value, unit) == shown


@pytest.mark.parametrize(
    ("change", "drawn"),
    [
        (-1.0, "████│"),
        (-0.5, "  ██│"),
        (-0.375, "  ▐█│"),
        (-0.001, "   ▕│"),
        (0.0, "    │"),
        (0.001, "    │▏"),
        (0.375, "    │█▌"),
        (1.0, "    │████"),
        (9.0, "    │████"),
    ],
)
def test_a_bar_of_9_cells_grows_from_the_axis_in_halves_of_a_cell(change, drawn):
    assert bar_from_axis(change, 9) == drawn


def test_bars_of_changes_are_of_the_largest_and_those_of_shares_of_1():
    assert bar_ratios(CHANGE, (-8, 4, None)) == (-1.0, 0.5, 0.0)
    assert bar_ratios(Column("s", "S", "ratio", bar=True), (0.5, 0.25)) == (0.5, 0.25)
    assert bar_ratios(Column("s", "S", "factor", bar=True), (4.0, 1.0)) == (1.0, 0.25)
    assert bar_ratios(CHANGE, (0, 0)) == (0.0, 0.0)


def test_a_page_of_80_columns_shows_4_changes_with_sign_and_bar():
    lines = renderer("terminal").render(told(SIDES), RenderOptions(80)).splitlines()
    assert lines[-5:] == [
        "  Name     Base  Change",
        "  a     9.00 ms  −8.00 ms ████│",
        "  b     1.00 ms  +4.00 ms     │██",
        "  c        0 ns      0 ns     │",
        "  d        5 ns      -        │",
    ]


def test_a_gain_is_green_and_a_loss_red_besides_their_signs():
    text = renderer("terminal").render(told(SIDES), RenderOptions(80, color=True))
    gain, loss = (next(line for line in text.splitlines() if sign in line) for sign in ("−8.00", "+4.00"))
    assert "\x1b[32m−8.00 ms\x1b[0m" in gain
    assert "\x1b[31m+4.00 ms\x1b[0m" in loss


def test_markdown_has_2_signs():
    text = renderer("markdown").render(told(SIDES), RenderOptions())
    assert "| a | 9.00 ms | −8.00 ms |" in text
    assert "| b | 1.00 ms | +4.00 ms |" in text
    assert text.startswith("# Comparison\n")


def test_a_complete_table_of_30_rows_shows_30_whatever_top_says():
    many = Grid(SIDES.columns, SIDES.rows[:1] * 30, complete=True)
    assert len(shown_rows(many, 3).rows) == 30
    assert len(shown_rows(Grid(SIDES.columns, SIDES.rows[:1] * 30), 3).rows) == 3


def test_changes_that_are_not_shown_are_summed():
    rest = shown_rows(Grid(SIDES.columns, (("a", 1, -4),) * 5), 3).rest
    assert rest == (None, 2, -8)


def test_shares_of_several_wholes_are_not_summed():
    columns = (
        Column("thread", "Thread"),
        Column("time_ns", "Time", "ns"),
        Column("of_thread", "", "ratio", bar=True, additive=False),
    )
    rest = shown_rows(Grid(columns, (("a", 1, 0.9),) * 5), 3).rest
    assert rest == (None, None, None)
    of_one = (*columns[:2], Column("of_steps", "", "ratio", bar=True))
    assert shown_rows(Grid(of_one, (("a", 1, 0.2),) * 5), 3).rest == (None, None, 0.4)


def test_columns_of_changes_and_complete_tables_come_back_from_json():
    report = told(Grid(SIDES.columns, SIDES.rows, complete=True), schema="traceviz.report/1")
    assert loads(dumps(report)) == report
    assert '"signed"' not in dumps(told(Grid(SIDES.columns[:2], ())))


@pytest.mark.parametrize(("key", "value"), [("signed", 1), ("better", "more"), ("better", None)])
def test_a_column_with_another_sign_is_refused(key, value):
    text = dumps(told(SIDES, schema="traceviz.report/1"))
    before = {"signed": '"signed": true', "better": '"better": "lower"'}[key]
    stated = {1: "1", "more": '"more"', None: "null"}[value]
    with pytest.raises(Exception, match=rf"columns\[2\].{key}`"):
        loads(text.replace(before, f'"{key}": {stated}'))


def parsed(text):
    return [list(csv.reader(io.StringIO(part))) for part in text.split("\n\n")]


def test_csv_of_a_comparison_is_1_table_of_plain_numbers_with_units_in_the_heading():
    machine = Grid((Column("secret", "Secret"),), (("x",),), audience="machine")
    speedup = Grid((Column("side", "Side"), Column("median_ns", "M", "ns"), Column("speedup", "S", "factor")), ())
    rows = (("a, b", 1.5, 2.0), ("c", None, 0.5))
    effect = Grid(speedup.columns, rows)
    text = renderer("csv").render(told(machine, effect, SIDES), RenderOptions(top=1))
    assert parsed(text) == [[["side", "median_ns", "speedup [factor]"], ["a, b", "1.5", "2.0"], ["c", "", "0.5"]]]


def test_csv_of_sections_that_are_named_and_of_reports_is_all_their_tables():
    report = told(SIDES, SIDES)
    assert len(parsed(renderer("csv").render(report, RenderOptions(sections=("effect",))))) == 2
    assert len(parsed(renderer("csv").render(told(SIDES, SIDES, schema="traceviz.report/1"), RenderOptions()))) == 2
    with pytest.raises(UsageError, match="'kernels'"):
        renderer("csv").render(report, RenderOptions(sections=("kernels",)))


def test_csv_has_figures_of_a_run_in_base_units_beside_the_tables_of_other_sections():
    words = Grid((Column("shown", "Value"),), (("9.00 s",),))
    numbers = Grid((Column("value", "Value", "number"),), ((9e9,),), "measures", audience="machine")
    hidden = Grid((Column("metric", "Metric"),), (("x",),), audience="machine")
    sections = (Section("measures", "", (numbers, words)), Section("host", "", (hidden, words)))
    tables = parsed(renderer("csv").render(Report((), Verdict(VerdictCode.NONE, ""), sections), RenderOptions()))
    assert [table[:2] for table in tables] == [[["value"], ["9000000000.0"]], [["shown"], ["9.00 s"]]]


def test_csv_runs_no_formula():
    names = ("=1+1", "+cmd|x", "-2+3+cmd|x", "@SUM(1)", "+1.5, −2 %", "plain", "two\nlines")
    grid = Grid((Column("name", "Name"),), tuple((name,) for name in names))
    (table,) = parsed(renderer("csv").render(told(grid), RenderOptions()))
    assert [row[0] for row in table[1:]] == [
        *("'=1+1", "'+cmd|x", "'-2+3+cmd|x", "'@SUM(1)", "+1.5, −2 %", "plain", "two␊lines")
    ]
