"""A section worked by hand: a small trace, and every fact and every cell that the section shows of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pytest

from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.registry import entries
from traceviz.report import Bars, Facts, Grid, Section, Skipped
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

Figures = dict[str, dict[str, Any]]
"""By title of the block, ``facts`` for those that stand outside of grids: by key the value, or the whole column."""


def figures_of(section: Section) -> Figures:
    """Return every figure of a section: facts, columns of grids, values of bars."""
    found: Figures = {"facts": {}}
    for block in section.blocks:
        if isinstance(block, Facts):
            found["facts"] |= {fact.key: fact.value for fact in block.facts}
        elif isinstance(block, Grid):
            names = [column.name for column in block.columns]
            columns = dict(zip(names, map(list, zip(*block.rows, strict=True)), strict=False))
            found[block.title] = {**found.get(block.title, {}), **(columns or {name: [] for name in names})}
        elif isinstance(block, Bars):
            bars = {"key": [bar.key for bar in block.bars], "value": [bar.value for bar in block.bars]}
            found[block.title] = {**found.get(block.title, {}), **bars}
    return found


def section_of(slug: str, tables: TraceTables) -> Section | None:
    """Return the section of an analysis of these tables; None if it is skipped."""
    analysis = entries([slug])[0].load()
    result = analysis.run(TraceView(tables))
    return None if isinstance(result, Skipped) else analysis.describe(result)


@dataclass(frozen=True)
class Literal:
    """A trace and the expected contents of its section.

    Args:
        slug: Slug of the section.
        tables: The trace, see :func:`tests.analyses.builders.tables`.
        expected: Every fact and every column of every grid, by title of the grid; comments show the displayed values.
        of_one_row: Numbers to which no second row can contribute, with the reason: ``"title/column": "why"``, or of all
            columns of a grid ``"title": "why"``.
        name: Name that distinguishes it from others of its section.
    """

    slug: str
    tables: TraceTables
    expected: Figures
    of_one_row: Mapping[str, str] = field(default_factory=dict)
    name: str = ""

    @cached_property
    def figures(self) -> Figures:
        """Return the figures of the section."""
        section = section_of(self.slug, self.tables)
        assert section is not None
        return figures_of(section)

    def check(self) -> None:
        """Check that every figure is as calculated by hand, and that none is missing."""
        assert self.figures.keys() == self.expected.keys()
        for title, expected in self.expected.items():
            assert self.figures[title] == {key: _near(value) for key, value in expected.items()}, title

    def names(self) -> set[str]:
        """Return ``title/key`` of every figure that has a value."""
        return {
            f"{title}/{key}" for title, found in self.expected.items() for key, value in found.items() if _says(value)
        }

    def stands_on_one_row(self) -> set[str]:
        """Return the numbers of :meth:`rows_behind` with fewer than two rows, as :attr:`of_one_row` names them."""
        names = (name for name, rows in self.rows_behind().items() if rows < 2)
        return {title if (title := name.rpartition("/")[0]) in self.of_one_row else name for name in names}

    def rows_behind(self) -> dict[str, int]:
        """By ``title/key`` of every number, how many rows of the trace change it when each is left out; 2: or more.

        Of a grid only what keeps its rows counts: that a row of the grid goes where its only event does says nothing
        about how the others are made.
        """
        counts = {name: 0 for name, value in _numbers(self.figures)}
        for reduced in _each_row_left_out(self.tables):
            if all(rows >= 2 for rows in counts.values()):
                break
            section = section_of(self.slug, reduced)
            left = dict(_numbers(figures_of(section))) if section is not None else {}
            for name, value in _numbers(self.figures):
                other = left.get(name)
                is_same_shape = not isinstance(value, list) or (isinstance(other, list) and len(other) == len(value))
                counts[name] += other is not None and is_same_shape and other != value
        return counts


def _near(value: Any) -> Any:
    """Ratios of whole numbers are compared to the last digits but a few."""
    if isinstance(value, list):
        return [_near(cell) for cell in value]
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def _says(value: Any) -> bool:
    return any(cell is not None for cell in (value if isinstance(value, list) else [value]))


def _numbers(figures: Figures) -> list[tuple[str, Any]]:
    return [
        (f"{title}/{key}", value)
        for title, found in figures.items()
        for key, value in found.items()
        if any(isinstance(cell, int | float) for cell in (value if isinstance(value, list) else [value]))
    ]


def _each_row_left_out(tables: TraceTables) -> Any:
    """Yield the trace without one row of one table, for every row of every table of events, in no order."""
    whole = {name: tables.arrow(name) for name in tables}
    ids = (
        table["device_id"] for name, table in whole.items() if name != "devices" and "device_id" in table.schema.names
    )
    used = {number for column in ids for number in column.to_pylist()}
    rows = [
        (name, at)
        for name, table in whole.items()
        if "start_ns" in schema.table(name).arrow.names or name in {"totals", "settings", "devices", "op_args"}
        for at in range(table.num_rows)
        # no trace names a device that its table lacks
        if not (name == "devices" and table["device_id"][at].as_py() in used)
    ]
    random.Random(0).shuffle(rows)
    for name, at in rows:
        kept = whole[name].filter(pa.array([row != at for row in range(whole[name].num_rows)]))
        yield TraceTables({**whole, name: kept})
