"""Units of work: steps that do different amounts of work are compared per unit, and a tag gives the units per step.

If no tag gives the batch, hooks in the program may have recorded it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from traceviz.compare.sides.by_tags import natural
from traceviz.compare.sides.sides import Side, fact, tags
from traceviz.core.errors import UsageError
from traceviz.report import MEASURES, Report

REPEATS = frozenset({"rep", "repeat", "repetition", "round", "run", "seed", "trial"})
"""Tags that number repeats."""


def mixtures(base: Side, new: Side) -> Iterator[tuple[str, bool]]:
    """Yield the tags in which the runs of a side differ, and whether both sides mix the same.

    Tags of :data:`REPEATS` do not make a mixture, nor do tags that number the runs of a side from 0 or 1. Other numbers
    (1, 4 and 8 workers) are settings.

    Yields:
        ``runs of tf differ in variant (base, cache)`` for both sides in one sentence, and whether each has the same
        share of every combination.
    """
    mixed = [_mixed_tags(side) for side in (base, new)]
    words = [
        f"runs of {side.label} differ in {_list_values(side, differing)}"
        for side, differing in zip((base, new), mixed, strict=True)
        if differing
    ]
    if words:
        every = tuple(dict.fromkeys((*mixed[0], *mixed[1])))
        yield " and ".join(words), _shares(base, every) == _shares(new, every)


def _mixed_tags(side: Side) -> list[str]:
    known = dict.fromkeys(tag for report in side.reports for tag in tags(report))
    values = {tag: _values(side, tag) for tag in known if tag.lower() not in REPEATS}
    return [tag for tag, of_runs in values.items() if len(set(of_runs)) > 1 and not _counts(of_runs)]


def _list_values(side: Side, differing: Sequence[str]) -> str:
    return ", ".join(f"{tag} ({', '.join(sorted(set(_values(side, tag)), key=natural))})" for tag in differing)


def _shares(side: Side, differing: Sequence[str]) -> dict[tuple[str, ...], Fraction]:
    """Return the share of the runs with each combination of values."""
    counts = Counter(zip(*(_values(side, tag) for tag in differing), strict=True))
    return {key: Fraction(count, len(side.reports)) for key, count in counts.items()}


def _values(side: Side, tag: str) -> list[str]:
    return [tags(report).get(tag, "without") for report in side.reports]


def _counts(values: Sequence[str]) -> bool:
    """Return whether values number the runs: 1, 2, 3 or 0, 1, 2."""
    if not all(value.isdecimal() for value in values):
        return False
    numbers = sorted(map(int, values))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] <= 1


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


def _read_tag(report: Report, tag: str) -> str | None:
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
    values = list(dict.fromkeys(_read_tag(report, tag) for report in side.reports))
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
