"""Functions that make text from a trace, a name or a library safe to display, for any content.

Every line of a page passes :func:`visible`, and every line of a message :func:`one_line`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Self

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MOST_CHARACTERS = 2000
"""Characters of the longest line of a message: enough for a path, a query and its position."""
_HEAD, _TAIL = 1300, 650
"""Characters that stay of a longer text; the rest is for the note on how many are left out."""
_MARKS_PER_CHARACTER = 2
_CONTROL_PICTURES = 0x2400
_ABSOLUTE_PATH = r"(?<![\w/.\]])(?:/|~/|[A-Za-z]:\\)[^\s'\",;()<>]+"
_LOOK_BACK = 100
"""A word at the cut is left out as a whole unless it is longer than this: no search finds half a secret."""


def visible(text: str) -> str:
    """Return ``text`` on one line, without characters that move the cursor, change colour or reorder their neighbours.

    Control characters become their pictures (newline ``␊``, escape ``␛``). Other invisible ones (bidirectional
    overrides, joiners, variation selectors, lone surrogates) become a replacement character, exotic spaces a space.
    Of combining marks stacked on one character, two are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    distinct = set(text)  # the work is done once per distinct character: a text may have a million
    marks = "".join(sorted(character for character in distinct if unicodedata.category(character) in {"Mn", "Me"}))
    if marks:
        anyone = f"[{re.escape(marks)}]"
        text = re.sub(f"({anyone}{{{_MARKS_PER_CHARACTER}}}){anyone}+", r"\1", text)
    return text.translate(
        {ord(character): shown for character in distinct if (shown := _visible_character(character)) != character}
    )


def _visible_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == 0x7F:
        return "␡"
    if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:  # would change the width of the character before
        return REPLACEMENT
    if character.isprintable():
        return character
    return " " if unicodedata.category(character) == "Zs" else REPLACEMENT


def sentence(text: str) -> str:
    """Return a sentence for display: line breaks and runs of spaces become one space, the rest as :func:`visible`."""
    return visible(" ".join(text.split()))


def bounded(text: str) -> str:
    """Return ``text`` with :data:`MOST_CHARACTERS` at most. A note replaces the middle of a longer text."""
    if len(text) <= MOST_CHARACTERS:
        return text
    head, tail = text[:_HEAD], text[-_TAIL:]
    end, start = head.rfind(" ", _HEAD - _LOOK_BACK), tail.find(" ", 0, _LOOK_BACK)
    head, tail = head[:end] if end >= 0 else head, tail[start + 1 :]
    return f"{head} … {len(text) - len(head) - len(tail):,} characters left out … {tail}"


def visible_json(text: str) -> str:
    """Return the same JSON, with an escape in place of every character that a terminal would obey and not show."""
    if text.isprintable():
        return text
    hidden = (character for character in set(text) if not character.isprintable() and character != "\n")
    return text.translate({ord(character): json.dumps(character)[1:-1] for character in hidden})


class Lines(str):
    """A message of several lines that traceviz made. Each line is safe, and quoted text stays on its line."""

    __slots__ = ()

    @classmethod
    def of(cls, *lines: str) -> Self:
        """Return these lines, each as :func:`one_line` returns it."""
        return cls("\n".join(visible(bounded(line)) for line in lines))


def one_line(text: str) -> str:
    """Return a message for display: :func:`bounded` and :func:`visible`; the line breaks of :class:`Lines` stay."""
    return text if isinstance(text, Lines) else visible(bounded(text))


def without_paths(text: str) -> str:
    """Return ``text`` on one line, with every absolute path replaced by ``[path]``: they name users and machines."""
    return re.sub(_ABSOLUTE_PATH, "[path]", " ".join(text.split()))
