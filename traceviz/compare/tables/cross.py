"""Cross tables of two tags: rows of the one, columns of the other, a figure in each cell, and its speed-up.

::

    model        tensorflow   pytorch   paddle
    alexnet          120 ms     98 ms   crashed: out of memory
    resnet50         310 ms    280 ms   295 ms
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traceviz.compare.compare import Comparison
from traceviz.compare.options import Against
from traceviz.compare.sides.basis import cell as how_it_ended
from traceviz.compare.sides.basis import failures
from traceviz.compare.sides.by_tags import OF_WORK, tag_label
from traceviz.compare.sides.sides import Side
from traceviz.compare.sides.units_of_work import is_batch
from traceviz.compare.tables.differences import UNCLEAR, Difference, difference
from traceviz.compare.tables.figures import Figure, Known, Values, group_sides, in_order, label_of, stopped_runs
from traceviz.core.units import Unit, Value, format_value
from traceviz.report import TAG, Block, Column, Grid, Prose, Row, Section

CROSS = "cross"
_WIDTH = 76
"""Character cells that a table may take on a page of 80 columns. Columns that do not fit follow below."""
_GAP = 2


@dataclass(frozen=True, slots=True)
class Cross:
    """A cross table.

    Args:
        comparison: The sides.
        tags: Tag of the rows, and tag of the columns.
        rest: Other tags, and their values in this table.
        figure: The figure in the cells.
        against: The cell that each is compared with; ``none`` if cells do not compare.
        cells: Sides by the values of both tags.
    """

    comparison: Comparison
    tags: tuple[str, str]
    rest: tuple[Sequence[str], Values]
    figure: Figure
    against: Against
    cells: Mapping[tuple[str, str], Side]

    @property
    def base(self) -> tuple[str, str]:
        """Values of the base of the comparison."""
        of_base = self.comparison.sides[0].groups
        row, column = self.tags
        return of_base.get(row, ""), of_base.get(column, "")

    @property
    def rows(self) -> list[str]:
        """Values of the tag of the rows, in order."""
        return in_order((row for row, _ in self.cells), self.base[0])

    @property
    def columns(self) -> list[str]:
        """Values of the tag of the columns, in order."""
        return in_order((column for _, column in self.cells), self.base[1])

    def reference(self, row: str, column: str) -> Side | None:
        """Return the side that a cell is compared with; ``None`` if there is none."""
        of_row, of_column = self.base
        places = {"row": (row, of_column), "column": (of_row, column), "all": (of_row, of_column)}
        return self.cells.get(places[self.against]) if self.against in places else None

    def difference(self, row: str, column: str) -> Difference:
        """Compare a cell with its reference."""
        side, reference = self.cells.get((row, column)), self.reference(row, column)
        if side is None or reference is None:
            return Difference()
        return difference(self.comparison, self.figure, reference, side)

    @property
    def against_words(self) -> str:
        """Text for the reference: ``against batch=32 of the same row``."""
        row, column = map(tag_label, self.tags, self.base)
        words = {"row": f"{column} of the same row", "column": f"{row} of the same column", "all": f"{row}, {column}"}
        return f"against {words[self.against]}"


def cross_section(comparison: Comparison) -> Section:
    """Return the tables of all requested figures, one for each combination of the values of further tags.

    Raises:
        UsageError: no side has a requested figure.
    """
    tables = comparison.options.tables
    figures = Known(comparison).chosen(tables.measures)
    first, second, *rest = comparison.by
    blocks: list[Block] = []
    for figure in figures:
        against = tables.against or _default_reference(comparison, figure)
        for values, sides in group_sides(comparison, rest).items():
            cells = {(side.groups.get(first, ""), side.groups.get(second, "")): side for side in sides}
            cross = Cross(comparison, (first, second), (rest, values), figure, against, cells)
            blocks += _blocks(cross)
    blocks += [Prose(text) for text in stopped_runs(figures[0], comparison.sides)]
    return Section(CROSS, f"{first} × {second}", tuple(blocks))


def _default_reference(comparison: Comparison, figure: Figure) -> Against:
    """Return the default reference of cells. Tag values that stand for different work are not compared."""
    per_step = figure.name == "step" and not comparison.options.per
    row, column = (tag.lower() in OF_WORK or (per_step and is_batch(tag)) for tag in comparison.by[:2])
    choices: dict[tuple[bool, bool], Against] = {(False, False): "all", (True, False): "row", (False, True): "column"}
    return choices.get((row, column), "none")


def _blocks(cross: Cross) -> Iterator[Block]:
    where = f"{label_of(*cross.rest)}: " if cross.rest[0] else ""
    figure = cross.figure
    values = {place: _cell(figure, side) for place, side in cross.cells.items()}
    yield from _grids(cross, values, figure.unit, f"{where}{figure.label}")
    found = {place: cross.difference(*place) for place in cross.cells}
    factors: dict[tuple[str, str], Value] = {place: one.why_not or one.factor for place, one in found.items()}
    compared = (factors[place] for place, side in cross.cells.items() if side is not cross.reference(*place))
    if figure.has_factor and any(factor is not None for factor in compared):
        name = "speed-up" if figure.is_speed else "times as good"
        yield from _grids(cross, factors, "factor", f"{where}{name}, {cross.against_words}")
        if UNCLEAR in factors.values():
            yield Prose("unclear: the difference may well be chance; more steps, or more runs, would tell.")
    yield _every_cell(cross, found)


def _cell(figure: Figure, side: Side) -> Value:
    """Return the figure of a side; if it has none, how its runs ended."""
    middle = figure.typical(side)
    return middle if middle is not None else how_it_ended(side) or None


def _grids(cross: Cross, values: Mapping[tuple[str, str], Value], unit: Unit, title: str) -> Iterator[Grid]:
    """Yield a table, or several if its columns do not fit side by side."""
    row_tag, column_tag = cross.tags
    room = _WIDTH - max(len(text) for text in (row_tag, *cross.rows))
    for columns in _fit_columns(cross, values, unit, room):
        heads = (
            Column(f"{TAG}{row_tag}", row_tag, "text", 0),
            *(Column(f"{column_tag}={column}", tag_label(column_tag, column), unit, 0) for column in columns),
        )
        rows: tuple[Row, ...] = tuple((row, *(values.get((row, column)) for column in columns)) for row in cross.rows)
        yield Grid(heads, rows, title, complete=True)


def _fit_columns(cross: Cross, values: Mapping[tuple[str, str], Value], unit: Unit, room: int) -> Iterator[list[str]]:
    """Yield the columns in groups that fit side by side."""
    group: list[str] = []
    left = room
    for column in cross.columns:
        texts = [format_value(values.get((row, column)), unit) for row in cross.rows]
        width = _GAP + max(len(text) for text in (*texts, *tag_label(cross.tags[1], column).split()))
        if group and width > left:
            yield group
            group, left = [], room
        group.append(column)
        left -= width
    yield group


EVERY_CELL = (
    Column("measure", "Measure"),
    Column("runs", "Runs", "count"),
    Column("stopped", "Runs that did not end by themselves", "count"),
    Column("ended", "How they ended"),
)


def _every_cell(cross: Cross, found: Mapping[tuple[str, str], Difference]) -> Grid:
    """Return a row for each cell, for machines: values, intervals, and how runs ended."""
    figure, (rest, rest_values) = cross.figure, cross.rest
    unit = figure.unit
    columns = (
        *(Column(f"{TAG}{tag}", tag) for tag in (*cross.tags, *rest)),
        *EVERY_CELL,
        *(Column(name, name, unit) for name in ("value", "low", "high")),
        Column("against", "Against"),
        *(Column(name, name, "factor") for name in ("speedup", "speedup_low", "speedup_high")),
    )
    places = [(row, column) for row in cross.rows for column in cross.columns if (row, column) in cross.cells]
    rows = []
    for place in places:
        side, reference = cross.cells[place], cross.reference(*place)
        value = figure.value(side)
        rows.append(
            (
                *(*place, *rest_values),
                *(figure.name, len(side.reports), failures(side).total(), "; ".join(failures(side)) or None),
                value and value.typical,
                *((value and value.interval) or (None, None)),
                reference and reference.label,
                found[place].factor,
                *(found[place].interval or (None, None)),
            )
        )
    return Grid(columns, tuple(rows), "every cell", audience="machine")
