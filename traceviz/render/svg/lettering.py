"""How wide text will be, before anybody has drawn it.

The reader's system chooses the font. Widths here are those of DejaVu Sans, which is wider than the usual ones (Segoe
UI, San Francisco, Roboto, Arial): what fits by them, fits in those.
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
"""Bold letters are wider by this."""
ELLIPSIS = "…"
_AT_START = 0.6
"""Part of a name that is shortened inside that stands before the ellipsis."""


def width_of(text: str, size: float) -> float:
    """Pixels that ``text`` takes at most at a font size."""
    return size * sum(map(_width, text))


def shortened(text: str, most: float, size: float) -> str:
    """``text``, harmless and not wider than ``most`` pixels: the end of what is longer becomes an ellipsis."""
    text = visible(bounded(text))
    if width_of(text, size) <= most:
        return text
    return _start(text, most / size - _width(ELLIPSIS)).rstrip() + ELLIPSIS


def shortened_inside(text: str, most: float, size: float) -> str:
    """The same, with the ellipsis inside: names of kernels and files often differ at their ends."""
    text = visible(bounded(text))
    if width_of(text, size) <= most:
        return text
    room = most / size - _width(ELLIPSIS)
    start = _start(text, room * _AT_START).rstrip()
    end = _start(text[::-1], room - sum(map(_width, start)))[::-1].lstrip()
    return f"{start}{ELLIPSIS}{end}"


def _start(text: str, room: float) -> str:
    """The characters that fit ``room`` font sizes."""
    for kept, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:kept]
    return text


def wrapped(text: str, most: float, size: float) -> list[str]:
    """Lines of ``text``, none wider than ``most`` pixels; a word that is wider alone is shortened."""
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
