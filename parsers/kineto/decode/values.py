"""Values of events: from the JSON text of a value, as it is in the file, to a Python value.

Both decoders use these functions for all values that are not plain, so that their results agree. They are called once
per distinct text, not once per event.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, Context, Decimal, InvalidOperation
from typing import Any

from traceviz.parsers.shared.json.texts import text_value
from traceviz.untrusted.json_documents import value_of

INT64 = 2**63
"""Exclusive bound of the tables' integers, positive and negative."""

_NOTHING = frozenset({b"null", b'""'})
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")
_MOST_DIGITS = 400  # numbers of traces are shorter, and long ones take quadratic time
_CUT = Context(prec=_MOST_DIGITS + 10, rounding=ROUND_DOWN)


class WrongValueError(ValueError):
    """A value of the wrong kind; the message states the problem."""


def _number_text(raw: bytes) -> str:
    """Return the text of a number, which may be written as a text.

    Raises:
        WrongValueError: it is not a number.
    """
    word = (text_value(raw) if raw.startswith(b'"') else raw.decode("ascii", "replace")) or ""
    word = word.strip()
    if len(word) > _MOST_DIGITS or not (_NUMBER.fullmatch(word) or _HEXADECIMAL.fullmatch(word)):
        raise WrongValueError("that are no number")
    return word


def _exact(word: str) -> Decimal | int:
    """Return the exact number.

    Raises:
        WrongValueError: its exponent is beyond all limits.
    """
    if _HEXADECIMAL.fullmatch(word):
        return int(word, 16)
    try:
        number = Decimal(word)
    except InvalidOperation as error:
        raise WrongValueError("out of range") from error
    if number.adjusted() > 30:
        raise WrongValueError("out of range")
    return number


def integer_value(raw: bytes) -> int | None:
    """Return a whole number, also written as a text, as a decimal or in hexadecimal; ``None`` for nothing.

    Raises:
        WrongValueError: it is not a whole number, or needs more than 64 bits.
    """
    if raw in _NOTHING:
        return None
    number = _exact(_number_text(raw))
    whole = int(number)
    if whole != number:
        raise WrongValueError("that are no whole number")
    return _within(whole)


def _within(number: int) -> int:
    if not -INT64 < number < INT64:
        raise WrongValueError("out of range")
    return number


def real_value(raw: bytes) -> float | None:
    """Return a number, also written as a text; ``None`` for nothing.

    Raises:
        WrongValueError: it is not a number, or infinite.
    """
    if raw in _NOTHING:
        return None
    word = _number_text(raw)
    number = float(int(word, 16)) if _HEXADECIMAL.fullmatch(word) else float(word)
    if not math.isfinite(number):
        raise WrongValueError("out of range")
    return number


def triple_value(raw: bytes) -> tuple[int, int, int] | None:
    """Return three whole numbers of 32 bits, ``[x, y, z]``; ``None`` for nothing.

    Raises:
        WrongValueError: the value is anything else.
    """
    if raw in _NOTHING:
        return None
    text = text_value(raw) or ""
    if not (text.startswith("[") and text.endswith("]")):
        raise WrongValueError("that are no list of three numbers")
    match [integer_value(part.strip().encode()) for part in text[1:-1].split(",")]:
        case [int(x), int(y), int(z)] if all(-(2**31) <= part < 2**31 for part in (x, y, z)):
            return x, y, z
    raise WrongValueError("that are no list of three numbers")


def time_value(raw: bytes) -> int:
    """Return the nanoseconds of a time in microseconds, exact; decimals beyond the third are cut.

    Raises:
        WrongValueError: it is not a number, or nanoseconds of 64 bits cannot hold it.
    """
    number = _exact(_number_text(raw))
    return _within(int(_CUT.scaleb(number, 3)) if isinstance(number, Decimal) else number * 1000)


def header_value(raw: bytes) -> Any:
    """Return the value of a member of the file.

    Raises:
        ValueError: it is not JSON, not even in a lenient sense, or is nested too deep.
    """
    if raw.startswith(b'"'):
        return text_value(raw)
    return value_of(raw.decode("utf-8", "replace"))
