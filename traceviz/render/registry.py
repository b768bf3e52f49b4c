"""All renderers, sorted by name. Importing this loads neither rich nor anything else that is slow."""

from __future__ import annotations

from traceviz.errors import UsageError
from traceviz.render.csv import CsvRenderer
from traceviz.render.github import GitHubRenderer
from traceviz.render.json import JsonRenderer
from traceviz.render.junit import JUnitRenderer
from traceviz.render.markdown import MarkdownRenderer
from traceviz.render.options import Renderer
from traceviz.render.terminal.renderer import TerminalRenderer

RENDERERS: tuple[Renderer, ...] = (
    CsvRenderer(),
    GitHubRenderer(),
    JsonRenderer(),
    JUnitRenderer(),
    MarkdownRenderer(),
    TerminalRenderer(),
)


def renderer(name: str) -> Renderer:
    """The renderer of this name.

    Raises:
        UsageError: there is no such renderer; the error lists those that exist.
    """
    for candidate in RENDERERS:
        if candidate.name == name:
            return candidate
    raise UsageError.unknown("output format", name, (candidate.name for candidate in RENDERERS))
