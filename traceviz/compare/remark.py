"""Remarks on two sides, and the conclusions that they forbid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from traceviz.compare.sides.sides import Side
from traceviz.report import Severity

Forbids = Literal["", "verdict", "attribution", "kernels"]
"""The conclusion that a remark forbids."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the sides that affects their comparison.

    Args:
        code: Stable name of the remark.
        severity: ``error`` if it forbids something, ``warning`` if it may explain a difference.
        text: Text for people, without a full stop.
        forbids: The conclusion that it rules out; empty if it is only a caveat.
        brief: Short text shown next to the verdict, if it may explain a difference; else empty.
    """

    code: str
    severity: Severity
    text: str
    forbids: Forbids = ""
    brief: str = ""


def info(code: str, text: str) -> Remark:
    """Return a remark for information only."""
    return Remark(code, Severity.INFO, text)


def warning(code: str, text: str, brief: str = "") -> Remark:
    """Return a remark that may explain a difference."""
    return Remark(code, Severity.WARNING, text, brief=brief)


DEVICE = "device_compute"
"""Class of step time that every capture with a device measures, and no capture without one."""


def has_no_device(side: Side, other: Side) -> bool:
    """Return whether a device worked on the other side and none was captured on this one."""
    return DEVICE in other.measured and bool(side.measured) and DEVICE not in side.measured


INFERRED = "inferred"
"""First word of the sources of steps that the program does not declare."""


def is_inferred(side: Side) -> bool:
    """Return whether steps of a side were inferred from repetition."""
    return any(str(source).startswith(INFERRED) for source in side.facts("steps", "source"))


def in_capital(text: str) -> str:
    """Capitalise the first letter: ``Mean step``."""
    return text[:1].upper() + text[1:]


def in_words(parts: Iterable[str]) -> str:
    """Join texts to ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
