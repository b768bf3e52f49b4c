"""The report as a piece of a page that others made: a notebook, documentation. No script, and no style but its own.

What a first screen shows is open; all sections are below it, folded. Long tables are cut, so that a notebook with many
reports stays small.
"""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup

from traceviz.render.first_screen import first_screen
from traceviz.render.html.components.bars import bars
from traceviz.render.html.components.blocks import block
from traceviz.render.html.components.colors import properties_in_others
from traceviz.render.html.components.element import element, joined
from traceviz.render.html.components.facts import facts
from traceviz.render.html.components.findings import finding
from traceviz.render.html.components.grid import GridStyle, grid
from traceviz.render.html.components.notes import notes, skipped
from traceviz.render.html.inline import style
from traceviz.render.rows import blocks_for_people, by_time_at_stake
from traceviz.report import SCHEMA, Block, Fact, Grid, Report, Section
from traceviz.units import counted
from traceviz.visible import sentence

MOST_CHARACTERS = 180_000
"""Of a report, with its style: some notebooks hold dozens of them."""
_ROWS = (50, 20, 10, 5)
"""Rows of a table, the first number with which the report is short enough."""


def fragment(report: Report, most: int = MOST_CHARACTERS) -> Markup:
    """What ran, the verdict, where the time went, findings that fold open, and the sections, folded.

    Args:
        report: Any report document.
        most: Characters that it may have.
    """
    for rows in _ROWS:
        made = scoped(content(report, rows))
        if len(made) <= most:
            return made
    left_out = element(
        "p", f"{counted(len(report.sections), 'section')} are too long to be shown here.", class_="tv-elsewhere"
    )
    return scoped(joined((_head(report, _ROWS[-1]), left_out)))


def content(report: Report, rows: int = _ROWS[0]) -> Markup:
    """The same without its style, and with ``rows`` rows of each table."""
    is_of_one = report.schema == SCHEMA
    sections = joined(
        section_fold(section, rows, is_open=not is_of_one and position == 0)
        for position, section in enumerate(report.sections)
    )
    ends = ((skipped(report.skipped), "Not measured"), (notes(report.notes), "Notes"))
    return joined((_head(report, rows), sections, *(_fold(title, part) for part, title in ends if part)))


def section_fold(section: Section, rows: int, *, is_open: bool = False) -> Markup:
    """A section that folds open."""
    return _fold(section.title or section.slug, section_blocks(section, rows), is_open=is_open)


def section_blocks(section: Section, rows: int) -> Markup:
    """What is in a section, for people."""
    return joined(_block(item, section, rows) for item in blocks_for_people(section.blocks))


def grid_of(block_: Grid, rows: int, slug: str = "", caption: str = "") -> Markup:
    """A table of its first ``rows`` rows, and how many more there are."""
    shown = replace(block_, rows=block_.rows[:rows], complete=True)
    return grid(shown, GridStyle(slug=slug, caption=caption, elsewhere=max(len(block_.rows) - rows, 0)))


def scoped(body: Markup) -> Markup:
    """Components within an element that brings their style, which holds for it alone."""
    sheet = f"{properties_in_others('.tv-fragment')}{style(('components.css', 'fragment.css'))}"
    return element("div", element("style", Markup(sheet)), body, class_="tv-fragment")  # noqa: S704 (our own text)


def _head(report: Report, rows: int) -> Markup:
    """What is always open."""
    said = element("p", sentence(report.verdict.sentence), class_="tv-verdict") if report.verdict.sentence else ""
    found = joined(finding(item) for item in by_time_at_stake(report.findings))
    if report.schema != SCHEMA:
        return joined((_about(report.run), said, found))
    screen = first_screen(report)
    tables = joined(section_blocks(section, min(rows, screen.rows)) for section in screen.tables)
    gates = section_blocks(screen.gates, rows) if screen.gates else ""
    return joined((_about(screen.run), said, gates, joined(map(bars, screen.bars)), found, tables))


def _about(run: tuple[Fact, ...]) -> Markup:
    known = [fact for fact in run if fact.value not in {None, ""}]
    return facts(known) if known else Markup()


def _block(item: Block, section: Section, rows: int) -> Markup:
    if isinstance(item, Grid):
        return grid_of(item, rows, section.slug, section.title)
    return block(item, GridStyle(slug=section.slug, caption=section.title))


def _fold(title: str, body: Markup, *, is_open: bool = False) -> Markup:
    return element("details", element("summary", sentence(title)), body, class_="tv-folded", open=is_open)
