"""All renderers, sorted by name. One is loaded when it is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from traceviz.core.errors import UsageError
from traceviz.render.options import Renderer

_CLASSES = {
    "csv": "csv:CsvRenderer",
    "github": "github:GitHubRenderer",
    "html": "html.renderer:HtmlRenderer",
    "json": "json:JsonRenderer",
    "junit": "junit:JUnitRenderer",
    "markdown": "markdown:MarkdownRenderer",
    "svg": "svg.renderer:SvgRenderer",
    "terminal": "terminal.renderer:TerminalRenderer",
}
"""Module and class of each renderer, by its name."""

FORMATS: tuple[str, ...] = tuple(_CLASSES)
"""Names of all renderers."""


def check_format(name: str) -> None:
    """Refuse a format that does not exist, without loading those that do.

    Raises:
        UsageError: there is no such renderer; the error lists those that exist.
    """
    if name not in _CLASSES:
        raise UsageError.unknown("output format", name, FORMATS)


@cache
def renderer(name: str) -> Renderer:
    """The renderer of this name.

    Raises:
        UsageError: there is no such renderer; the error lists those that exist.
    """
    check_format(name)
    module, _, class_name = _CLASSES[name].partition(":")
    loaded: Renderer = getattr(import_module(f"traceviz.render.{module}"), class_name)()
    return loaded
