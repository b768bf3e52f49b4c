"""The page: one document with its style, its script and the report that it shows, allowed to load nothing.

Its parts, from the top: what ran, the verdict, where the time went, what may take it, findings, pictures, all
sections, notes. Without script everything is there to be read; the script sorts, filters, folds and copies.
"""

from __future__ import annotations

import shlex

from markupsafe import Markup

from traceviz.pictures.pictures import Pictures
from traceviz.render.first_screen import first_screen
from traceviz.render.html.components.bars import bars
from traceviz.render.html.components.blocks import block
from traceviz.render.html.components.candidates import candidates
from traceviz.render.html.components.colors import properties
from traceviz.render.html.components.element import element, joined, shown
from traceviz.render.html.components.facts import facts
from traceviz.render.html.components.findings import finding
from traceviz.render.html.components.grid import GridStyle
from traceviz.render.html.components.notes import notes, skipped
from traceviz.render.html.inline import content_hash, script, style
from traceviz.render.html.parts import Part, parts_of
from traceviz.render.json import compact
from traceviz.render.options import RenderOptions, select
from traceviz.render.rows import absence, blocks_for_people, by_time_at_stake
from traceviz.report import COMPARISON, LISTING, POPULATION, SCHEMA, TREND, Report, Section, Severity
from traceviz.visible import sentence

_KINDS = {COMPARISON: "Comparison", LISTING: "Traces", POPULATION: "Archive report", TREND: "Trend"}
_POLICY = "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'"


def page(report: Report, options: RenderOptions, pictures: Pictures | None = None) -> str:
    """The whole page, ended by a newline; ``pictures`` are drawn where there are some."""
    report = select(report, options.sections)
    parts = parts_of(pictures)
    styles = properties(":root") + style(("components.css", "style.css", *(f"{part.name}.css" for part in parts)))
    scripts = script("main.js", *(f"{part.name}-main.js" for part in parts))
    head = _head(report, styles, scripts)
    body = _body(report, options, pictures, parts, scripts)
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _head(report: Report, styles: str, scripts: str) -> Markup:
    policy = _POLICY.format(content_hash(styles), content_hash(scripts))
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{_source(report)} · traceviz"),
        _raw("style", styles),
    )


def _raw(tag: str, text: str, **attributes: str) -> Markup:
    """An element whose text a browser takes as it is: a text of this package, or JSON without ``<``."""
    return element(tag, Markup(text), **attributes)  # noqa: S704


def _source(report: Report) -> str:
    found = next((fact.value for fact in report.run if fact.key == "source" and fact.value), None)
    return shown(str(found)) if found else kind(report)


def kind(report: Report) -> str:
    """What the document is, in a word or two."""
    return _KINDS.get(report.schema, "Trace report")


def command(report: Report) -> str:
    """The command that prints the report, without options; empty where a file name alone does not tell it."""
    return f"traceviz report {shlex.quote(_source(report))}" if report.schema == SCHEMA else ""


def _body(
    report: Report, options: RenderOptions, pictures: Pictures | None, parts: tuple[Part, ...], scripts: str
) -> Markup:
    sections = [("tv-verdict", "", _verdict(report)), *_reported(report, pictures)]
    sections += [(part.name, part.title, part.markup(pictures)) for part in parts if pictures is not None]
    sections += [(section.slug, section.title, _blocks(section, options)) for section in report.sections]
    sections += _ends(report)
    present = [(slug, title, content) for slug, title, content in sections if content]
    main = element("main", joined(_section(*item) for item in present), id_="tv-main")
    links = joined(
        element("li", element("a", sentence(title), href=f"#{shown(slug)}")) for slug, title, _ in present if title
    )
    navigation = element("nav", element("ul", links), class_="tv-nav", aria_label="Sections")
    return element(
        "body",
        element("a", "Skip to the report", class_="tv-skip", href="#tv-main"),
        _banner(report),
        element("div", navigation, main, class_="tv-layout"),
        element("div", class_="tv-live tv-unseen", aria_live="polite", role="status"),
        _raw("script", compact(report), type="application/json", id="tv-report"),
        _raw("script", scripts, type="module"),
        data_command=command(report),
    )


def _banner(report: Report) -> Markup:
    about = facts(fact for fact in report.run if fact.value is not None and fact.key != "source")
    return element(
        "header",
        element("p", f"traceviz · {kind(report)}", class_="tv-kind"),
        element("h1", _source(report)),
        about,
        class_="tv-banner",
    )


def _section(slug: str, title: str, content: Markup) -> Markup:
    name = shown(slug)
    heading = element("h2", sentence(title), id_=f"{name}-heading") if title else ""
    label = f"{name}-heading" if title else None
    return element("section", heading, content, class_="tv-section", id_=name, data_slug=name, aria_labelledby=label)


def _verdict(report: Report) -> Markup:
    return element("p", sentence(report.verdict.sentence), class_="tv-verdict") if report.verdict.sentence else Markup()


def _reported(report: Report, pictures: Pictures | None) -> list[tuple[str, str, Markup]]:
    """What is said first: where the time went, what may take it, and what to do about it."""
    charts = first_screen(report).bars if report.schema == SCHEMA else ()
    places = pictures.places if pictures is not None else ()
    found = joined(
        finding(
            item,
            [place for place in places if place.code == item.code],
            is_open=position == 0 and item.severity is not Severity.INFO,
        )
        for position, item in enumerate(by_time_at_stake(report.findings))
    )
    why = candidates(report.verdict)
    folded = (
        element("details", element("summary", "What may take the time"), why, class_="tv-folded") if why else Markup()
    )
    return [
        ("tv-bars", "Where the time went", joined(bars(chart) for chart in charts) + folded),
        ("findings", "Findings", found),
    ]


def _blocks(section: Section, options: RenderOptions) -> Markup:
    style_of_tables = GridStyle(options.top, section.slug, section.title)
    return joined(block(item, style_of_tables) for item in blocks_for_people(section.blocks))


def _ends(report: Report) -> list[tuple[str, str, Markup]]:
    absent = absence(report)
    return [
        ("tv-skipped", f"{absent[0].upper()}{absent[1:]}", skipped(report.skipped)),
        ("notes", "Notes", notes(report.notes)),
    ]
