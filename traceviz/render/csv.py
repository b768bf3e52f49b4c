"""Tables of a report as CSV (RFC 4180) for spreadsheets and plots: plain numbers in base units, named in the heading.

A comparison gives one table with a row for each side. A report, or named sections of a comparison, give every table in
turn, with an empty line between two. Tables that only programs read appear only where there are no others.
"""

from __future__ import annotations

import csv
import io
import re
from typing import ClassVar

from traceviz.core.sanitize import visible
from traceviz.core.units import Value
from traceviz.render.options import RenderOptions, select
from traceviz.report import COMPARISON, MEASURES, Column, Grid, Report, Section

_EFFECT = "effect"
"""Section of a comparison with the table of its sides."""
_FOR_PEOPLE = frozenset({"interval"})
"""Columns that put figures into words; other columns of the table hold them as numbers."""
_OF_WORDS = frozenset({"cross", MEASURES})
"""Sections whose tables have words between the numbers: those for machines have the same in rows."""
_UNITS = {"ns": "ns", "bytes": "bytes", "bytes/s": "bytes/s", "joule": "J", "ratio": "ratio", "factor": "factor"}
"""Units that a heading names; the others are plain numbers and words."""
_FORMULA = re.compile(r"[=@]|[+\-](?![\d.,+\-− %]*$)")
"""Text that a spreadsheet takes for a formula; a number with a sign is not."""


class CsvRenderer:
    """Complete rows and columns; width, colour and row limit do not matter."""

    name: ClassVar[str] = "csv"

    def render(self, report: Report, options: RenderOptions) -> str:
        """The tables, each with its heading; a lone newline where there is none."""
        is_comparison = report.schema == COMPARISON and options.sections is None
        sections = select(report, (_EFFECT,) if is_comparison else options.sections).sections
        all_grids = [(section.slug, grid) for section in sections for grid in _grids(section)]
        shown = [grid for slug, grid in all_grids if grid.audience == "all" or slug in _OF_WORDS]
        grids = shown or [grid for _, grid in all_grids]
        return "\n".join(map(_table, grids[:1] if is_comparison else grids)) or "\n"


def _grids(section: Section) -> list[Grid]:
    """Tables of a section; of one with words between its numbers those for machines, where it has any."""
    grids = [block for block in section.blocks if isinstance(block, Grid)]
    of_machines = [grid for grid in grids if grid.audience == "machine"]
    return of_machines if section.slug in _OF_WORDS and of_machines else grids


def _table(grid: Grid) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    positions = [position for position, column in enumerate(grid.columns) if column.name not in _FOR_PEOPLE]
    writer.writerow(_heading(grid.columns[position]) for position in positions)
    writer.writerows([_cell(row[position]) for position in positions] for row in grid.rows)
    return text.getvalue()


def _heading(column: Column) -> str:
    """``median_ns``, ``speedup [factor]``: the unit, where the name does not end with it."""
    name, unit = visible(column.name), _UNITS.get(column.unit)
    return name if unit is None or name.endswith(unit) else f"{name} [{unit}]"


def _cell(value: Value) -> Value:
    """Numbers as they are, nothing for what was not measured; an apostrophe before what a spreadsheet would run."""
    if not isinstance(value, str):
        return value
    shown = visible(value).strip()
    return f"'{shown}" if _FORMULA.match(shown) else shown
