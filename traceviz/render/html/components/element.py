"""Elements of HTML with safe texts; names that show their long form, and terms that show their definition."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from markupsafe import Markup, escape

from traceviz.core.sanitize import bounded, sentence, visible
from traceviz.render.text import ELLIPSIS, simplify_signature

_ANY = "*"


@cache
def definition(key: str, slug: str = "") -> str:
    """Return the definition of the figure ``key`` of section (or finding) ``slug``; empty if it has none."""
    figures, of_sections = catalogue()
    exact = of_sections.get(slug, {}).get(key) or figures.get(key)
    return exact or next(
        (
            text
            for known, text in figures.items()
            if (known.endswith(_ANY) and key.startswith(known.removesuffix(_ANY)))
        ),
        "",
    )


@cache
def catalogue() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return the definitions by key, and those for a single section, by its slug."""
    text = files("traceviz").joinpath("data", "definitions.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return tables["figures"], tables["sections"]


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


_MOST = 120
_TAIL = 30


def name(text: str) -> Markup:
    """Draw a name: a signature without its boilerplate, a long name as its start and end.

    A shortened name can be opened to show all of it.
    """
    whole = shown(text)
    short = simplify_signature(whole)
    if len(short) > _MOST:
        short = f"{short[: _MOST - _TAIL]}{ELLIPSIS}{short[-_TAIL:]}"
    if short == whole:
        return escape(whole)
    return element("details", element("summary", short), element("span", whole), class_="tv-long")


def term(label: str, key: str, slug: str = "") -> Markup:
    """Draw the label of a figure, with its definition as title if the catalogue has one."""
    meaning = definition(key, slug)
    if not meaning:
        return element("span", shown(label))
    return element("span", shown(label), class_="tv-term", tabindex=0, title=meaning)
