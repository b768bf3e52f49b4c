"""Colours of a page as properties of its style sheet, so that they follow its theme."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from traceviz.render.palette import (
    ACCENT,
    BACKGROUND,
    BAD,
    COLORS,
    GOOD,
    LINE,
    PANEL,
    QUIET,
    SERIES,
    TEXT,
    WARNING,
    Color,
)

_OF_PAGES = {
    "background": BACKGROUND,
    "text": TEXT,
    "quiet": QUIET,
    "line": LINE,
    "panel": PANEL,
    "accent": ACCENT,
    "good": GOOD,
    "bad": BAD,
    "warning": WARNING,
}


_GREY = frozenset({"other", "unexplained", "unsampled", "profiler"})


def fill(key: str, position: int) -> str:
    """Return the colour of ``key``; for an unknown key, the series colour of its ``position``."""
    return f"var({_property(key)})" if key in COLORS else f"var(--tv-series-{position % len(SERIES)})"


def fills(keys: Sequence[str]) -> list[str]:
    """Return the colours of ``keys``, which are drawn next to each other.

    The first known key of a colour has it. Others take series colours that no known key uses. Keys for other and
    unexplained time may all be grey.
    """
    first = {COLORS[key]: key for key in reversed(keys) if key in COLORS}
    free = cycle([number for number, color in enumerate(SERIES) if color not in first] or range(len(SERIES)))
    return [
        f"var({_property(key)})"
        if key in COLORS and (key == first[COLORS[key]] or key in _GREY)
        else f"var(--tv-series-{next(free)})"
        for key in keys
    ]


def properties(root: str) -> str:
    """Return all colours as custom properties of the selector ``root``, for light and dark pages."""
    light = _declared({name: color.light for name, color in _colors().items()})
    dark = _declared({name: color.dark for name, color in _colors().items()})
    return (
        f"{root} {{\n  color-scheme: light;\n{light}}}\n"
        f"@media (prefers-color-scheme: dark) {{\n"
        f'{root}:not([data-theme="light"]) {{\n  color-scheme: dark;\n{dark}}}\n}}\n'
        f'{root}[data-theme="dark"] {{\n  color-scheme: dark;\n{dark}}}\n'
    )


def properties_in_others(root: str) -> str:
    """Return the same for foreign pages: dark if the page declares it, regardless of the system's preference."""
    light = _declared({name: color.light for name, color in _colors().items()})
    dark = _declared({name: color.dark for name, color in _colors().items()})
    dark_roots = ",\n".join(f"{page} {root}" for page in _DARK_PAGES)
    return f"{root} {{\n  color-scheme: light;\n{light}}}\n{dark_roots} {{\n  color-scheme: dark;\n{dark}}}\n"


_DARK_PAGES = (
    '[data-jp-theme-light="false"]',  # JupyterLab, Jupyter Notebook
    ".vscode-dark",
    ".vscode-high-contrast:not(.vscode-high-contrast-light)",
    'html[theme="dark"]',  # Colab
    '[data-theme="dark"]',  # documentation, and pages of traceviz
    ".dark",  # marimo
)
"""Selectors of pages that declare that they are dark."""


def _colors() -> dict[str, Color]:
    named = {_property(key): color for key, color in (_OF_PAGES | COLORS).items()}
    return named | {f"--tv-series-{number}": color for number, color in enumerate(SERIES)}


def _property(key: str) -> str:
    return f"--tv-{key.replace('_', '-')}"


def _declared(values: dict[str, str]) -> str:
    return "".join(f"  {name}: {value};\n" for name, value in values.items())
