"""Tables of a report as CSV (RFC 4180) for spreadsheets and plots: plain numbers in base units, named in the heading.

A comparison gives one table with a row for each side. A report, or named sections of a comparison, give all tables,
with an empty line between two. Tables for programs appear only if there are no others.
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
_OF_WORDS = frozenset({"cross", MEASURES})
"""Sections whose tables mix text with numbers; their tables for programs hold the same data as rows."""
_UNITS = {"ns": "ns", "bytes": "bytes", "bytes/s": "bytes/s", "joule": "J", "ratio": "ratio", "factor": "factor"}
"""Units that a heading names; other units are plain numbers and text."""
_FORMULA = re.compile(r"[=@]|[+\-](?![\d.,+\-− %]*$)")
"""Text that a spreadsheet interprets as a formula; a signed number is not."""


class CsvRenderer:
    """All rows and columns as CSV; width, colour and row limit have no effect."""

    name: ClassVar[str] = "csv"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the tables, each with its heading; a single newline if there is none."""
        is_comparison = report.schema == COMPARISON and options.sections is None
        sections = select(report, (_EFFECT,) if is_comparison else options.sections).sections
        all_grids = [(section.slug, grid) for section in sections for grid in _grids(section)]
        shown = [grid for slug, grid in all_grids if grid.audience == "all" or slug in _OF_WORDS]
        grids = shown or [grid for _, grid in all_grids]
        return "\n".join(map(_table, grids[:1] if is_comparison else grids)) or "\n"


def _grids(section: Section) -> list[Grid]:
    """Return the tables of a section; if they mix text with numbers, its tables for programs, if any."""
    grids = [block for block in section.blocks if isinstance(block, Grid)]
    of_machines = [grid for grid in grids if grid.audience == "machine"]
    return of_machines if section.slug in _OF_WORDS and of_machines else grids


def _table(grid: Grid) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    positions = [position for position, column in enumerate(grid.columns) if not column.restates]
    writer.writerow(_heading(grid.columns[position]) for position in positions)
    writer.writerows([_cell(row[position]) for position in positions] for row in grid.rows)
    return text.getvalue()


def _heading(column: Column) -> str:
    """Return ``median_ns`` or ``speedup [factor]``: the name, with its unit unless it already ends with it."""
    name, unit = visible(column.name), _UNITS.get(column.unit)
    return name if unit is None or name.endswith(unit) else f"{name} [{unit}]"


def _cell(value: Value) -> Value:
    """Return numbers unchanged, and text with an apostrophe before anything that a spreadsheet would execute."""
    if not isinstance(value, str):
        return value
    shown = visible(value).strip()
    return f"'{shown}" if _FORMULA.match(shown) else shown
