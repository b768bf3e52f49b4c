"""Whether both sides recorded what is to be compared: not recorded is said, and never the same as none."""

from __future__ import annotations

from traceviz.compare.sides.sides import Side, grid
from traceviz.report import Report


def why_not(base: Side, new: Side, slug: str, what: str, title: str = "") -> str:
    """Why a section cannot be compared: a side lacks it, or its grid ``title`` of steady steps; empty where it can."""
    missing = {side.label: why for side in (base, new) if (why := _missing(side, slug, what))}
    if len(missing) == 2 and len(set(missing.values())) == 1:
        return f"neither {base.label} nor {new.label} recorded {what}{_because(base, slug)}"
    if missing:
        return "; ".join(f"{label} {why}" for label, why in missing.items())
    if not title:
        return ""
    if not (base.steps and new.steps):
        return no_steps(base, new)
    older = [side.label for side in (base, new) if any(grid(report, slug, title) is None for report in side.reports)]
    how = f"the report of {' and '.join(older)} does not tell of {what} per step: make it again from the trace"
    return how if older else ""


def _missing(side: Side, slug: str, what: str) -> str:
    """That a side did not record a section, with the reason that it gives; empty where it did."""
    count = len(_without(side, slug))
    if side.reports and not count:
        return ""
    of_runs = f" in {count} of its {len(side.reports)} runs" if count < len(side.reports) else ""
    return f"did not record {what}{of_runs}{_because(side, slug)}"


def _without(side: Side, slug: str) -> list[Report]:
    return [report for report in side.reports if all(section.slug != slug for section in report.sections)]


def _because(side: Side, slug: str) -> str:
    """The reasons that the reports of a side give, in brackets."""
    reasons = dict.fromkeys(one.reason for report in _without(side, slug) for one in report.skipped if one.slug == slug)
    return f" ({'; '.join(reasons)})" if reasons else ""


def no_steps(base: Side, new: Side) -> str:
    """Which side has no steady steps, where one has none."""
    without = " and ".join(side.label for side in (base, new) if not side.steps)
    return f"no steady steps in {without}, and so nothing per step"
