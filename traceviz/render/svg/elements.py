"""Elements of SVG, their colours, and the widths of texts."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from traceviz.core.sanitize import bounded, visible
from traceviz.render import palette
from traceviz.render.palette import Color

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif"
"""The font of the reader's system; SVG in papers uses the first of these that the program knows."""


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour by its name in pages, the custom property ``--tv-NAME``."""

    name: str
    color: Color


BACKGROUND = Ink("background", palette.BACKGROUND)
TEXT = Ink("text", palette.TEXT)
QUIET = Ink("quiet", palette.QUIET)
LINE = Ink("line", palette.LINE)
GOOD = Ink("good", palette.GOOD)
BAD = Ink("bad", palette.BAD)


def inks(keys: Iterable[str]) -> dict[str, Ink]:
    """Return the colour of each key: its own, or series colours in the order in which keys without one appear."""
    found: dict[str, Ink] = {}
    unknown = 0
    for key in keys:
        if key in found:
            continue
        if key in palette.COLORS:
            found[key] = Ink(key.replace("_", "-"), palette.COLORS[key])
        else:
            number = unknown % len(palette.SERIES)
            found[key] = Ink(f"series-{number}", palette.SERIES[number])
            unknown += 1
    return found


Attribute = str | float | Ink | None


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its attributes in order, and elements or text inside. Its text is already sanitized."""

    tag: str
    attributes: tuple[tuple[str, Attribute], ...] = ()
    children: tuple[Element | str, ...] = ()


def element(tag: str, *children: Element | str, **attributes: Attribute) -> Element:
    """Create an element; ``_`` in names of attributes is ``-``. Attributes of ``None`` are omitted."""
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    harmless = (visible(bounded(child)) if isinstance(child, str) else child for child in children)
    return Element(tag, tuple((name, value) for name, value in named if value is not None), tuple(harmless))


def group(*children: Element, **attributes: Attribute) -> Element:
    """Group elements that have attributes in common."""
    return element("g", *children, **attributes)


def text(x: float, y: float, content: str, **attributes: Attribute) -> Element:
    """Create a line of text that starts at ``x`` on the base line ``y``."""
    return element("text", content, x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: Attribute) -> Element:
    """Create a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def rect(x: float, y: float, width: float, height: float, said: str = "", **attributes: Attribute) -> Element:
    """Create a rectangle with text on hover."""
    told = (element("title", said),) if said else ()
    return element("rect", *told, x=x, y=y, width=width, height=height, **attributes)


def number(value: float) -> str:
    """Format a coordinate to a hundredth of a pixel."""
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def written(element: Element, *, standalone: bool) -> str:
    """Return the text of an element: with colours of its own, or with those of the page around it."""
    return "".join(_pieces(element, standalone=standalone))


def used(element: Element) -> Iterator[tuple[str, Ink]]:
    """Return each attribute with a colour in an element and the elements inside it."""
    yield from ((name, value) for name, value in element.attributes if isinstance(value, Ink))
    for child in element.children:
        if isinstance(child, Element):
            yield from used(child)


def _pieces(element: Element, *, standalone: bool) -> Iterator[str]:
    yield f"<{element.tag}"
    classes = []
    for name, value in element.attributes:
        if isinstance(value, Ink):
            classes.append(_class_name(name, value))
            value = value.color.light if standalone else f"var(--tv-{value.name}, {value.color.light})"  # noqa: PLW2901
        yield f" {name}={quoteattr(value if isinstance(value, str) else number(value or 0))}"
    if classes and standalone:
        yield f' class="{" ".join(classes)}"'
    if not element.children:
        yield "/>"
        return
    yield ">"
    for child in element.children:
        yield from (escape(child),) if isinstance(child, str) else _pieces(child, standalone=standalone)
    yield f"</{element.tag}>"


def _class_name(attribute: str, ink: Ink) -> str:
    return f"tv-{attribute}-{ink.name}"


def dark_style(element: Element) -> str:
    """Return rules that give the colours of ``element`` their dark values if the reader's pages are dark.

    Its light values are attributes, which these rules override. Programs without support for rules show the light
    figure.
    """
    colours = dict.fromkeys(used(element))
    rules = "".join(f".{_class_name(name, ink)}{{{name}:{ink.color.dark}}}" for name, ink in colours)
    return f"@media (prefers-color-scheme:dark){{{rules}}}"


def identity(content: str) -> str:
    """Return a short name that is the same for the same content."""
    return f"tv-{hashlib.sha256(content.encode()).hexdigest()[:10]}"


_WIDTHS = {
    **dict.fromkeys("'ijlIJ", 0.29),
    **dict.fromkeys(" ,./:;\\|f-·", 0.35),
    **dict.fromkeys('()[]t!rsz"*_`?', 0.45),
    **dict.fromkeys("ckLFPTvxyaoeYESbdghnpqu0123456789${}µ", 0.63),
    **dict.fromkeys("KAVBRXZ", 0.69),
    **dict.fromkeys("CUHNDG&OQw", 0.79),
    **dict.fromkeys("#+<=>^~×\N{MINUS SIGN}M", 0.86),
    **dict.fromkeys("%mW@", 1.0),
}
_OTHER, _WIDE = 0.8, 1.05
"""Widths of other characters, and of wide ones and pictures of control characters, in font sizes."""
BOLD = 1.13
"""Factor by which bold letters are wider."""
ELLIPSIS = "…"
_AT_START = 0.6
"""Part of a shortened name that stands before an ellipsis inside it."""


def width_of(text: str, size: float) -> float:
    """Return an upper bound of the width of ``text`` in pixels at a font size."""
    return size * sum(map(_width, text))


def shortened(text: str, most: float, size: float) -> str:
    """Sanitize ``text`` and limit it to ``most`` pixels; an ellipsis replaces the end of longer text."""
    text = visible(bounded(text))
    if width_of(text, size) <= most:
        return text
    return _start(text, most / size - _width(ELLIPSIS)).rstrip() + ELLIPSIS


def shortened_inside(text: str, most: float, size: float) -> str:
    """Shorten ``text`` likewise, with the ellipsis inside: names of kernels and files often differ at their ends."""
    text = visible(bounded(text))
    if width_of(text, size) <= most:
        return text
    room = most / size - _width(ELLIPSIS)
    start = _start(text, room * _AT_START).rstrip()
    end = _start(text[::-1], room - sum(map(_width, start)))[::-1].lstrip()
    return f"{start}{ELLIPSIS}{end}"


def _start(text: str, room: float) -> str:
    """Return the characters that fit ``room`` font sizes."""
    for kept, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:kept]
    return text


def wrapped(text: str, most: float, size: float) -> list[str]:
    """Break ``text`` into lines of at most ``most`` pixels; a longer word is shortened."""
    return list(_lines(visible(bounded(text)).split(), most, size))


def _lines(words: Iterable[str], most: float, size: float) -> Iterator[str]:
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and width_of(longer, size) > most:
            yield shortened(line, most, size)
            line = word
        else:
            line = longer
    if line:
        yield shortened(line, most, size)


def _width(character: str) -> float:
    known = _WIDTHS.get(character)
    if known is not None:
        return known
    if unicodedata.combining(character):
        return 0.0
    wide = unicodedata.east_asian_width(character) in "WF" or character in "…\N{REPLACEMENT CHARACTER}"
    return _WIDE if wide else _OTHER
