"""Text from a trace is data: these functions make it harmless to look at, whatever it holds."""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
ELLIPSIS = "…"
_MARKS_PER_CHARACTER = 2
_CONTROL_PICTURES = 0x2400
_DEEPEST_NESTING = 8
_SIGNATURE = re.compile(r"^void |<|\w\(.*\)$")
_NAMESPACES = re.compile(r"(?<!\w)(?:(?:(?!const::)[A-Za-z_]\w*|\(anonymous namespace\)|<unnamed>)::)+")
_INNERMOST_PARENTHESES = re.compile(r"\([^()]*\)")
_NUMBERED_LAMBDA = re.compile(r"\[lambda\([^()]*\) \(instance (\d+)\)\]")
_LAMBDA_NOISE = re.compile(r"::λ1\b|::\[lambda\s*\]|::operator\s*(?:const\b)?")


def visible(text: str) -> str:
    """``text`` on one line, with nothing in it that moves the cursor, changes colour or reorders its neighbours.

    Control characters become their pictures (newline ``␊``, escape ``␛``), other invisible ones (bidirectional
    overrides, joiners, variation selectors, lone surrogates) a replacement character, exotic spaces a space;
    of combining marks stacked on one character two are kept.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if marks <= _MARKS_PER_CHARACTER:
            shown.append(_visible_character(character))
    return "".join(shown)


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
    """A sentence for people: line breaks and runs of spaces become one space, the rest as :func:`visible`."""
    return visible(" ".join(text.split()))


def simplify_signature(name: str) -> str:
    """A C++ signature without return types, namespaces, parameters and casts; any other name unchanged.

    ``void at::native::f<(int)4, at::Add<float>>(int, char*)`` becomes ``f<4, Add<float>>``. Template arguments stay,
    and so do the numbers of lambdas after the first (``::λ2``): they tell the instances of one kernel apart.
    """
    if not _SIGNATURE.search(name):
        return name
    short = _NAMESPACES.sub("", _NUMBERED_LAMBDA.sub(r"λ\1", name))
    for _ in range(_DEEPEST_NESTING):
        short, removed = _INNERMOST_PARENTHESES.subn("", short)
        if not removed:
            break
    short = _LAMBDA_NOISE.sub("", short).replace("void ", "").strip()
    return short or name
