"""Tables of a report as CSV (RFC 4180) for spreadsheets and plots: plain numbers in base units, named in the heading.

A comparison gives one table with a row for each side. A report, or named sections of a comparison, give every table in
turn, with an empty line between two. Tables that only programs read appear only where there are no others.
"""

from __future__ import annotations

import csv
import io
import re
from typing import ClassVar

from traceviz.render.options import RenderOptions, select
from traceviz.report import COMPARISON, Column, Grid, Report
from traceviz.units import Value
from traceviz.visible import visible

_EFFECT = "effect"
"""Section of a comparison with the table of its sides."""
_FOR_PEOPLE = frozenset({"interval"})
"""Columns that put figures into words; other columns of the table hold them as numbers."""
_UNITS = {"ns": "ns", "bytes": "bytes", "bytes/s": "bytes/s", "ratio": "ratio", "factor": "factor"}
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
        all_grids = [block for section in sections for block in section.blocks if isinstance(block, Grid)]
        grids = [grid for grid in all_grids if grid.audience == "all"] or all_grids
        return "\n".join(map(_table, grids[:1] if is_comparison else grids)) or "\n"


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
