"""Drawing values for notebooks: as a fragment of a page, and as a few lines of text.

:mod:`traceviz.core.notebook_repr` calls this by the kind of a value. Only the code that draws pages is slow to import.
It is imported with the first value that is displayed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from traceviz.core.errors import UsageError
from traceviz.core.sanitize import bounded, sentence
from traceviz.core.units import counted
from traceviz.render.html import fragment as pieces
from traceviz.render.html.components.blocks import facts
from traceviz.render.html.components.element import element, joined, shown
from traceviz.render.verdict_text import first_lines
from traceviz.report import SCHEMA, Column, Fact, Grid, Report, Section
from traceviz.trace import schema

if TYPE_CHECKING:
    from traceviz.archive.archive import Archive
    from traceviz.archive.query.answer import Leading
    from traceviz.archive.trends.trend import Trend
    from traceviz.collectors.collect import Outcome
    from traceviz.compare.compare import Comparison
    from traceviz.core.notebook_repr import Shown
    from traceviz.notebook.magics import Recorded
    from traceviz.trace.tables import TraceTables

_FINDINGS = 3
_NAMED_TABLES = 12
_RUN = (("producer", "recorded by"), ("framework", "framework"), ("span_ns", "captured"))

_ROWS = 50
"""Limit of the traces of an archive that are listed."""


def html(value: Shown) -> str:
    """Draw the value as a fragment of a page."""
    return str(_DRAWN[value.shown_as][0](value))


def text(value: Shown) -> str:
    """Describe the value in a few lines."""
    return "\n".join(map(bounded, _DRAWN[value.shown_as][1](value)))


def _comparison(comparison: Comparison) -> Markup:
    from traceviz.compare.report.document import document  # noqa: PLC0415 (loaded with the comparison)

    return pieces.fragment(document(comparison))


def _comparison_lines(comparison: Comparison) -> tuple[str, ...]:
    from traceviz.compare.report.document import document  # noqa: PLC0415

    return report_lines(document(comparison), name="comparison")


def _trend(trend: Trend) -> Markup:
    from traceviz.archive.trends.report import document  # noqa: PLC0415 (loaded with the trend)

    return pieces.fragment(document(trend))


def _trend_lines(trend: Trend) -> tuple[str, ...]:
    from traceviz.archive.trends.report import document  # noqa: PLC0415

    return sentence(document(trend).verdict.sentence), repr(trend)


def _archive_report(archive: Archive) -> Report | None:
    from traceviz.archive.catalogue.listing import listing  # noqa: PLC0415 (loaded with the archive)

    try:
        return listing(archive.store, archive.rows(), limit=_ROWS)
    except UsageError:  # the archive does not exist yet
        return None


def _archive(archive: Archive) -> Markup:
    report = _archive_report(archive)
    if report is None:
        return pieces.scoped(_paragraphs(empty_archive(archive)))
    return pieces.fragment(report)


def _archive_lines(archive: Archive) -> tuple[str, ...]:
    report = _archive_report(archive)
    if report is None:
        return empty_archive(archive)
    return repr(archive), sentence(report.verdict.sentence)


def _tables(tables: TraceTables) -> Markup:
    about = facts(run_of(tables))
    return pieces.scoped(joined((about, pieces.grid_of(tables_of(tables)))))


def _answer(answer: Leading) -> Markup:
    (section,) = answer.document.sections
    return _section(section)


def _section(section: Section) -> Markup:
    return pieces.scoped(pieces.section_blocks(section))


def _section_lines(section: Section) -> tuple[str, ...]:
    return (f"Section {section.slug}: {sentence(section.title)}, {counted(len(section.blocks), 'block')}",)


def _grid(grid: Grid) -> Markup:
    return pieces.scoped(pieces.grid_of(grid))


def _grid_lines(grid: Grid) -> tuple[str, ...]:
    return sentence(grid.title) or "Grid", str(grid.to_polars())


def _outcome(outcome: Outcome) -> Markup:
    return pieces.scoped(_paragraphs(outcome_lines(outcome)))


def _recorded(recorded: Recorded) -> Markup:
    said = _paragraphs(recorded_lines(recorded))
    if recorded.report is None:
        return pieces.scoped(said)
    return pieces.fragment(recorded.report, foot=said)


def _recorded_text(recorded: Recorded) -> tuple[str, ...]:
    said = recorded_lines(recorded)
    return said if recorded.report is None else (*_first(recorded.report), *said)


def _first(report: Report) -> tuple[str, ...]:
    """Return headline and consequence, each on a line."""
    first = first_lines(report.verdict)
    return tuple(sentence(line) for line in (first.headline, first.consequence) if line)


def _paragraphs(lines: tuple[str, ...]) -> Markup:
    return joined(element("p", shown(line)) for line in lines)


def report_lines(report: Report, name: str = "report") -> tuple[str, ...]:
    """Return the verdict, the first findings by name, and how to see the rest."""
    found = [f"{finding.code} {finding.slug}" for finding in report.findings[:_FINDINGS]]
    more = len(report.findings) - len(found)
    findings = f"Findings: {', '.join(found)}{f' and {more} more' if more else ''}." if found else ""
    tables = f" {name}.to_pandas(SECTION) has the rows of a table." if report.schema == SCHEMA else ""
    how = f"print(traceviz.to_text({name})) shows all of its {counted(len(report.sections), 'section')}.{tables}"
    return tuple(filter(None, (*_first(report), findings, how)))


def table_lines(tables: TraceTables) -> tuple[str, ...]:
    """Count the tables and rows, and describe how to read one."""
    named = [f"{name} {tables.rows(name):,}" for name in tables if tables.rows(name)]
    listed = ", ".join(named[:_NAMED_TABLES]) + (f" and {len(named) - _NAMED_TABLES} more" if named[12:] else "")
    return (
        f"Trace of {counted(len(list(tables)), 'table')}; rows: {listed or 'none'}.",
        "tables.NAME is a polars LazyFrame, tables.to_pandas(NAME) a frame of pandas.",
        "traceviz.analyze(tables) makes the report.",
    )


def run_of(tables: TraceTables) -> tuple[Fact, ...]:
    """Return the facts that the trace states about its run."""
    stated = tables.run_facts()
    known = {column.name: column for column in schema.table("run").columns}
    return tuple(
        Fact(key, label, stated[key], "ns" if known[key].unit == "ns" else "text")
        for key, label in _RUN
        if key in known and stated.get(key) is not None
    )


def tables_of(tables: TraceTables) -> Grid:
    """List the tables of a trace with the meaning of their rows."""
    columns = (Column("table", "Table"), Column("rows", "Rows", "count"), Column("holds", "What a row is"))
    rows = tuple((name, tables.rows(name), schema.table(name).row) for name in tables)
    return Grid(columns, rows, complete=True)


def empty_archive(archive: Archive) -> tuple[str, ...]:
    """Describe an archive that does not exist yet."""
    return repr(archive), "There is no archive there yet: archive.add(PATH, ...) makes it."


def outcome_lines(outcome: Outcome) -> tuple[str, ...]:
    """Return the verdict of the recording, its folder and its problems."""
    how = f"{outcome.status}, exit code {outcome.exit_code}" if outcome.exit_code else outcome.status
    problems = (f"{problem.message} {problem.fix}".strip() for problem in outcome.problems)
    return (*outcome.verdict, f"The program {how}; the run is in {where(outcome.folder)}.", *problems)


def recorded_lines(recorded: Recorded) -> tuple[str, ...]:
    """Return the folder of a recorded cell, and its problems."""
    folder = where(recorded.folder)
    said = f"Recorded into {folder}: traceviz report {folder}, or traceviz.analyze({folder!r})."
    return (said, *recorded.problems)


def where(folder: Path) -> str:
    """Return a folder ready to type in a shell, relative to the current folder if it is below that."""
    here = Path.cwd()
    return shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))


_DRAWN: dict[str, tuple[Callable[[Any], Markup], Callable[[Any], tuple[str, ...]]]] = {
    "answer": (_answer, lambda answer: (repr(answer), str(answer.table.slice(0, 10)))),
    "archive": (_archive, _archive_lines),
    "comparison": (_comparison, _comparison_lines),
    "grid": (_grid, _grid_lines),
    "outcome": (_outcome, outcome_lines),
    "recorded": (_recorded, _recorded_text),
    "report": (pieces.fragment, report_lines),
    "section": (_section, _section_lines),
    "tables": (_tables, table_lines),
    "trend": (_trend, _trend_lines),
}
"""Functions that draw a value and describe it, by its kind."""
