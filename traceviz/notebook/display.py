"""Drawing values for notebooks: as a fragment of a page, and as a few lines of text.

:mod:`traceviz.core.notebook_repr` calls this by the kind of a value. Only the code that draws pages is slow to import.
It is imported with the first value that is displayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from traceviz.core.errors import UsageError
from traceviz.core.sanitize import bounded, sentence
from traceviz.core.units import counted
from traceviz.notebook import describe
from traceviz.render.html import fragment as pieces
from traceviz.render.html.components.element import element, joined, shown
from traceviz.render.html.components.facts import facts
from traceviz.report import Grid, Report, Section

if TYPE_CHECKING:
    from traceviz.archive.archive import Archive
    from traceviz.archive.query.answer import Leading
    from traceviz.archive.trends.trend import Trend
    from traceviz.collectors.collect import Outcome
    from traceviz.compare.compare import Comparison
    from traceviz.core.notebook_repr import Shown
    from traceviz.notebook.recording import Recorded
    from traceviz.trace.tables import TraceTables

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

    return describe.report_lines(document(comparison), name="comparison")


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
        return pieces.scoped(_paragraphs(describe.empty_archive(archive)))
    return pieces.fragment(report)


def _archive_lines(archive: Archive) -> tuple[str, ...]:
    report = _archive_report(archive)
    if report is None:
        return describe.empty_archive(archive)
    return repr(archive), sentence(report.verdict.sentence)


def _tables(tables: TraceTables) -> Markup:
    about = facts(describe.run_of(tables))
    return pieces.scoped(joined((about, pieces.grid_of(describe.tables_of(tables)))))


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
    return pieces.scoped(_paragraphs(describe.outcome_lines(outcome)))


def _recorded(recorded: Recorded) -> Markup:
    said = _paragraphs(describe.recorded_lines(recorded))
    if recorded.report is None:
        return pieces.scoped(said)
    return pieces.fragment(recorded.report, foot=said)


def _recorded_text(recorded: Recorded) -> tuple[str, ...]:
    said = describe.recorded_lines(recorded)
    return said if recorded.report is None else (sentence(recorded.report.verdict.sentence), *said)


def _paragraphs(lines: tuple[str, ...]) -> Markup:
    return joined(element("p", shown(line)) for line in lines)


_DRAWN: dict[str, tuple[Callable[[Any], Markup], Callable[[Any], tuple[str, ...]]]] = {
    "answer": (_answer, lambda answer: (repr(answer), str(answer.table.slice(0, 10)))),
    "archive": (_archive, _archive_lines),
    "comparison": (_comparison, _comparison_lines),
    "grid": (_grid, _grid_lines),
    "outcome": (_outcome, describe.outcome_lines),
    "recorded": (_recorded, _recorded_text),
    "report": (pieces.fragment, describe.report_lines),
    "section": (_section, _section_lines),
    "tables": (_tables, describe.table_lines),
    "trend": (_trend, _trend_lines),
}
"""Functions that draw a value and describe it, by its kind."""
