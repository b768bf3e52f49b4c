"""Steps that do different amounts of work are compared by one unit of it: a tag states how many a step does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from traceviz.compare.sides.sides import Side, tags
from traceviz.errors import UsageError

_BATCH = frozenset({"batch", "batchsize"})


def is_batch(tag: str) -> bool:
    """Whether a tag is that of the batch size, however its words are separated."""
    return tag.lower().replace("-", "").replace("_", "") in _BATCH


def unit_of(tag: str) -> str:
    """Name of one unit of ``tag``: a sample of a batch, a token of tokens."""
    if is_batch(tag):
        return "sample"
    return tag.removesuffix("s") or tag


def per_unit(sides: Sequence[Side], tag: str) -> tuple[Side, ...]:
    """The sides with the durations of one unit of work each.

    Raises:
        UsageError: a run does not have the tag, it is no number above zero, or runs of one side differ in it.
    """
    return tuple(replace(side, per=_units(side, tag)) for side in sides)


def _units(side: Side, tag: str) -> Fraction:
    values = list(dict.fromkeys(tags(report).get(tag) for report in side.reports))
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
