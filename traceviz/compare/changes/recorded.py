"""Reasons why a section cannot be compared. A section that was not recorded is named and never taken for zero."""

from __future__ import annotations

from traceviz.compare.sides.sides import Side, grid
from traceviz.report import Report


def why_not(base: Side, new: Side, slug: str, events: str, title: str = "") -> str:
    """Return why a section cannot be compared; empty if it can.

    Args:
        base: One side.
        new: The other.
        slug: The section.
        events: Text for the events of the section.
        title: Its grid of steady steps, if that is needed.
    """
    missing = {side.label: why for side in (base, new) if (why := _missing(side, slug, events))}
    if len(missing) == 2 and len(set(missing.values())) == 1:
        return f"neither {base.label} nor {new.label} recorded {events}{_because(base, slug)}"
    if missing:
        return "; ".join(f"{label} {why}" for label, why in missing.items())
    if not title:
        return ""
    if not (base.steps and new.steps):
        return no_steps(base, new)
    older = [side.label for side in (base, new) if any(grid(report, slug, title) is None for report in side.reports)]
    why = f"the report of {' and '.join(older)} does not tell of {events} per step: make it again from the trace"
    return why if older else ""


def _missing(side: Side, slug: str, events: str) -> str:
    """Return that a side did not record a section, with the stated reason; empty if it did."""
    count = len(_without(side, slug))
    if side.reports and not count:
        return ""
    of_runs = f" in {count} of its {len(side.reports)} runs" if count < len(side.reports) else ""
    return f"did not record {events}{of_runs}{_because(side, slug)}"


def _without(side: Side, slug: str) -> list[Report]:
    return [report for report in side.reports if all(section.slug != slug for section in report.sections)]


def _because(side: Side, slug: str) -> str:
    """Return the reasons that the reports of a side give, in brackets."""
    skipped = (skip for report in _without(side, slug) for skip in report.skipped)
    reasons = dict.fromkeys(skip.reason for skip in skipped if skip.slug == slug)
    return f" ({'; '.join(reasons)})" if reasons else ""


def no_steps(base: Side, new: Side) -> str:
    """Return that sides have no steady steps, with their labels."""
    without = " and ".join(side.label for side in (base, new) if not side.steps)
    return f"no steady steps in {without}, and so nothing per step"
