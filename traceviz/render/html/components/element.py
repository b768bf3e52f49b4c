"""Elements of HTML and SVG; their content is escaped unless it is already markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

from traceviz.core.sanitize import bounded, sentence, visible

Attribute = str | int | float | bool | None
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|min|h|[kMGT]?B|[kMG]?J)(?![^\W_]))")
_VOID = frozenset({"input", "meta", "br", "hr", "col"})
_OF_PYTHON = {"class_": "class", "for_": "for", "type_": "type", "id_": "id"}


def element(tag: str, *children: str, **attributes: Attribute) -> Markup:
    """Return ``<tag attribute="value">children</tag>``.

    Args:
        tag: Name of the element.
        children: Texts, which are escaped, and markup.
        attributes: Underscores in names become hyphens; ``class_``, ``for_``, ``type_`` and ``id_`` stand for Python
            keywords and built-ins. ``None`` and ``False`` omit an attribute, ``True`` gives it no value.
    """
    opened = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    if tag in _VOID:
        return Markup(opened)  # noqa: S704 (every value is escaped)
    return Markup(f"{opened}{''.join(map(escape, children))}</{tag}>")  # noqa: S704 (every child is escaped)


def joined(parts: Iterable[str]) -> Markup:
    """Concatenate texts and markup."""
    return Markup("").join(parts)


def shown(text: str) -> str:
    """Return text from a trace on one line, of bounded length, without characters that reorder the text around it."""
    return visible(bounded(text))


def line(text: str) -> str:
    """Return a sentence or title on one line: line breaks become spaces, the rest as in :func:`shown`."""
    return sentence(bounded(text))


def prose(text: str) -> Markup:
    """Return a readable sentence whose lines do not break between a number and its unit."""
    return Markup(_BEFORE_UNIT.sub("&nbsp;", str(escape(line(text)))))  # noqa: S704 (it is escaped)


def number(value: float) -> str:
    """Format a length or position in a drawing; two decimals are enough."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = _OF_PYTHON.get(name) or name.replace("_", "-")
    return f" {written}" if value is True else f' {written}="{escape(value)}"'
