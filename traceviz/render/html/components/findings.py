"""Findings with their evidence and advice; notes; sections that were not measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from traceviz.render.html.components.blocks import facts
from traceviz.render.html.components.element import element, joined, prose, shown
from traceviz.render.rows import not_measured, time_at_stake, times
from traceviz.render.verdict_text import advice_from_evidence
from traceviz.report import Finding, Note, Skipped
from traceviz.report.findings.record import FindingRecord
from traceviz.report.findings.registry import find_record
from traceviz.report.pictures.values import Place


def finding(item: Finding, places: Sequence[Place] = (), *, is_open: bool = False) -> Markup:
    """Draw one finding; ``places`` are its places on the timeline."""
    stake = time_at_stake(item)
    summary = element(
        "summary",
        element("span", item.severity.text, class_=f"tv-severity tv-{item.severity.value}"),
        " ",
        element("span", f"{shown(item.code)} {shown(item.slug)}", class_="tv-code"),
        " ",
        element("span", prose(item.message), class_="tv-message"),
        " ",
        element("span", prose(stake), class_="tv-stake") if stake else "",
    )
    body = (
        facts(item.evidence, item.code),
        _list("What to do", advice_from_evidence(item)),
        _places(places),
        _explained(item.code),
    )
    return element("details", summary, *body, class_="tv-finding", id_=f"finding-{shown(item.code)}", open=is_open)


def _list(heading: str, texts: Iterable[str]) -> Markup:
    entries = joined(element("li", prose(text)) for text in texts)
    return joined((element("h3", heading), element("ul", entries))) if entries else Markup()


def _places(places: Sequence[Place]) -> Markup:
    """Draw the buttons for places, which are hidden unless the page's script runs."""
    buttons = (
        element(
            "button",
            f"Show in the timeline: {shown(place.label)}",
            type_="button",
            class_="tv-button tv-show",
            hidden=True,
            data_start=place.start_ns,
            data_end=place.end_ns,
            data_lane=shown(place.lane),
        )
        for place in places
    )
    drawn = joined(buttons)
    return element("p", drawn) if drawn else Markup()


def _explained(code: str) -> Markup:
    """Return the text of ``traceviz explain``, without the advice; empty for an unknown finding."""
    known = find_record(code)
    if known is None:
        return Markup()
    return element("details", element("summary", f"What {known.code} means"), _meaning(known), class_="tv-explain")


def _meaning(known: FindingRecord) -> Markup:
    parts = ("What", known.what), ("Why it costs time", known.why), ("When it misleads", known.misleads)
    terms = joined(joined((element("dt", head), element("dd", text))) for head, text in parts)
    links = joined(element("li", element("a", text, href=text, rel="noreferrer noopener")) for text in known.references)
    read_on = joined((element("h3", "Read on"), element("ul", links))) if links else ""
    command = element("p", "In the terminal: ", element("code", f"traceviz explain {known.code}", class_="tv-command"))
    return joined((element("dl", terms, class_="tv-meaning"), read_on, command))


def notes(items: Iterable[Note]) -> Markup:
    """Draw a list of notes; empty if there are none."""
    entries = joined(
        element(
            "li",
            element("span", note.severity.text, class_=f"tv-severity tv-{note.severity.value}"),
            " ",
            prose(f"{note.message}{times(note)}"),
        )
        for note in items
    )
    return element("ul", entries, class_="tv-notes") if entries else Markup()


def skipped(items: tuple[Skipped, ...]) -> Markup:
    """Draw the absent sections, each with its reason; empty if there are none."""
    entries = joined(
        element("li", element("b", shown(names)), ": ", prose(reason)) for names, reason in not_measured(items)
    )
    return element("ul", entries, class_="tv-notes") if entries else Markup()
