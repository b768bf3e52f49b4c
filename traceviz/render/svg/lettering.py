"""Estimates of the width of text before it is drawn.

The reader's system chooses the font. Widths here are those of DejaVu Sans, which is wider than the usual fonts (Segoe
UI, San Francisco, Roboto, Arial). Text that fits these widths fits those fonts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from traceviz.core.sanitize import bounded, visible

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
