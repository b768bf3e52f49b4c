"""The report as a piece of a page that others made: a notebook, documentation. No script, and no style but its own."""

from __future__ import annotations

from markupsafe import Markup

from traceviz.render.first_screen import first_screen
from traceviz.render.html.components.bars import bars
from traceviz.render.html.components.blocks import block
from traceviz.render.html.components.colors import properties
from traceviz.render.html.components.element import element, joined, line, prose
from traceviz.render.html.components.facts import facts
from traceviz.render.html.components.findings import finding
from traceviz.render.html.components.grid import GridStyle
from traceviz.render.html.components.notes import notes
from traceviz.render.html.inline import asset
from traceviz.render.rows import blocks_for_people, by_time_at_stake
from traceviz.report import SCHEMA, Report


def fragment(report: Report) -> Markup:
    """What ran, the verdict, where the time went, findings that fold open, and the sections, each folded."""
    charts = first_screen(report).bars if report.schema == SCHEMA else ()
    found = joined(finding(item) for item in by_time_at_stake(report.findings))
    sections = joined(
        element(
            "details",
            element("summary", line(section.title or section.slug)),
            joined(
                block(item, GridStyle(slug=section.slug, caption=section.title))
                for item in blocks_for_people(section.blocks)
            ),
            class_="tv-folded",
        )
        for section in report.sections
    )
    return scoped(
        joined(
            (
                facts(fact for fact in report.run if fact.value is not None),
                element("p", prose(report.verdict.sentence), class_="tv-verdict"),
                joined(bars(chart) for chart in charts),
                found,
                sections,
                notes(report.notes),
            )
        )
    )


def scoped(content: Markup) -> Markup:
    """Components within an element that brings their style, which holds for it alone."""
    style = f"{properties('.tv-fragment')}{asset('components.css')}"
    return element("div", element("style", Markup(style)), content, class_="tv-fragment")  # noqa: S704 (our own text)
