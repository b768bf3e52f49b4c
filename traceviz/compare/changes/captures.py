"""Changes of whole captures, for sides without steps: what each name takes in all, and whether the work is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, changes_by_name, event_changes
from traceviz.compare.kernel_pairs import ALIKE, Events, PerStep, base_name, matches
from traceviz.compare.sides.capture_work import KERNELS, OPERATORS, OPS, PROGRAMS, RANGES, WorkKind, capture_events
from traceviz.compare.sides.sides import Side
from traceviz.core.units import counted, format_number

NEARLY_ALL = 0.95
"""Share of the time of both sides in events called equally often from which captures do the same work."""
_NAMED = 1
"""Most events named whose counts differ."""


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
        """Return how the counts differ: ``gemm runs 60 times in a, 120 in b``; those with most time first."""
        other = sorted(
            (change for change in self.changes if not are_as_often(change)),
            key=lambda change: (-max(change.base_ns, change.new_ns), change.name),
        )
        rest = len(other) - _NAMED
        more = f"; {counted(rest, f'other {self.kind.events[:-1]}')} too" if rest > 0 else ""
        return f"{'; '.join(_counts(change, base, new) for change in other[:_NAMED])}{more}"


def are_as_often(change: EventChange) -> bool:
    """Return whether both sides run the same event equally often, within a few percent."""
    calls = sorted((change.base_calls, change.new_calls))
    is_same = not change.was or base_name(change.was) == base_name(change.name)
    return is_same and calls[0] > 0 and calls[0] >= (1 - ALIKE) * calls[1]


def _counts(change: EventChange, base: Side, new: Side) -> str:
    """Return ``gemm runs 60 times in a, 120 in b``, or that only one side runs it."""
    name = short_name(change.name)
    if not change.base_calls or not change.new_calls:
        return f"{name} runs only in {(new if change.new_calls else base).label}"
    if change.was and base_name(change.was) != base_name(change.name):
        return f"{new.label} runs {name} in place of {short_name(change.was)}"
    times = [format_number(round(float(calls), 2)) for calls in (change.base_calls, change.new_calls)]
    return f"{name} runs {times[0]} times in {base.label}, {times[1]} in {new.label}"


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


TABLES = (PROGRAMS, OPERATORS, OPS, RANGES)
"""Kinds with a table of their own. Kernels have one in every comparison."""


def capture_changes(base: Side, new: Side) -> tuple[CaptureChanges, ...]:
    """Return the changes of whole captures of every kind that both sides have; of programs alone if there are steps."""
    kinds = TABLES if base.of_captures else (PROGRAMS,)
    return tuple(found for kind in kinds if (found := compare_captures(base, new, kind)).changes)


def largest(changes: Sequence[EventChange], of: int = 2) -> tuple[EventChange, ...]:
    """Return the changes that matter most, at least :data:`_MATTERS` of the base's time each."""
    total = sum(change.base_ns for change in changes)
    return tuple(change for change in changes if abs(change.difference_ns) >= _MATTERS * total)[:of]


_MATTERS = 0.01
"""Share of the base's time from which the change of an event is named."""
