"""Parts of a page that draw pictures in addition to the report.

A part has three files: a module of this folder with a function from the pictures to markup, and in ``assets`` a style
sheet ``NAME.css`` and a script ``NAME-main.js``, which starts it. Pages without its pictures include none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from markupsafe import Markup

from traceviz.report.pictures.pictures import Pictures


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
