"""What is remarked on two sides, and what a remark makes impossible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from traceviz.compare.sides.sides import Side
from traceviz.report import Severity

Forbids = Literal["", "verdict", "attribution", "kernels"]
"""What a remark makes impossible."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the sides that bears on their comparison.

    Args:
        code: Stable name of the remark.
        severity: ``error`` where it forbids something, ``warning`` where it may explain a difference.
        text: For people, without a full stop.
        forbids: The conclusion that it rules out; empty where it only has to be borne in mind.
        brief: A few words for beside the verdict, where it may well explain a difference; else empty.
    """

    code: str
    severity: Severity
    text: str
    forbids: Forbids = ""
    brief: str = ""


def info(code: str, text: str) -> Remark:
    """Something to know."""
    return Remark(code, Severity.INFO, text)


def warning(code: str, text: str, brief: str = "") -> Remark:
    """Something that may explain a difference."""
    return Remark(code, Severity.WARNING, text, brief=brief)


DEVICE = "device_compute"
"""Class of step time that every capture of a device measures, and no capture without a device."""


def has_no_device(side: Side, other: Side) -> bool:
    """Whether a device worked on the other side, and none was captured on this one."""
    return DEVICE in other.measured and bool(side.measured) and DEVICE not in side.measured


INFERRED = "inferred"
"""First word of the sources of steps that the program does not declare."""


def is_inferred(side: Side) -> bool:
    """Whether steps of a side were inferred from what repeats."""
    return any(str(source).startswith(INFERRED) for source in side.facts("steps", "source"))


def in_words(parts: Iterable[str]) -> str:
    """``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
