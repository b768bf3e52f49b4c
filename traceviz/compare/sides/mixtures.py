"""Sides whose runs are not repeats of each other, and the tags in which these runs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from traceviz.compare.sides.by_tags import natural
from traceviz.compare.sides.sides import Side, tags

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
        f"runs of {side.label} differ in {_named(side, differing)}"
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


def _named(side: Side, differing: Sequence[str]) -> str:
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
