"""Tables of a page: the order of columns, rare columns, names on one line, links, and differences in points."""

from __future__ import annotations

from tests.render.html.pages import parsed
from traceviz.render.figures.values import Axis, CurvePoint, Line, Panel
from traceviz.render.html.components.blocks import GridStyle, grid
from traceviz.render.html.drawn import is_level
from traceviz.render.rows import cell_text, rare_columns
from traceviz.report import Column, Grid

PAGE = GridStyle(slug="kernels", has_script=True, codes=frozenset({"TV504"}))
NAME = Column("name", "Kernel", "text", 0)


def table(columns, *rows, style=PAGE):
    return parsed(str(grid(Grid(columns, rows), style)))


def test_the_column_that_names_rows_comes_first():
    columns = (Column("status", "Is", "text", 2), NAME, Column("calls", "Calls", "count"))
    root = table(columns, ("new", "gemm", 3))
    assert [head.text() for head in root.find("th", scope="col")] == ["Kernel", "Is", "Calls"]
    assert root.one("th", scope="row").text() == "gemm"


def test_a_table_that_starts_with_a_time_keeps_its_order():
    columns = (Column("start_ns", "Start", "ns", 1), NAME)
    assert [head.text() for head in table(columns, (5, "gemm")).find("th", scope="col")] == ["Start", "Kernel"]


def test_columns_of_importance_4_and_more_are_rare_if_there_are_two():
    shown = NAME, Column("mean_ns", "Mean", "ns", 3)
    rare = Column("max_ns", "Max", "ns", 4), Column("min_ns", "Min", "ns", 5)
    assert rare_columns((*shown, *rare)) == {2, 3}
    assert rare_columns((*shown, rare[0])) == frozenset()
    root = table((*shown, *rare), ("gemm", 1, 2, 3))
    assert [head.text() for head in root.find("th", class_="tv-rare")] == ["Max", "Min"]
    without = table((*shown, *rare), ("gemm", 1, 2, 3), style=GridStyle())
    assert without.find("th", class_="tv-rare") == []


def test_long_names_are_on_one_line_that_shows_their_difference_and_hold_all_of_the_text():
    names = [f"void vectorized_elementwise_kernel_with_a_long_name<4, {kind}, 3>" for kind in ("Add", "Multiply")]
    spans = table((NAME,), *((name,) for name in names)).find("span", class_="tv-name")
    assert [span.attributes["title"] for span in spans] == names
    shown = [span.text() for span in spans]
    assert ["Add" in shown[0], "Multiply" in shown[1], max(map(len, shown)) <= 44] == [True, True, True]


def test_sentences_keep_all_of_their_words():
    said = "what the devices did was recorded and everything else can only be guessed"
    assert table((NAME,), (said,)).one("th", scope="row").text() == said


def test_a_code_of_a_finding_of_the_page_is_a_link():
    column = Column("evidence", "Evidence", "text", 0)
    links = table((column,), ("TV504",), ("TV101",), ("see TV504",)).find("a")
    assert [(link.text(), link.attributes["href"]) for link in links] == [("TV504", "#finding-TV504")]


def test_differences_of_shares_are_in_points():
    points = Column("share_difference", "Points", "ratio", signed=True)
    assert [cell_text(value, points) for value in (0.032, -0.5, 0.0001, 0, None)] == [
        "+3.2",
        "−50.0",
        "0.0",
        "0.0",
        "-",
    ]
    assert cell_text(0.032, Column("ratio", "Of base", "ratio", signed=True)) == "+3.2 %"


def curve(*values, unit="ratio"):
    points = tuple(CurvePoint(at, value) for at, value in enumerate(values))
    return Panel(Axis("use", unit), (Line("a", "a", points),))


def test_curves_within_2_percent_of_their_axis_are_level():
    assert [is_level(curve(0.5, 0.519)), is_level(curve(0.5, 0.521))] == [True, False]
    assert [is_level(curve(1000, 1020, unit="bytes")), is_level(curve(1000, 1030, unit="bytes"))] == [True, False]
    assert [is_level(curve(0.5)), is_level(curve(0.0, None, 0.0))] == [False, True]
