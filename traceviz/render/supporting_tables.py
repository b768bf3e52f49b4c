"""Choice of the tables that support the main cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from traceviz.render.rows import blocks_for_people, by_time_at_stake, is_share, number_of
from traceviz.report import Finding, Grid, Report, Row, Section, Severity
from traceviz.report.findings.record import BY_CAUSE, COMPUTING, ELSEWHERE, OTHER_THREADS, OUTSIDE
from traceviz.report.findings.registry import find_record

_AS_LARGE = 0.9
"""Share of the first finding's time from which another counts as large; it may be about the same time."""
_WORTH_A_TABLE = 0.05
"""Causes of idle time are not worth a table if none has this share."""
_TURN = {"input": 0, "lock": 2}
_TITLE_END = re.compile(r"[:,] | \(")
"""Point in a table's title where its explanation starts."""


def tables_behind(report: Report, first: Finding | None) -> tuple[Section, ...]:
    """Return the tables that support the main cause, the most informative first, each in a section of its own.

    Args:
        report: The report.
        first: The finding that is shown first, if any.
    """
    places = list(_places(report.verdict.cause, first))
    serious = [finding for finding in by_time_at_stake(report.findings) if finding.severity is not Severity.INFO]
    if serious and _is_of_run(serious[0]):
        places = [OUTSIDE, *places]
    for finding in report.findings:
        record = find_record(finding.code)
        replaced = dict(record.replaced_tables) if record else {}
        places = [replaced.get(place, place) for place in places]
    as_large = next((f for f in serious if first and f is not first and f.cost_ns >= _AS_LARGE * first.cost_ns), None)
    if as_large and not _is_of_run(as_large):
        places[1:1] = _of_finding(as_large)[:1]
    return _tables(report, places) or _tables(report, ELSEWHERE)


def _places(cause: str, first: Finding | None) -> tuple[str, ...]:
    """Return the places of the tables for the verdict's cause, else for the first finding."""
    if cause in BY_CAUSE:
        return BY_CAUSE[cause]
    if first and first.severity is not Severity.INFO:
        return _of_finding(first)
    return ELSEWHERE if cause else COMPUTING


def _of_finding(finding: Finding) -> tuple[str, ...]:
    """Return the tables of a finding; for an unknown one, as in a saved report, those of any cause."""
    record = find_record(finding.code)
    return record.tables if record else ELSEWHERE


def _is_of_run(finding: Finding) -> bool:
    record = find_record(finding.code)
    return record is not None and record.is_of_run


def _tables(report: Report, places: list[str] | tuple[str, ...]) -> tuple[Section, ...]:
    return tuple(section for place in dict.fromkeys(places) for section in _table(report, place))


def _table(report: Report, place: str) -> Iterator[Section]:
    slug, _, which = place.partition(":")
    for section in report.sections:
        if section.slug == slug:
            grids = [block for block in blocks_for_people(section.blocks) if isinstance(block, Grid) and block.rows]
            titled = [grid for grid in grids if grid.title.startswith(which)]
            for grid in (grids[int(which) :] if which.isdecimal() else titled)[:1]:
                bars = [index for index, column in enumerate(grid.columns) if is_share(column)]
                shares = (number_of(row[index]) for row in grid.rows for index in bars)
                if slug == "host_waits" and max(shares, default=1.0) < _WORTH_A_TABLE:
                    continue
                table = _TITLE_END.split(grid.title, maxsplit=1)[0]
                title = f"{section.title} · {table}" if table else section.title
                rows = {OUTSIDE: _largest_first, OTHER_THREADS: _busy_first}.get(place, attrgetter("rows"))(grid)
                yield Section(slug, title, (replace(grid, title="", rows=rows, complete=False),))


def _busy_first(grid: Grid) -> tuple[Row, ...]:
    """Put rows of threads that prepare steps first, and waits for the next piece of work last."""
    kinds = [index for index, column in enumerate(grid.columns) if column.name == "kind"]
    return tuple(sorted(grid.rows, key=lambda row: _TURN.get(str(row[kinds[0]]), 1))) if kinds else grid.rows


def _largest_first(grid: Grid) -> tuple[Row, ...]:
    """Sort the rows of a chronological table by time, the longest first."""
    times = [index for index, column in enumerate(grid.columns) if column.unit == "ns"]
    return tuple(sorted(grid.rows, key=lambda row: -number_of(row[times[0]]))) if times else grid.rows
