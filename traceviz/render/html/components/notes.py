"""Warnings, and sections that were not measured."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from traceviz.render.html.components.element import element, joined, prose, shown
from traceviz.render.rows import not_measured, times
from traceviz.report import Note, Skipped


def notes(items: Iterable[Note]) -> Markup:
    """Draw a list of notes; empty if there are none."""
    entries = joined(
        element(
            "li",
            element("span", note.severity.value, class_=f"tv-severity tv-{note.severity.value}"),
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
