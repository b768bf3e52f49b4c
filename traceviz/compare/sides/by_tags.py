"""Runs grouped into sides by their tags: every combination of values that occurs is a side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from traceviz.compare.sides.basis import failure
from traceviz.compare.sides.sides import Side, grouping
from traceviz.core.errors import UsageError
from traceviz.report import Report

Key = tuple[str, ...]
BASE_NAMES = ("base", "baseline", "before", "control", "default", "reference")
"""Group names and tag values that make a side the base."""
OF_WORK = frozenset(
    {"arch", "architecture", "benchmark", "data", "dataset", "model", "net", "network", "program", "project", "task"}
    | {"workload"}
)
"""Tags whose values are programs that do different work."""
_SWITCH = frozenset({"false", "no", "none", "off", "on", "true", "yes"})
"""Values that are unclear without their tag."""


def sides_by(
    reports: Iterable[tuple[str, Report]], by: Sequence[str], base: str = "", *, in_order: bool = False
) -> tuple[list[Side], list[str]]:
    """Group runs.

    Args:
        reports: Names and reports of the runs.
        by: Tags. Without such tags, ``framework`` and ``devices`` come from the trace: the framework, and the number of
            devices that computed.
        base: Values of the side that the others are compared with, separated by commas, or its name. If empty, the side
            with a value of :data:`BASE_NAMES`, else the first.
        in_order: True if the user gave the runs in order: the first side is then that of the first run, else that of
            the smallest values.

    Returns:
        The base, and the other sides, numbers sorted by size; and the names of runs that lack one of the tags.

    Raises:
        UsageError: no run has the tags, or there is no such base.
    """
    groups: dict[Key, list[Report]] = {}
    left_out: list[str] = []
    known: set[str] = set()
    for name, report in reports:
        tagged = grouping(report)
        known |= tagged.keys()
        if all(tag in tagged for tag in by):
            groups.setdefault(tuple(tagged[tag] for tag in by), []).append(report)
        else:
            left_out.append(name)
    if not groups:
        fix = f"Known: {', '.join(sorted(known))}." if known else "Tag runs with `traceviz collect --tag KEY=VALUE`."
        raise UsageError(f"No run has the tag{'s' if len(by) > 1 else ''} {', '.join(by)}.", fix=fix)
    alive = [key for key in groups if not all(map(failure, groups[key]))] or list(groups)
    ordered = sorted(groups, key=lambda key: tuple(map(natural, key)))
    sides = {", ".join(key): Side(", ".join(map(tag_label, by, key)), tuple(groups[key])) for key in ordered}
    if not base:
        sequence, words = (list(groups), "the first given") if in_order else (ordered, "the smallest")
        key, why = _choose_base([key for key in ordered if key in alive], next(key for key in sequence if key in alive))
        passed_over = "" if sequence[0] in alive else " that did not fail"
        chosen = replace(sides[", ".join(key)], why_base=why or f"{words}{passed_over}")
        return [chosen, *(side for values, side in sides.items() if values != ", ".join(key))], left_out
    values = ", ".join(_strip_tag(part.strip(), by) for part in base.split(","))
    return with_base(list(sides.values()), sides[values].label if values in sides else base), left_out


def _choose_base(keys: Sequence[Key], first: Key) -> tuple[Key, str]:
    """Return the default base and the reason: the side with the most values in :data:`BASE_NAMES`.

    All tags are searched. Of sides with equally many such values, the first is the base.
    """
    named = {key: sum(value.lower() in BASE_NAMES for value in key) for key in (first, *keys)}
    most = max(named.values())
    if not most:
        return first, ""
    return next(key for key, count in named.items() if count == most), "by its name"


def _strip_tag(part: str, by: Sequence[str]) -> str:
    """Return the value ``32`` for ``32`` and for ``batch=32``."""
    tag, equals, value = part.partition("=")
    return value if equals and tag in by else part


def tag_label(tag: str, value: str) -> str:
    """Return ``torch`` without its tag, but ``batch=32`` and ``cache=on`` with it."""
    return value if value[:1].isalpha() and value.lower() not in _SWITCH else f"{tag}={value}"


def with_base(sides: Sequence[Side], base: str) -> list[Side]:
    """Move the side called ``base`` to the front; keep the order of the others.

    Raises:
        UsageError: there is no such side.
    """
    if not base:
        return list(sides)
    first = next((side for side in sides if side.label == base), None)
    if first is None:
        raise UsageError.unknown("side", base, (side.label for side in sides))
    return [first, *(side for side in sides if side is not first)]


def natural(value: str) -> tuple[tuple[float, str], ...]:
    """Return a sort key that puts 8 before 64, and numbers before words."""
    pieces = (piece for piece in re.split(r"(\d+)", value) if piece)
    return tuple((float(piece), "") if piece.isdecimal() else (float("inf"), piece) for piece in pieces)
