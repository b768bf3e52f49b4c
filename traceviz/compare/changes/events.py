"""Events of one name on both sides: calls and time per step, and status.

Times, calls and bytes are per steady step, or per unit of work if sides are compared by that. Nanoseconds and bytes are
whole numbers that add up to the side's own rounded sum. Calls are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from traceviz.compare.kernel_pairs import Events, How, Match, PerStep
from traceviz.compare.sides.sides import apportion

SAME = 0.02
"""A smaller difference, as share of the base's time, is no change: a device's clock varies as much."""


class Status(StrEnum):
    """Status of a named thing on the new side."""

    NEW = "new"
    GONE = "gone"
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class EventChange:
    """Events of one name on both sides, per steady step.

    Args:
        name: Name on the new side; if the event is gone, name on the base.
        group: Family of a kernel, domain of a function, evidence for an input stage; empty if there is none.
        base_calls: Exact. Zero for input stages that are not counted.
        new_calls: The same for the new side.
        base_ns: Whole number; those of all changes add up to the base's sum.
        new_ns: The same for the new side.
        status: By time per step; ``renamed`` if family and calls show that another kernel took the work over.
        was: Name on the base, if it differs.
    """

    name: str
    group: str
    base_calls: Fraction
    new_calls: Fraction
    base_ns: int
    new_ns: int
    status: Status
    was: str = ""

    @property
    def difference_ns(self) -> int:
        """Positive if the new side takes longer."""
        return self.new_ns - self.base_ns

    @property
    def ratio(self) -> float | None:
        """The difference as a share of the base; ``None`` if the base has none."""
        return self.difference_ns / self.base_ns if self.base_ns else None


def event_changes(matches: Sequence[Match], base: Events, new: Events) -> tuple[EventChange, ...]:
    """Return a change for every match, the largest difference first."""
    before = [_merge(base, match.base) for match in matches]
    after = [_merge(new, match.new) for match in matches]
    whole_before, whole_after = _whole_ns(before), _whole_ns(after)
    changes = [
        EventChange(
            name=(match.new or match.base)[0],
            group=after[index].group or before[index].group,
            base_calls=before[index].calls,
            new_calls=after[index].calls,
            base_ns=whole_before[index],
            new_ns=whole_after[index],
            status=_status_of(match, before[index].ns, after[index].ns),
            was=match.base[0] if match.how in {How.BASE_NAME, How.FAMILY} else "",
        )
        for index, match in enumerate(matches)
    ]
    return tuple(sorted(changes, key=lambda change: (-abs(change.difference_ns), -change.base_ns, change.name)))


def changes_by_name(base: Events, new: Events) -> tuple[EventChange, ...]:
    """Return a change for every name; the same name on both sides is the same event."""
    matches = [
        Match((name,) * (name in base), (name,) * (name in new), How.NAME if name in base and name in new else How.NOT)
        for name in dict.fromkeys((*base, *new))
    ]
    return event_changes(matches, base, new)


def total_ns(events: Iterable[PerStep]) -> Fraction:
    """Return the time of all events, exact."""
    return sum((event.ns for event in events), Fraction(0))


def _merge(events: Events, names: Iterable[str]) -> PerStep:
    parts = [events[name] for name in names]
    calls = sum((part.calls for part in parts), Fraction(0))
    return PerStep(calls, total_ns(parts), parts[0].group if parts else "")


def _whole_ns(events: Sequence[PerStep]) -> list[int]:
    """Return whole nanoseconds that add up to the rounded sum."""
    return apportion([event.ns for event in events], round(total_ns(events)))


def _status_of(match: Match, base_ns: Fraction, new_ns: Fraction) -> Status:
    if not match.base:
        return Status.NEW
    if not match.new:
        return Status.GONE
    if match.how == How.FAMILY:
        return Status.RENAMED
    if abs(new_ns - base_ns) < SAME * base_ns or new_ns == base_ns:
        return Status.SAME
    return Status.SLOWER if new_ns > base_ns else Status.FASTER
