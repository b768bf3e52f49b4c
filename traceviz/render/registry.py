"""All renderers, sorted by name, then those of plugins. Each is loaded on first use."""

from __future__ import annotations

from operator import attrgetter
from typing import cast

from traceviz.core.errors import UsageError
from traceviz.core.registry import Registry
from traceviz.render.options import Renderer


def _accept(value: object) -> Renderer:
    """Return a renderer; for a class, return an instance."""
    made = value() if isinstance(value, type) else value
    if not isinstance(getattr(made, "name", None), str) or not callable(getattr(made, "render", None)):
        raise TypeError(f"{value!r} has no name and no method render(report, options)")
    return cast("Renderer", made)


RENDERERS: Registry[Renderer] = Registry(
    "output format",
    "traceviz.renderers",
    {
        "csv": "traceviz.render.csv:CsvRenderer",
        "github": "traceviz.render.ci:GitHubRenderer",
        "html": "traceviz.render.html.page:HtmlRenderer",
        "json": "traceviz.render.json:JsonRenderer",
        "junit": "traceviz.render.ci:JUnitRenderer",
        "markdown": "traceviz.render.markdown:MarkdownRenderer",
        "svg": "traceviz.render.svg.draw:SvgRenderer",
        "terminal": "traceviz.render.terminal.page:TerminalRenderer",
    },
    _accept,
    attrgetter("name"),
)
"""All renderers by name."""


def check_format(name: str) -> None:
    """Reject a format that does not exist, without loading any renderer.

    Raises:
        UsageError: there is no such renderer; the error lists those that exist.
    """
    if name not in RENDERERS:
        raise UsageError.unknown(RENDERERS.kind, name, RENDERERS.names())


renderer = RENDERERS.find
"""Return the renderer of a name; see :meth:`traceviz.core.registry.Registry.find`."""
