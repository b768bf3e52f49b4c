"""Changes of whole captures, for sides without steps: what each name takes in all, and whether the work is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, changes_by_name, event_changes
from traceviz.compare.kernel_pairs import ALIKE, Events, PerStep, base_name, matches
from traceviz.compare.sides.capture_work import (
    KERNELS,
    LANES,
    OPERATORS,
    OPS,
    PROGRAMS,
    RANGES,
    WorkKind,
    capture_events,
)
from traceviz.compare.sides.sides import Side
from traceviz.core.units import counted, format_number
from traceviz.trace.names.kernel_names import UNKNOWN, catalogue

NEARLY_ALL = 0.95
"""Share of the time of both sides in events called equally often from which captures do the same work."""


@dataclass(frozen=True, slots=True)
class CaptureChanges:
    """Events of one kind in whole captures, the largest difference first.

    Args:
        kind: The kind of events.
        changes: Calls and time of each name; of programs, per run of the one with the most time.
        why_not: Why they cannot be compared; empty if they can.
    """

    kind: WorkKind
    changes: tuple[EventChange, ...] = ()
    why_not: str = ""

    @property
    def is_alike(self) -> bool:
        """True if events with nearly all of the time of both sides are called equally often."""
        totals = [sum(change.base_ns for change in self.changes), sum(change.new_ns for change in self.changes)]
        alike = [change for change in self.changes if are_as_often(change)]
        sums = [sum(change.base_ns for change in alike), sum(change.new_ns for change in alike)]
        return all(part >= NEARLY_ALL * total > 0 for part, total in zip(sums, totals, strict=True))

    def describe_other(self, base: Side, new: Side) -> str:
        """Return how the counts differ: ``gemm runs 60 → 120 times``; the one with most time first."""
        other = sorted(
            (change for change in self.changes if not are_as_often(change)),
            key=lambda change: (-max(change.base_ns, change.new_ns), change.name),
        )
        rest = len(other) - 1
        more = f"; {counted(rest, f'other {self.kind.events[:-1]}')} too" if rest > 0 else ""
        return f"{_counts(other[0], base, new)}{more}"

    @property
    def is_by_family(self) -> bool:
        """True if most kernel time is in kernels of one side only, and their families are known."""
        total = sum(change.base_ns + change.new_ns for change in self.changes)
        both = sum(change.base_ns + change.new_ns for change in self.changes if _is_on_both_sides(change))
        known = sum(change.base_ns + change.new_ns for change in self.changes if change.group not in {"", UNKNOWN})
        return bool(self.kind.group) and 2 * both < total < 2 * known

    @property
    def by_short_name(self) -> tuple[EventChange, ...]:
        """Sums of the events of one short name, the largest difference first.

        Kernels that mostly run on one side only are summed by family (:attr:`is_by_family`).
        """
        by_family = self.is_by_family
        sums: dict[str, EventChange] = {}
        for change in self.changes:
            of_base = replace(change, name=change.was or change.name, new_calls=Fraction(0), new_ns=0)
            for part in (of_base, replace(change, base_calls=Fraction(0), base_ns=0)):
                if part.base_calls or part.new_calls:
                    name = _family(part.group) if by_family else short_name(part.name)
                    sums[name] = _add(sums[name], part) if name in sums else replace(part, name=name, was="")
        return tuple(sorted(sums.values(), key=lambda one: (-abs(one.difference_ns), -one.base_ns, one.name)))


def _family(group: str) -> str:
    if group in {"", UNKNOWN}:
        return "unknown kernels"
    label = catalogue().labels.get(group, group)
    return label if label[1:2].isupper() else f"{label[:1].lower()}{label[1:]}"


def _add(one: EventChange, other: EventChange) -> EventChange:
    return replace(
        one,
        base_calls=one.base_calls + other.base_calls,
        new_calls=one.new_calls + other.new_calls,
        base_ns=one.base_ns + other.base_ns,
        new_ns=one.new_ns + other.new_ns,
    )


def _is_on_both_sides(change: EventChange) -> bool:
    is_same = not change.was or base_name(change.was) == base_name(change.name)
    return is_same and change.base_calls > 0 and change.new_calls > 0


def are_as_often(change: EventChange) -> bool:
    """Return whether both sides run the same event equally often, within a few percent."""
    calls = sorted((change.base_calls, change.new_calls))
    return _is_on_both_sides(change) and calls[0] >= (1 - ALIKE) * calls[1]


def calls_words(base: Fraction, new: Fraction) -> str:
    """Return ``60 → 120``; the same number only once."""
    before, after = (format_number(round(float(calls), 2)) for calls in (base, new))
    return before if before == after else f"{before} → {after}"


def _counts(change: EventChange, base: Side, new: Side) -> str:
    """Return ``gemm runs 60 → 120 times``, or that only one side runs it."""
    name = short_name(change.name)
    if not change.base_calls or not change.new_calls:
        return f"{name} runs only in {(new if change.new_calls else base).label}"
    if not _is_on_both_sides(change):
        return f"{name} runs in place of {short_name(change.was)}"
    return f"{name} runs {calls_words(change.base_calls, change.new_calls)} times"


def short_name(name: str) -> str:
    """Return a name without template arguments and parameters, limited in length."""
    short = base_name(name)
    return short if len(short) <= _LONGEST else f"{short[:_LONGEST]}…"


_LONGEST = 60


def compare_captures(base: Side, new: Side, kind: WorkKind) -> CaptureChanges:
    """Compare events of one kind over whole captures: kernels also by the work that they do, others by name."""
    before, after = capture_events(base, kind), capture_events(new, kind)
    missing = [side.label for side, events in ((base, before), (new, after)) if not events]
    if missing:
        return CaptureChanges(kind, why_not=f"no {kind.events} were recorded in {' and '.join(missing)}")
    if kind.is_per_run:
        before, after = _per_run(before), _per_run(after)
    if kind is KERNELS:
        return CaptureChanges(kind, event_changes(matches(before, after), before, after, of_captures=True))
    return CaptureChanges(kind, changes_by_name(before, after, of_captures=True))


def _per_run(events: Events) -> Events:
    """Return events per run of the one with the most time."""
    runs = max(events.values(), key=lambda event: event.ns).calls or Fraction(1)
    return {name: PerStep(event.calls / runs, event.ns / runs, event.group) for name, event in events.items()}


TABLES = (PROGRAMS, OPERATORS, OPS, RANGES, LANES)
"""Kinds with a table of their own. Kernels have one in every comparison."""


def capture_changes(base: Side, new: Side) -> tuple[CaptureChanges, ...]:
    """Return the changes of whole captures of every kind that both sides have; of programs alone if there are steps."""
    kinds = TABLES if base.of_captures else (PROGRAMS,)
    return tuple(found for kind in kinds if (found := compare_captures(base, new, kind)).changes)


def largest(changes: Sequence[EventChange]) -> tuple[EventChange, ...]:
    """Return the two changes that matter most; three, if the first two cancel each other for the most part."""
    total = sum(change.base_ns for change in changes)
    named = [change for change in changes if abs(change.difference_ns) >= _MATTERS * total][:3]
    two = sum(change.difference_ns for change in named[:2])
    cancel = len(named) == 3 and abs(two) < abs(named[0].difference_ns) / 2
    return tuple(named if cancel else named[:2])


_MATTERS = 0.01
"""Share of the base's time from which the change of an event is named."""
