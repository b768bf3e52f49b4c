"""The page: one document with its style, its script and its report, which may load nothing.

From the top it has the run, the verdict, the distribution of time, candidate causes, findings, pictures, all sections
and notes. Everything is readable without the script, which sorts, filters, folds and copies.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import ClassVar

from markupsafe import Markup

from traceviz.render.first_screen import first_screen
from traceviz.render.html.components.blocks import GridStyle, block, candidates, facts
from traceviz.render.html.components.charts import bars
from traceviz.render.html.components.colors import properties
from traceviz.render.html.components.element import element, joined, line, prose, shown
from traceviz.render.html.components.findings import finding, notes, skipped
from traceviz.render.html.components.first_lines import draw_first_lines
from traceviz.render.html.drawn import figure_parts
from traceviz.render.html.inline import content_hash, script, style
from traceviz.render.json import compact
from traceviz.render.options import GATES, RenderOptions, select
from traceviz.render.rows import absence, blocks_for_people, by_time_at_stake
from traceviz.render.verdict_text import describe_absence_of_findings
from traceviz.render.why import WHY
from traceviz.report import (
    COMPARISON,
    LISTING,
    POPULATION,
    SCHEMA,
    TREND,
    Bars,
    Grid,
    Report,
    Section,
    Series,
    Severity,
)
from traceviz.report.pictures.values import Pictures


class HtmlRenderer:
    """One file that loads nothing; ``top`` limits the rows shown before a table is unfolded."""

    name: ClassVar[str] = "html"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the page, without a timeline; width and colour have no effect."""
        return page(report, options)


@dataclass(frozen=True, slots=True)
class Part:
    """One part.

    Args:
        name: Stem of its style sheet and script, and its anchor in the page.
        title: Its heading.
        draws: Module of this folder and function that draws it.
        is_there: Function that returns true if the pictures contain data for it.
    """

    name: str
    title: str
    draws: str
    is_there: Callable[[Pictures], bool]

    def markup(self, pictures: Pictures) -> Markup:
        """Draw the part."""
        module, _, function = self.draws.partition(":")
        drawn: Markup = getattr(import_module(f"traceviz.render.html.{module}"), function)(pictures)
        return drawn


PARTS = (
    Part("timeline", "Timeline", "timeline:timeline_parts", lambda pictures: pictures.timeline is not None),
    Part("flame", "Flame graphs", "flames:flame_parts", lambda pictures: bool(pictures.flames)),
)
"""All parts, in the order of a page."""


def parts_of(pictures: Pictures | None) -> tuple[Part, ...]:
    """Return the parts that have pictures."""
    return tuple(part for part in PARTS if pictures is not None and part.is_there(pictures))


_KINDS = {COMPARISON: "Comparison", LISTING: "Traces", POPULATION: "Archive report", TREND: "Trend"}
_REST = "other"
_BEHIND = frozenset({"format", "source_schema", "t0_unix_ns", "reader", "driver_version", "cuda_version", "host"})
"""Facts about the recording that are rarely needed."""
_POLICY = "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True, slots=True)
class _Carried:
    """The amount of a report that a page holds.

    Args:
        rows: Limit of the rows of a table.
        for_machines: True if its data include the blocks for programs, and all rows.
        as_json: True if it includes the report as data.
    """

    rows: int
    for_machines: bool = True
    as_json: bool = True


@dataclass(frozen=True, slots=True)
class _Section:
    """One part of a page; ``has_command`` if ``--section`` can print it alone."""

    slug: str
    title: str
    content: Markup
    has_command: bool = False


@dataclass(frozen=True, slots=True)
class _Content:
    """The input of a page."""

    report: Report
    options: RenderOptions
    pictures: Pictures | None
    carried: _Carried


MOST_BYTES = 400_000
"""Limit of the size of a page without pictures."""
_STEPS = (_Carried(1000), _Carried(300), _Carried(300, for_machines=False), _Carried(100, for_machines=False))
_LEAST = (_Carried(30, for_machines=False), _Carried(10, for_machines=False), _Carried(10, as_json=False))
"""Amounts from the most to the least; a page uses the first that fits."""


def page(report: Report, options: RenderOptions, pictures: Pictures | None = None) -> str:
    """Render the whole page, ended by a newline; ``pictures`` are optional.

    Long tables are cut to keep the page below :data:`MOST_BYTES`. The page names the command for the other rows.
    """
    report = select(report, options.sections)
    text = ""
    for carried in (*_STEPS, *_LEAST):
        text = _page(report, options, None, carried)
        if len(text.encode()) < MOST_BYTES:
            return text if pictures is None else _page(report, options, pictures, carried)
    return text if pictures is None else _page(report, options, pictures, _LEAST[-1])


def _page(report: Report, options: RenderOptions, pictures: Pictures | None, carried: _Carried) -> str:
    parts = parts_of(pictures)
    styles = properties(":root") + style(("components.css", "style.css", *(f"{part.name}.css" for part in parts)))
    scripts = script("main.js", *(f"{part.name}-main.js" for part in parts))
    data = compact(_reduced(report, carried)) if carried.as_json else ""
    policy = _POLICY.format(content_hash(styles), content_hash(scripts))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{_source(report)} · traceviz"),
        _raw("style", styles),
    )
    body = _body(_Content(report, options, pictures, carried), parts, data, scripts)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _reduced(report: Report, carried: _Carried) -> Report:
    """Return the report as data for programs; limited to its visible content if all of it is too large."""
    if carried.for_machines:
        return report
    sections = (
        replace(
            section,
            blocks=tuple(
                replace(item, rows=item.rows[: carried.rows]) if isinstance(item, Grid) else item
                for item in blocks_for_people(section.blocks)
            ),
        )
        for section in report.sections
    )
    return replace(report, sections=tuple(sections))


def _raw(tag: str, text: str, **attributes: str) -> Markup:
    """Return an element with unescaped text: a text of this package, or JSON without ``<``."""
    return element(tag, Markup(text), **attributes)  # noqa: S704


def _source(report: Report) -> str:
    found = next((fact.value for fact in report.run if fact.key == "source" and fact.value), None)
    return shown(str(found)) if found else kind(report)


def kind(report: Report) -> str:
    """Return the kind of the document in a word or two."""
    return _KINDS.get(report.schema, "Trace report")


def command(report: Report) -> str:
    """Return the command that prints the report, without options; empty for reports on more than one trace."""
    return f"traceviz report {shlex.quote(_source(report))}" if report.schema == SCHEMA else ""


def _body(content: _Content, parts: tuple[Part, ...], data: str, scripts: str) -> Markup:
    report, pictures = content.report, content.pictures
    figures = _Section("tv-figures", "Figures", figure_parts(report))
    sections = [_Section("tv-verdict", "", draw_first_lines(report.verdict)), *_reported(content)]
    drawn = [_Section(part.name, part.title, part.markup(pictures)) for part in parts if pictures is not None]
    sections += [section for section in drawn if section.slug == "timeline"]  # it shows the places of findings
    sections.insert(len(sections) if report.schema == SCHEMA else 1, figures)
    sections += [section for section in drawn if section.slug != "timeline"]
    sections += [_reported_section(item, content) for item in report.sections]
    sections.append(_Section("tv-skipped", absence(report).capitalize(), skipped(report.skipped)))
    sections.append(_Section("notes", "Notes", notes(report.notes), has_command=True))
    present = [section for section in sections if section.content]
    links = joined(
        element("li", element("a", line(section.title), href=f"#{shown(section.slug)}"))
        for section in present
        if section.title
    )
    navigation = element("nav", element("ul", links), class_="tv-nav", aria_label="Sections")
    main = element("main", joined(map(_section, present)), id_="tv-main", tabindex=-1)
    return element(
        "body",
        element("a", "Skip to the report", class_="tv-skip", href="#tv-main"),
        _banner(report),
        element("div", navigation, main, class_="tv-layout"),
        element("div", class_="tv-live tv-unseen", role="status"),
        _raw("script", data, type="application/json", id="tv-report") if data else "",
        _raw("script", scripts, type="module"),
        data_command=shown(content.options.command) or command(report),
    )


def _banner(report: Report) -> Markup:
    said = first_screen(report).run if report.schema == SCHEMA else report.run
    known = [fact for fact in said if fact.value is not None and fact.key != "source"]
    behind = facts(fact for fact in known if fact.key in _BEHIND)
    about = facts(fact for fact in known if fact.key not in _BEHIND)
    if behind:
        about += element("details", element("summary", "More about the recording"), behind, class_="tv-folded")
    title = element("div", element("p", f"traceviz · {kind(report)}", class_="tv-kind"), element("h1", _source(report)))
    # These controls need the script, which makes them visible.
    field = element(
        "input", class_="tv-search", type_="search", placeholder="Search ( / )", aria_label="Search the whole page"
    )
    count = element("span", class_="tv-search-count", role="status")
    button = element("button", "Dark", class_="tv-button tv-theme", type_="button", hidden=True)
    tools = element("div", element("span", field, count, hidden=True), button, class_="tv-tools")
    return element("header", element("div", title, tools, class_="tv-top"), about, class_="tv-banner")


def _section(section: _Section) -> Markup:
    name = shown(section.slug)
    heading = element("h2", line(section.title), id_=f"{name}-heading") if section.title else ""
    return element(
        "section",
        element("div", heading, class_="tv-heading") if heading else "",
        section.content,
        class_="tv-section",
        id_=name,
        data_section=name if section.has_command else None,
        aria_labelledby=f"{name}-heading" if heading else None,
    )


def _reported(content: _Content) -> list[_Section]:
    """Draw the first parts: the distribution of time with its candidate causes, and the findings with advice."""
    report, pictures = content.report, content.pictures
    charts = first_screen(report).bars if report.schema == SCHEMA else ()
    drawn = joined(bars(chart, _slug_of(report, chart)) for chart in charts)
    places = pictures.places if pictures is not None else ()
    found = joined(
        finding(
            item,
            [place for place in places if place.code == item.code],
            is_open=position == 0 and item.severity is not Severity.INFO,
        )
        for position, item in enumerate(by_time_at_stake(report.findings))
    )
    absence_text = describe_absence_of_findings(report) if content.options.sections is None else ""
    absent = element("p", prose(absence_text)) if absence_text else Markup()
    why = (
        ""
        if any(section.slug == WHY for section in report.sections)
        else candidates(report.verdict, frozenset(item.code for item in report.findings))
    )
    folded = (
        element("details", element("summary", "What may take the time"), why, class_="tv-folded") if why else Markup()
    )
    return [
        _Section("tv-bars", "Where the time went", drawn + folded),
        _Section("findings", "Findings", found or absent, has_command=True),
    ]


def _slug_of(report: Report, chart: Bars) -> str:
    """Return the section of a bar of the first screen, which defines its parts."""
    keys = {part.key for part in chart.bars} - {_REST}
    for section in report.sections:
        for item in section.blocks:
            if isinstance(item, Bars) and keys <= {part.key for part in item.bars}:
                return section.slug
    return ""


def _reported_section(section: Section, content: _Content) -> _Section:
    """Draw a section of the report; sections made by other options have no command."""
    prints = command(content.report)
    style_of_tables = GridStyle(
        top=content.options.top,
        slug=section.slug,
        caption=section.title,
        most=content.carried.rows,
        command=f"{prints} --section {section.slug} --format csv" if prints else "",
        has_script=True,
        codes=frozenset(item.code for item in content.report.findings),
    )
    blocks = blocks_for_people(section.blocks)
    if content.report.schema == TREND:  # its figure shows them
        blocks = [item for item in blocks if not isinstance(item, Series)]
    drawn = joined(block(item, style_of_tables) for item in blocks)
    return _Section(section.slug, section.title, drawn, has_command=section.slug not in {WHY, GATES})
