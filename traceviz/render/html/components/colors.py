"""Colours of a page as properties of its style sheet, so that they follow its theme."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from traceviz.render.palette import ACCENT, BACKGROUND, BAD, COLORS, GOOD, LINE, PANEL, QUIET, SERIES, TEXT, WARNING

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


def fill(key: str, position: int) -> str:
    """Return the colour of ``key``; for an unknown key, the series colour of its ``position``."""
    return f"var({_property(key)})" if key in COLORS else f"var(--tv-series-{position % len(SERIES)})"


def fills(keys: Sequence[str]) -> list[str]:
    """Return the colours of ``keys``: their own, or series colours in the order in which keys without one appear."""
    unknown = count()
    return [fill(key, 0 if key in COLORS else next(unknown)) for key in keys]


def properties(root: str) -> str:
    """Return all colours as custom properties of the selector ``root``, for light and dark pages."""
    light, dark = _declared()
    return (
        f"{root} {{\n  color-scheme: light;\n{light}{_same()}}}\n"
        f"@media (prefers-color-scheme: dark) {{\n"
        f'{root}:not([data-theme="light"]) {{\n  color-scheme: dark;\n{dark}}}\n}}\n'
        f'{root}[data-theme="dark"] {{\n  color-scheme: dark;\n{dark}}}\n'
    )


def properties_in_others(root: str) -> str:
    """Return the same for foreign pages: dark if the page declares it, regardless of the system's preference."""
    light, dark = _declared()
    dark_roots = ",\n".join(f"{page} {root}" for page in _DARK_PAGES)
    return f"{root} {{\n  color-scheme: light;\n{light}{_same()}}}\n{dark_roots} {{\n  color-scheme: dark;\n{dark}}}\n"


_DARK_PAGES = (
    '[data-jp-theme-light="false"]',  # JupyterLab, Jupyter Notebook
    ".vscode-dark",
    ".vscode-high-contrast:not(.vscode-high-contrast-light)",
    'html[theme="dark"]',  # Colab
    '[data-theme="dark"]',  # documentation, and pages of traceviz
    ".dark",  # marimo
)
"""Selectors of pages that declare that they are dark."""


def _declared() -> tuple[str, str]:
    """Return the declarations of all colours, for light and for dark pages."""
    named = {_property(key): color for key, color in (_OF_PAGES | COLORS).items() if _FIRST.get(color, key) == key}
    named |= {f"--tv-series-{number}": color for number, color in enumerate(SERIES)}
    light = "".join(f"{name}:{color.light};" for name, color in named.items())
    return light, "".join(f"{name}:{color.dark};" for name, color in named.items())


_FIRST = {color: key for key, color in reversed(COLORS.items())}
"""The first key of each colour; the properties of the others refer to its property."""


def _same() -> str:
    """Return the declarations of keys that have the colour of another key, in any theme."""
    return "".join(
        f"{_property(key)}:var({_property(_FIRST[color])});" for key, color in COLORS.items() if _FIRST[color] != key
    )


def _property(key: str) -> str:
    return f"--tv-{key.replace('_', '-')}"
