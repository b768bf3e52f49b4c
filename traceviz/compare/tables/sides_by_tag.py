"""Sides of a comparison arranged by tags for tables: ordered values of a tag, and a side's other tags."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from traceviz.compare.compare import Comparison
from traceviz.compare.sides.by_tags import natural, tag_label
from traceviz.compare.sides.sides import Side

Values = tuple[str, ...]


def values_of(side: Side, tags: Sequence[str]) -> Values:
    """Return the values of some tags of a side."""
    return tuple(side.groups.get(tag, "") for tag in tags)


def in_order(values: Iterable[str], first: str) -> list[str]:
    """Return distinct values: numbers by size, words with that of the base first."""
    return sorted(set(values), key=lambda value: (number_of(value) is None and value != first, natural(value)))


def number_of(value: str) -> float | None:
    """Return a tag value as a number; ``None`` if it is none."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def label_of(tags: Sequence[str], values: Values) -> str:
    """Return the label ``torch, batch=32``."""
    return ", ".join(map(tag_label, tags, values))


def grouped(comparison: Comparison, tags: Sequence[str]) -> dict[Values, list[Side]]:
    """Group sides by the values of some tags, in the order of those; without tags, all sides together."""
    base = comparison.sides[0]
    groups: dict[Values, list[Side]] = {}
    for side in comparison.sides:
        groups.setdefault(values_of(side, tags), []).append(side)
    places = {
        tag: in_order((side.groups.get(tag, "") for side in comparison.sides), base.groups.get(tag, "")) for tag in tags
    }
    ordered = sorted(
        groups, key=lambda values: [places[tag].index(value) for tag, value in zip(tags, values, strict=True)]
    )
    return {values: groups[values] for values in ordered}
