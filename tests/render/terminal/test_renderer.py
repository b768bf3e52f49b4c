"""The terminal page fits, lines up, and needs no colour to be read."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.render.report_strategies import REPORTS
from tests.render.sample_report import sample_report
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import (
    Bar,
    Bars,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Lane,
    Report,
    Section,
    Severity,
    Timeline,
    Verdict,
)
from traceviz.testing import HOSTILE_NAMES, hostile_report

pytestmark = pytest.mark.process

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def render(report, width=80, **options):
    return renderer("terminal").render(report, RenderOptions(width, **options))


def page_of(*blocks, width=80, **options):
    """Return the lines below the section's heading."""
    report = Report((), Verdict("v", "Verdict."), (Section("s", "S", blocks),))
    return render(report, width, **options).splitlines()[3:]


def too_wide(text, width):
    return [line for line in text.splitlines() if cell_len(line) > width]


@given(report=REPORTS, width=st.integers(40, 200))
@settings(max_examples=50)
@example(report=sample_report(), width=40)
@example(report=sample_report(), width=200)
def test_no_line_is_wider_than_the_page(report, width):
    assert too_wide(render(report, width), width) == []


@pytest.mark.parametrize("width", [40, 57, 60, 79, 100, 200])
@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_names_fit(name, width):
    assert too_wide(render(hostile_report(name), width), width) == []


@pytest.mark.parametrize("width", range(40, 201, 7))
def test_the_sample_report_fits_and_ends_no_line_in_spaces(width):
    text = render(sample_report(), width)
    assert too_wide(text, width) == []
    assert [line for line in text.splitlines() if line.endswith(" ")] == []


def test_a_page_below_40_cells_is_laid_out_for_40():
    assert render(sample_report(), 12) == render(sample_report(), 40)


def test_without_colour_there_is_no_escape_and_with_colour_only_the_styles_differ():
    plain, styled = render(sample_report()), render(sample_report(), color=True)
    assert "\x1b" not in plain
    assert len(ANSI.findall(styled)) > 100
    words = re.compile(r"[\w.]+")
    assert words.findall(ANSI.sub("", styled)) == words.findall(plain)


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_coloured_output_holds_no_escape_but_its_own_styles(name):
    assert "\x1b" not in ANSI.sub("", render(hostile_report(name), color=True))


def test_the_environment_changes_nothing(monkeypatch):
    plain, styled = render(sample_report()), render(sample_report(), color=True)
    for variable in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "COLORTERM"):
        monkeypatch.setenv(variable, "1")
    assert (render(sample_report()), render(sample_report(), color=True)) == (plain, styled)


def test_the_headline_comes_first_then_the_bar_and_findings_come_after_9_sections():
    lines = render(sample_report()).splitlines()
    assert lines[3:6] == [
        "▌ Input-bound: steps wait for data 66.7 % of their time",
        '▌ Up to 3.0× faster; start at "Data loading"',
        "▌ Steady steps are 49.8 % of the captured time.",
    ]
    headings = [line.split(" ─")[0] for line in lines if "───" in line and line[0] != " "]
    assert headings[:2] == ["Where the steps' time went", "Capture"]
    assert headings[10:] == ["Findings", "Notes"]


def test_advice_is_given_once_however_many_findings_have_it():
    first = Finding("TV101", "input-bound", Severity.ERROR, "Waits.", (), ("More workers.", "Cache."), 9, 0.5, "steps")
    second = Finding("TV108", "loader", Severity.INFO, "Loads alone.", (), ("More workers.", "Keep them."), 0)
    third = Finding("TV109", "late", Severity.INFO, "Late.", (), ("Keep them.",), 0)
    page = render(Report((), Verdict("v", "Verdict."), (), (first, second, third)))
    assert [page.count(words) for words in ("More workers.", "Cache.", "Keep them.")] == [1, 1, 1]


def test_columns_give_way_by_importance_and_9_is_never_shown():
    columns = (
        Column("name", "Name", "text", 0),
        Column("m", "Machine", "text", 9),
        Column("c", "Third", "text", 3),
        Column("b", "Second", "text", 2),
        Column("a", "First", "count", 1),
    )
    grid = Grid(columns, (("n" * 30, "m", "c" * 20, "b" * 20, 12),))
    assert page_of(grid, width=160)[0].split() == ["Name", "Third", "Second", "First"]
    assert page_of(grid, width=70)[0].split() == ["Name", "Third", "Second", "First"]
    assert page_of(grid, width=50)[0].split() == ["Name", "Second", "First"]
    assert page_of(grid, width=40)[0].split() == ["Name", "Second", "First"]


def test_kernel_names_keep_their_start_and_end():
    name = "void ns::gemm_kernel<" + "int, " * 40 + "last_functor>(int, char*)"
    line = page_of(Grid((Column("k", "Kernel"), Column("t", "Total", "ns", 0)), ((name, 1_500),)), width=60)[1]
    assert line == "  gemm_kernel<int, int, int, i…, int, last_functor>  1.50 µs"


def test_names_that_differ_late_are_told_apart():
    start = "void at::native::elementwise_kernel<(int)128, (int)2, void at::native::gpu_kernel_impl_nocast<at::native::"
    end = ">(at::TensorIteratorBase &)::[lambda(int) (instance 1)]>(int, T3)"
    names = [
        f"{start}{what}<float, float, float, at::native::Loader<float>>{end}" for what in ("Multiply", "Copy", "Add")
    ]
    lines = page_of(Grid((Column("k", "Kernel"),), tuple((name,) for name in names)), width=42)
    assert lines[1:] == [
        "  elementwise_kern…Multiply<float, float,…",
        "  elementwise_kern…Copy<float, float, flo…",
        "  elementwise_kern…Add<float, float, floa…",
    ]


def test_numbers_line_up_with_units_of_their_own_column():
    grid = Grid(
        (Column("n", "Name"), Column("t", "Total", "ns")), (("a", 1_500_000), ("b", 45_000_000_000), ("c", None))
    )
    assert page_of(grid) == ["  Name    Total", "  a     1.50 ms", "  b     45.0 s", "  c        -"]


def test_ten_rows_are_shown_and_the_other_three_are_summed():
    columns = (
        Column("n", "Name"),
        Column("total_ns", "Total", "ns", additive=True),
        Column("x", "Mean", "ns"),
        Column("s", "Share", "ratio", bar=True),
    )
    grid = Grid(columns, tuple((f"k{i}", 1_000, 5, 1 / 13) for i in range(13)))
    lines = page_of(grid)
    assert len(lines) == 12
    assert lines[-1] == "  other (3)  3.00 µs        23.1 % █▉"


def test_small_trailing_rows_fold_and_an_explicit_top_unfolds_them():
    columns = (Column("n", "Name"), Column("s", "Share", "ratio", bar=True))
    grid = Grid(
        columns,
        tuple((f"k{i}", share) for i, share in enumerate((0.9, 0.05, 0.03, 0.009, 0.007, 0.004))),
        fold_below=0.01,
    )
    assert page_of(grid)[-1] == "  other (3)   2.0 % ▏"
    assert len(page_of(grid, top=6)) == 7


def test_rows_that_are_no_parts_of_a_whole_are_counted_and_not_summed():
    grid = Grid(
        (Column("n", "Name"), Column("total_ns", "Total", "ns", additive=True)), tuple(("r", 7) for _ in range(47))
    )
    assert page_of(grid, top=5)[-1] == "  … and 42 more"


def test_a_table_that_one_more_row_completes_is_shown_whole():
    grid = Grid((Column("n", "Name"),), tuple((f"r{i}",) for i in range(11)))
    assert page_of(grid)[-1] == "  r10"


def test_parts_of_a_bar_have_their_own_fill_without_colour():
    parts = tuple(Bar(str(i), f"part {i}", 25, 0.25) for i in range(4))
    lines = page_of(Bars("Time", "4 steps", "count", (*parts, Bar("z", "zero", 0, 0.0))), width=48)
    assert lines == [
        "  Time, share of 4 steps",
        "  " + "█" * 12 + "░" * 12 + "▓" * 11 + "╱" * 11,
        "  █ part 0  25  25.0 %  ▓ part 2  25  25.0 %",
        "  ░ part 1  25  25.0 %  ╱ part 3  25  25.0 %",
        "  none: zero",
    ]


def test_a_timeline_tells_idle_from_unmeasured():
    line, axis = page_of(Timeline("", 0, 4_000_000_000, (Lane("GPU 0", (None, 0.0, 0.5, 1.0)),)), width=43)
    assert line == "  GPU 0 ▕······      ▄▄▄▄▄▄██████▏   50.0 %"
    assert axis.split() == ["0", "s", "4.00", "s"]


def test_a_lane_with_an_amount_ends_with_that_of_its_full_height():
    (line, _) = page_of(Timeline("", 0, 1, (Lane("memory", (0.5, 1.0), "553 MB"),)), width=40)
    assert line.endswith("▏   553 MB")


def test_a_time_axis_from_minus_4_seconds_on_names_0_and_round_times_in_their_cells():
    lines = page_of(Timeline("", -4_000_000_000, 9_000_000_000, (Lane("CPU", (1.0,) * 60),)), width=100)
    first, axis = lines[0].index("▕") + 1, lines[-1]
    assert axis.split() == ["−4.00", "s", "0", "s", "5.00", "s", "9.00", "s"]
    slices = lines[0].index("▏") - first
    assert axis.index("0 s", 10 + first) - first == 4 * slices // 13


def test_facts_stand_in_two_columns_where_they_fit():
    facts = Facts((Fact("a", "busy", 1_500, "ns"), Fact("b", "calls", 12, "count"), Fact("c", "idle", None, "ns")))
    assert page_of(facts) == ["  busy  1.50 µs    calls  12", "  idle  -"]
    assert page_of(Facts((*facts.facts, Fact("d", "w" * 30, "x" * 30))), width=60)[:2] == [
        f"  {'busy':26}  1.50 µs",
        f"  {'calls':26}  12",
    ]


def test_a_fact_of_10000_characters_takes_3_lines():
    lines = page_of(Facts((Fact("a", "marker", "x" * 10_000), Fact("b", "calls", 12, "count"))))
    assert len(lines) == 3 + 1
    assert lines[-1] == "  calls   12"


def test_a_number_is_not_parted_from_its_unit():
    report = Report((), Verdict("v", "The device waits for as many as " + "1.5 ms " * 12))
    assert [
        line for line in render(report, 40).splitlines() if re.search(r"\d$", line) or line.startswith("▌ ms")
    ] == []
