"""Elements of HTML and SVG: what is in them is escaped unless it is markup already."""

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
    """``<tag attribute="value">children</tag>``.

    Args:
        tag: Name of the element.
        children: Texts, which are escaped, and markup.
        attributes: Their names have hyphens for underscores; ``class_``, ``for_``, ``type_`` and ``id_`` stand for
            words of Python. ``None`` and ``False`` leave an attribute out, ``True`` gives it no value.
    """
    opened = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    if tag in _VOID:
        return Markup(opened)  # noqa: S704 (every value is escaped)
    return Markup(f"{opened}{''.join(map(escape, children))}</{tag}>")  # noqa: S704 (every child is escaped)


def joined(parts: Iterable[str]) -> Markup:
    """Texts and markup, one after the other."""
    return Markup("").join(parts)


def shown(text: str) -> str:
    """A text from a trace: on one line, of bounded length, with nothing in it that reorders its neighbours."""
    return visible(bounded(text))


def line(text: str) -> str:
    """A sentence or title: its line breaks become spaces, the rest as :func:`shown`."""
    return sentence(bounded(text))


def prose(text: str) -> Markup:
    """A sentence for people; lines do not end between a number and its unit."""
    return Markup(_BEFORE_UNIT.sub("&nbsp;", str(escape(line(text)))))  # noqa: S704 (it is escaped)


def number(value: float) -> str:
    """A length or position in a drawing: two digits after the point are enough."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = _OF_PYTHON.get(name) or name.replace("_", "-")
    return f" {written}" if value is True else f' {written}="{escape(value)}"'
