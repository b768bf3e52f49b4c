"""Parts of a page that draw pictures beside the report.

A part has three files: a module of this folder with a function from the pictures to markup, and in ``assets`` a style
sheet ``NAME.css`` and a script ``NAME-main.js``, which starts it. Pages without its pictures carry none of them.
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
        name: Stem of its style sheet and script, and where links of the page find it.
        title: Its heading.
        draws: Module of this folder and function that draws it.
        is_there: Whether the pictures have something for it.
    """

    name: str
    title: str
    draws: str
    is_there: Callable[[Pictures], bool]

    def markup(self, pictures: Pictures) -> Markup:
        """What it draws."""
        module, _, function = self.draws.partition(":")
        drawn: Markup = getattr(import_module(f"traceviz.render.html.{module}"), function)(pictures)
        return drawn


PARTS = (
    Part("timeline", "Timeline", "timeline:timeline_parts", lambda pictures: pictures.timeline is not None),
    Part("flame", "Flame graphs", "flames:flame_parts", lambda pictures: bool(pictures.flames)),
)
"""All of them, in the order of a page."""


def parts_of(pictures: Pictures | None) -> tuple[Part, ...]:
    """The parts for which there are pictures."""
    return tuple(part for part in PARTS if pictures is not None and part.is_there(pictures))
