"""Notebook representations (``_repr_html_``).

Reports do not import the drawing code, so values here only name their kind. The package passes the drawing module
(:mod:`traceviz.notebook.display`) to :func:`draw_with`. It is imported when a notebook shows the first value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any, ClassVar

_DRAWN_BY: list[Callable[[], ModuleType]] = []


def draw_with(load: Callable[[], ModuleType]) -> None:
    """Let the module that ``load()`` returns draw values. It is loaded at the first value.

    It has two functions: ``html(value)`` returns a part of a page that needs no script, ``text(value)`` a few lines.
    """
    _DRAWN_BY[:] = [load]


class Shown:
    """A value that Jupyter, VS Code and marimo show as a part of a page, and a terminal as a few lines."""

    __slots__ = ()
    shown_as: ClassVar[str]
    """Kind of the value, which selects how it is drawn."""

    def _repr_html_(self) -> str:
        """Return the value as HTML, for notebooks."""
        drawn: str = _DRAWN_BY[0]().html(self)
        return drawn

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Return the value by content type, for Jupyter: all types that are requested and not excluded."""
        made: dict[str, Callable[[], str]] = {
            "text/html": self._repr_html_,
            "text/plain": lambda: _DRAWN_BY[0]().text(self),
        }
        return {
            kind: make()
            for kind, make in made.items()
            if (not include or kind in include) and (not exclude or kind not in exclude)
        }
