"""Rules for all tables and all reports of any input.

Every rule yields sentences that name violations; none if it holds.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceviz.report import BY_STEP, Bars, Column, Fact, Facts, Grid, Report, Series, Timeline
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_ROUNDING = 1e-9
_NOT_IN_SPAN = frozenset({"samples", "stacks", "phases", "metrics", "windows"})
"""Tables whose times may lie outside the events."""


def broken_tables(tables: TraceTables, *, stated: bool = False) -> Iterator[str]:
    """Yield faults of tables that passed their own checks: times, references, texts that are no UTF-8.

    Args:
        tables: The tables.
        stated: True if a folder stated them, rather than events: times before zero and unknown numbers of operations
            are then accepted, and only looked up.
    """
    span = tables.run_facts().get("span_ns") or 0
    for name in tables:
        table = tables.arrow(name)
        try:
            table.validate(full=True)
        except pa.ArrowInvalid as error:
            yield f"{name} is no valid table: {error}"
            continue
        if name not in _NOT_IN_SPAN and "start_ns" in table.column_names and table.num_rows:
            yield from _times(name, table, span, stated=stated)
        yield from _references(name, table, tables, stated=stated)


def _times(name: str, table: pa.Table, span: int, *, stated: bool) -> Iterator[str]:
    starts = table.column("start_ns").to_numpy()
    durations = pc.fill_null(table.column("dur_ns"), 0).to_numpy() if "dur_ns" in table.column_names else 0 * starts
    if starts.min() < 0 and not stated:
        yield f"{name} has a negative start"
    if durations.min() < 0:
        yield f"{name} has a negative duration"
    if (np.diff(starts) < 0).any():
        yield f"{name} is not in order of start"
    if starts.max() > span or (starts.astype(float) + durations.astype(float)).max() > span * (1 + 1e-12) + 0.5:
        yield f"{name} has times beyond the span of the trace"


def _references(name: str, table: pa.Table, tables: TraceTables, *, stated: bool) -> Iterator[str]:
    for column in schema.table(name).columns:
        owner, _, key = column.joins.partition(".")
        if not key or key in {"correlation_id", "group_id"}:  # what launched it may not have been recorded
            continue
        if stated and key in {"op_id", "range_id"}:
            continue
        values = table.column(column.name).drop_null()
        known = tables.arrow(owner).column(key) if owner in tables else pa.chunked_array([[]], values.type)
        if (
            len(values)
            and not pc.all(pc.is_in(values.cast(pa.int64()), known.cast(pa.int64()).combine_chunks())).as_py()
        ):
            yield f"{name}.{column.name} refers to a row that {owner} does not have"


def broken_report(report: Report) -> Iterator[str]:
    """Yield faults of a report: sums, shares, negative times, invalid numbers."""
    for section in report.sections:
        for block in section.blocks:
            for sentence in _broken_block(block):
                yield f"{section.slug}: {sentence}"
    yield from chain.from_iterable(_broken_value(fact, fact.value) for fact in report.run)
    for finding in report.findings:
        yield from (f"{finding.code}: {one}" for fact in finding.evidence for one in _broken_value(fact, fact.value))
        if finding.cost_ns < 0 or not 0 <= (finding.share or 0) <= 1 + _ROUNDING:
            yield f"{finding.code} has {finding.cost_ns} ns at stake, a share of {finding.share}"
    yield from _broken_steps(report)
    yield from _broken_use(report)


_DELAYS = "Delay from launch to start"
"""Title of the grid whose times may be negative: with damaged clocks, work starts before its launch."""


def _broken_block(block: object) -> Iterator[str]:
    match block:
        case Facts(facts=facts):
            yield from chain.from_iterable(_broken_value(fact, fact.value) for fact in facts)
        case Grid(columns=columns, rows=rows, title=title):
            for place, column in enumerate(columns):
                if title == _DELAYS and column.unit == "ns":
                    continue
                yield from chain.from_iterable(_broken_value(column, row[place]) for row in rows)
        case Bars(title=title, bars=bars):
            shares = [bar.share for bar in bars]
            if any(not 0 <= share <= 1 + _ROUNDING for share in shares) or sum(shares) > 1 + 1e-6:
                yield f"bars {title!r} have the shares {shares}"
            if any(isinstance(bar.value, int | float) and bar.value < 0 for bar in bars):
                yield f"bars {title!r} have a negative value"
        case Timeline(title=title, lanes=lanes):
            values = [value for lane in lanes for value in lane.values if value is not None]
            if any(not 0 <= value <= 1 + 1e-6 for value in values):
                yield f"timeline {title!r} goes from {min(values)} to {max(values)}"
        case Series(title=title, points=points):
            if any(point.value is not None and not math.isfinite(point.value) for point in points):
                yield f"series {title!r} has a value that is no number"


def _broken_value(named: Fact | Column, value: Any) -> Iterator[str]:
    name = named.key if isinstance(named, Fact) else named.name
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{name} is {value}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # Folders may state events before time zero, as samples and windows are.
        is_signed = (isinstance(named, Column) and named.signed) or name == "start_ns" or name.endswith("_at_ns")
        if named.unit in {"ns", "bytes", "count"} and value < 0 and not is_signed:
            yield f"{name} is {value} {named.unit}"
        may_exceed = name == "share_of_wall"  # damaged calls may overlap on one thread
        if named.unit == "ratio" and "share" in name and not (is_signed or may_exceed) and not 0 <= value <= 1 + 1e-6:
            yield f"{name} is {value}"


def _broken_steps(report: Report) -> Iterator[str]:
    """Yield steps whose classes do not add up to the step, or all steps to the bar."""
    for grid in report.grids("breakdown"):
        if grid.title != BY_STEP:
            continue
        names = [column.name for column in grid.columns]
        for row in grid.rows:
            whole = row[names.index("dur_ns")]
            classes = sum(value or 0 for value in row[3:])  # type: ignore[misc]
            if classes != whole:
                yield f"breakdown: classes of a step are {classes} ns, the step is {whole} ns"
        total = sum(row[names.index("dur_ns")] for row in grid.rows)  # type: ignore[misc]
        bars = [bar.value for block in report.blocks("breakdown") if isinstance(block, Bars) for bar in block.bars]
        if sum(bars) != total:  # type: ignore[arg-type]
            yield f"breakdown: the bar is {sum(bars)} ns, the steps are {total} ns"  # type: ignore[arg-type]


def _broken_use(report: Report) -> Iterator[str]:
    """Yield a violation if busy and idle time do not add up to the same span for every device."""
    facts = {fact.key: fact.value for fact in report.facts("device_use")}
    if not facts:
        return
    rows = report.rows("device_use")
    both = {row["busy_ns"] + row["idle_ns"] for row in rows}  # type: ignore[operator]
    if both - {facts["span_ns"]}:
        yield f"device_use: busy and idle add up to {sorted(both)}, the span is {facts['span_ns']}"


def hostile_characters(text: str) -> str:
    """Return characters of a page that could control a terminal, by their code points; our colours are allowed."""
    plain = _COLOURS.sub("", text)
    if plain.isascii() and plain.replace("\n", "").isprintable():
        return ""
    found = {
        character
        for character in set(plain)
        if character != "\n" and unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    }
    return " ".join(sorted(f"U+{ord(character):04X}" for character in found))
