"""The report as a fragment of a foreign page: a notebook, documentation. It has no script, and only its own style.

The content of the first screen is open. All sections follow, folded. Long tables are cut, so that a notebook with many
reports stays small.
"""

from __future__ import annotations

from dataclasses import replace

from markupsafe import Markup

from traceviz.core.units import counted
from traceviz.render.first_screen import first_screen
from traceviz.render.html.components.blocks import GridStyle, block, facts, grid
from traceviz.render.html.components.charts import bars
from traceviz.render.html.components.colors import properties_in_others
from traceviz.render.html.components.element import element, joined, line, prose
from traceviz.render.html.components.findings import finding, notes, skipped
from traceviz.render.html.components.first_lines import draw_first_lines
from traceviz.render.html.drawn import figure_parts
from traceviz.render.html.inline import asset
from traceviz.render.rows import blocks_for_people, by_time_at_stake
from traceviz.report import SCHEMA, Block, Fact, Grid, Report, Section

MOST_CHARACTERS = 180_000
"""Limit of the characters of a report with its style; some notebooks hold dozens of them."""
_ROWS = (50, 20, 10, 5)
"""Limits of the rows of a table; the first that keeps the report short enough is used."""
_FEW = 3
"""Up to this many folded sections need no common fold."""
_NOT_SHOWN = frozenset({"format", "source_schema", "t0_unix_ns", "reader", "driver_version", "cuda_version", "host"})
"""Facts about the recording that are rarely needed."""


def fragment(report: Report, foot: str = "", most: int = MOST_CHARACTERS) -> Markup:
    """Draw the run, the verdict, the distribution of time, folded findings, and all sections, folded.

    Args:
        report: Any report document.
        foot: Markup at the end.
        most: Limit of its characters.
    """
    figures = figure_parts(report, for_telephones=False)
    for rows, drawn in (*((rows, figures) for rows in _ROWS), (_ROWS[-1], Markup())):
        made = scoped(joined((_head(report, rows), _sections(report, rows, drawn), foot)))
        if len(made) <= most:
            return made
    said = f"{counted(len(report.sections), 'section')} of this report are too long to be shown here."
    return scoped(joined((_head(report, _ROWS[-1]), element("p", said, class_="tv-elsewhere"), foot)))


def section_blocks(section: Section, rows: int = _ROWS[0]) -> Markup:
    """Draw the readable content of a section."""
    return joined(_block(item, section, rows) for item in blocks_for_people(section.blocks))


def grid_of(table: Grid, rows: int = _ROWS[0], slug: str = "", caption: str = "") -> Markup:
    """Draw the first ``rows`` rows of a table, the number of the others, and the call that returns all."""
    words = ", ".join(repr(text) for text in (slug, table.title if slug else "") if text)
    return grid(table, GridStyle(rows, slug, caption, most=rows, command=f".to_pandas({words})"))


def scoped(body: Markup) -> Markup:
    """Wrap components in an element with their style, which applies only inside it."""
    components = f".tv-fragment:not(#tv) {{\n{asset('components.css')}}}\n"
    sheet = f"{properties_in_others('.tv-fragment')}{components}{asset('fragment.css')}"
    return element("div", element("style", Markup(sheet)), body, class_="tv-fragment")  # noqa: S704 (our own text)


def _head(report: Report, rows: int) -> Markup:
    """Draw the part that is always open."""
    said = draw_first_lines(report.verdict)
    found = joined(finding(item) for item in by_time_at_stake(report.findings))
    if report.schema != SCHEMA:
        return joined((_about(report.run), said, found))
    screen = first_screen(report)
    shown = min(rows, max(screen.rows, 1))
    tables = joined(
        # A table is drawn without its section, so it gets the section's title.
        _block(replace(item, title=" · ".join(filter(None, (section.title, item.title)))), section, shown)
        if isinstance(item, Grid)
        else _block(item, section, shown)
        for section in screen.tables
        for item in blocks_for_people(section.blocks)
    )
    absent = element("p", prose(screen.others)) if screen.others and not report.findings else ""
    gates = section_blocks(screen.gates, rows) if screen.gates else ""
    return joined((_about(screen.run), said, gates, joined(map(bars, screen.bars)), found or absent, tables))


def _about(run: tuple[Fact, ...]) -> Markup:
    return facts(fact for fact in run if fact.value not in {None, ""} and fact.key not in _NOT_SHOWN)


def _sections(report: Report, rows: int, figures: Markup) -> Markup:
    """Draw all sections and the figures, each folded, inside a common fold.

    If the head of the document is short, the first section and the figures come before that fold, open.
    """
    is_short = report.schema != SCHEMA
    folds = [
        _fold(section.title or section.slug, section_blocks(section, rows), is_open=is_short and not position)
        for position, section in enumerate(report.sections)
    ]
    if figures:
        folds.insert(is_short, _fold("Figures", figures, is_open=is_short))
    ends = ((skipped(report.skipped), "Not measured"), (notes(report.notes), "Notes"))
    folds += [_fold(title, part) for part, title in ends if part]
    opened = 1 + bool(figures) if is_short else 0
    rest = folds[opened:]
    if len(rest) <= _FEW:
        return joined(folds)
    title = f"{'More' if opened else 'All of it'}: {counted(len(rest), 'section')}"
    return joined((*folds[:opened], _fold(title, joined(rest))))


def _block(item: Block, section: Section, rows: int) -> Markup:
    if isinstance(item, Grid):
        return grid_of(item, rows, section.slug, section.title)
    return block(item, GridStyle(slug=section.slug, caption=section.title))


def _fold(title: str, body: Markup, *, is_open: bool = False) -> Markup:
    return element("details", element("summary", line(title)), body, class_="tv-folded", open=is_open)
