"""Kernels of both sides, matched by name, and otherwise by the work that they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, Status, event_changes, total_ns
from traceviz.compare.changes.figures import why_not
from traceviz.compare.kernel_pairs import Events, How, Match, PerStep, matches
from traceviz.compare.sides.sides import Side
from traceviz.core.units import format_ratio
from traceviz.report import IN_STEPS

IN_COMMON = 0.1
"""Below this share of kernel time in kernels of both sides, names cannot be compared."""


@dataclass(frozen=True, slots=True)
class KernelChanges:
    """Kernels of both sides, the largest difference first.

    Args:
        changes: Empty if ``why_not`` gives a reason, or if neither side ran any.
        base_ns: Kernel time per step, summed over streams; ``None`` if it was not recorded.
        new_ns: The same for the new side.
        common: Share of the kernel time of both sides in kernels of both, regardless of the families of the others;
            ``None`` if there is no kernel time.
        why_not: Why kernels cannot be compared; empty if they can.
    """

    changes: tuple[EventChange, ...] = ()
    base_ns: int | None = None
    new_ns: int | None = None
    common: float | None = None
    why_not: str = ""

    def of(self, *status: Status) -> tuple[EventChange, ...]:
        """Return the changes of these kinds."""
        return tuple(change for change in self.changes if change.status in status)


def compare_kernels(base: Side, new: Side) -> KernelChanges:
    """Compare kernels by name, and kernels without a match by the work that they do.

    :mod:`traceviz.compare.kernel_pairs` has the rules.
    """
    if why := why_not(base, new, "kernels", "kernels", IN_STEPS):
        return KernelChanges(why_not=why)
    pairs = match_kernels(base, new)
    before, after = base.kernels, new.kernels
    common = common_share(pairs, before, after)
    formats = [side.run_fact("format") for side in (base, new)]
    why = ""
    if common is not None and common < IN_COMMON and set(formats[0]) != set(formats[1]):
        named = " and ".join(", ".join(names) or "an unknown format" for names in formats)
        why = (
            f"cannot compare kernels: only {format_ratio(common)} of kernel time is in kernels of both sides, and "
            f"{named} may call the same ones differently"
        )
    changes = () if why else event_changes(pairs, before, after)
    return KernelChanges(changes, round(total_ns(before.values())), round(total_ns(after.values())), common, why)


def match_kernels(base: Side, new: Side) -> tuple[Match, ...]:
    """Match the kernels of both sides; compare calls per step, regardless of the work of a step."""
    return matches(*(_per_step(side.kernels, side.per) for side in (base, new)))


def _per_step(events: Events, units: Fraction) -> Events:
    """Convert events per unit of work to events per step; a step does ``units`` units."""
    return {name: PerStep(event.calls * units, event.ns * units, event.group) for name, event in events.items()}


def common_share(pairs: Iterable[Match], base: Events, new: Events) -> float | None:
    """Return the share of the time of both sides in kernels that both have; ``None`` if there is no time.

    Kernels that only do the same work (:attr:`How.FAMILY`) are not the same kernels.
    """
    both = [match for match in pairs if match.how < How.FAMILY]
    shared = total_ns(base[name] for match in both for name in match.base)
    shared += total_ns(new[name] for match in both for name in match.new)
    total = total_ns(base.values()) + total_ns(new.values())
    return float(shared / total) if total else None
