"""Options that every renderer takes, and the protocol of a renderer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from traceviz.core.errors import UsageError
from traceviz.report import SCHEMA, Report

FINDINGS = "findings"
NOTES = "notes"
GATES = "gates"
"""Slug of the section that always stays, so that the result of a gate is always shown."""
DEFAULT_TOP = 10

LEAST_WIDTH, MOST_WIDTH = 40, 1_000
"""Limits of the columns of a page: tables need some, and each line is filled to its end."""


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The layout of a report. Renderers ignore options that do not concern them.

    Args:
        width: Page width in terminal cells, limited to 40 to 1,000.
        color: True to allow ANSI colour.
        top: Rows shown per table. ``None`` shows ten, and folds small trailing rows if the table requests it.
        sections: Slugs of the sections to show, ``None`` for the whole report; ``"findings"`` and ``"notes"`` name
            parts that are not sections.
        first_screen: True for only the first screen (:mod:`traceviz.render.first_screen`) in formats for reading.
            Reports on one trace have such a screen; comparisons, lists and trends do not.
        figure: Name of the figure to draw (:data:`traceviz.render.figures.registry.FIGURES`) in formats that draw one;
            ``None`` for the most informative one.
        pixels: Width of that figure; ``None`` for 720.
        command: Command that makes the report again from any folder, which a page offers to copy; empty if unknown.
    """

    width: int = 100
    color: bool = False
    top: int | None = None
    sections: tuple[str, ...] | None = None
    first_screen: bool = False
    figure: str | None = None
    pixels: int | None = None
    command: str = ""

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise UsageError(f"A table of {self.top} rows shows nothing.", fix="Give --top a number of at least 1.")


class Renderer(Protocol):
    """A pure function from report to text, with a name to select it."""

    name: ClassVar[str]

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the whole report as text that ends with a newline."""
        ...


def has_first_screen(report: Report, options: RenderOptions) -> bool:
    """Return whether the first screen of ``report`` is requested and exists."""
    return options.first_screen and options.sections is None and report.schema == SCHEMA


def select(report: Report, sections: tuple[str, ...] | None) -> Report:
    """Reduce the report to the named sections; verdict, run facts and gates always stay.

    Raises:
        UsageError: a name is neither a section of this report nor one that was skipped.
    """
    if sections is None:
        return report
    known = {section.slug for section in report.sections} | {skip.slug for skip in report.skipped} | {FINDINGS, NOTES}
    for name in sections:
        if name not in known:
            raise UsageError.unknown("section", name, known)
    return replace(
        report,
        sections=tuple(section for section in report.sections if section.slug in {*sections, GATES}),
        skipped=tuple(skip for skip in report.skipped if skip.slug in sections),
        findings=report.findings if FINDINGS in sections else (),
        notes=report.notes if NOTES in sections else (),
    )
