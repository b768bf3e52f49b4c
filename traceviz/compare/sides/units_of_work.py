"""Units of work: steps that do different amounts of work are compared per unit, and a tag gives the units per step.

If no tag gives the batch, hooks in the program may have recorded it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from traceviz.compare.sides.sides import Side, fact, tags
from traceviz.core.errors import UsageError
from traceviz.report import MEASURES, Report

_BATCH = frozenset({"batch", "batchsize"})


def is_batch(tag: str) -> bool:
    """Return whether a tag is the batch size, with any separator between its words."""
    return tag.lower().replace("-", "").replace("_", "") in _BATCH


def batch_of(report: Report) -> tuple[str, str] | None:
    """Return the batch tag of a run and its value; without one, the batch that hooks recorded; else ``None``."""
    stated = next(((tag, size) for tag, size in tags(report).items() if is_batch(tag)), None)
    seen = fact(report, MEASURES, "batch")
    if stated is not None or not isinstance(seen, int | float) or seen <= 0:
        return stated
    return "batch", f"{seen:.15g}"


def _stated(report: Report, tag: str) -> str | None:
    """Return the value of ``tag``; for the batch, also the value that hooks recorded."""
    known = tags(report).get(tag)
    seen = batch_of(report) if known is None and is_batch(tag) else None
    return seen[1] if seen else known


def unit_of(tag: str) -> str:
    """Return the name of one unit of ``tag``: a sample of a batch, a token of tokens."""
    if is_batch(tag):
        return "sample"
    return tag.removesuffix("s") or tag


def per_unit(sides: Sequence[Side], tag: str) -> tuple[Side, ...]:
    """Return the sides with durations per unit of work.

    Raises:
        UsageError: a run lacks the tag, its value is not a number above zero, or runs of one side differ in it.
    """
    return tuple(replace(side, per=_units(side, tag)) for side in sides)


def _units(side: Side, tag: str) -> Fraction:
    values = list(dict.fromkeys(_stated(report, tag) for report in side.reports))
    if None in values:
        raise UsageError(
            f"--per {tag}: {side.label} has no tag {tag!r}.",
            "The amount of work per step is unknown.",
            f"Record it with `traceviz collect --tag {tag}=NUMBER`.",
        )
    if len(values) > 1:
        different = " and ".join(str(value) for value in values)
        raise UsageError(
            f"--per {tag}: runs of {side.label} have {different}.",
            "All runs of a side must do the same work.",
            "Make a side for each.",
        )
    text = str(values[0])
    try:
        units = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        units = Fraction(0)
    if units <= 0:
        raise UsageError(f"--per {tag}: {side.label} has {tag}={text}, which is not a number above zero.")
    return units
