"""Steps that do different amounts of work: compared by one unit of it, as a tag of the runs says how many they are."""

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
    """What one unit of ``tag`` is: of a batch a sample, of tokens a token."""
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
    said = list(dict.fromkeys(tags(report).get(tag) for report in side.reports))
    if None in said:
        raise UsageError(
            f"--per {tag}: {side.label} has no tag {tag!r}.",
            "How much work its steps do is not known.",
            f"Record it with `traceviz collect --tag {tag}=NUMBER`.",
        )
    if len(said) > 1:
        values = " and ".join(str(value) for value in said)
        raise UsageError(
            f"--per {tag}: runs of {side.label} have {values}.", "One side does one work.", "Make a side of each."
        )
    return _positive(str(said[0]), side.label, tag)


def _positive(text: str, label: str, tag: str) -> Fraction:
    try:
        units = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        units = Fraction(0)
    if units <= 0:
        raise UsageError(f"--per {tag}: {label} has {tag}={text}, which is no number above zero.")
    return units
