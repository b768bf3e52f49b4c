"""Values that show themselves in notebooks.

A report knows nothing of pages: what draws it imports it, and nothing below imports what draws. So a value only says
that it can be drawn, and what kind it is; who draws stands above all of them (:mod:`traceviz.notebook.display`), and is
named to this module by the package itself. It is imported when a notebook shows the first value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any, ClassVar

_DRAWN_BY: list[Callable[[], ModuleType]] = []


def draw_with(load: Callable[[], ModuleType]) -> None:
    """Have values drawn by the module that ``load()`` returns once there is something to draw.

    It has two functions: ``html(value)`` gives a piece of a page that needs no script, ``text(value)`` a few lines.
    """
    _DRAWN_BY[:] = [load]


class Shown:
    """A value that Jupyter, VS Code and marimo show as a piece of a page, and a terminal as a few lines."""

    __slots__ = ()
    shown_as: ClassVar[str]
    """The kind of value, by which it is drawn."""

    def _repr_html_(self) -> str:
        """The value as HTML, as notebooks ask for it."""
        drawn: str = _DRAWN_BY[0]().html(self)
        return drawn

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The value by type of content, as Jupyter asks for it: all that are asked for, and not excluded."""
        made: dict[str, Callable[[], str]] = {
            "text/html": self._repr_html_,
            "text/plain": lambda: _DRAWN_BY[0]().text(self),
        }
        return {
            kind: make()
            for kind, make in made.items()
            if (not include or kind in include) and (not exclude or kind not in exclude)
        }
