"""Which option leads the first sentence: the largest that is certain enough.

The rule in words, with its reasons: ``docs/causes.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.analyses.headline.options import COMPUTE, INPUT, UNEXPLAINED, Option
from traceviz.core.units import format_ratio
from traceviz.report import Candidate

HEALTHY = 0.05
"""What takes less than this share of the judged time leads nothing."""
BOUND = 0.20
"""A bound, a suspicion and what is unexplained lead from this share on."""
CLEARLY = 2.0
"""What is unexplained leads where it is this much larger than everything that was measured."""
TIE = 0.9
"""From this part of the largest share on, another one is as large."""
STANDS_FOR = 0.5
"""A finding that explains this part of what it lies within is said in its place."""
NEEDS_PARTS = frozenset({"TV203"})
"""Codes of findings that count what comes after their parts, too: they lead only where the parts are half of it."""
APART = ({"TV501", "TV502", "TV503"}, {"TV506"})
"""Codes of findings on two parts of the same time, which neither shares with the other: waiting in collectives of the
host for a rank that is late, and the rest of them."""
SAMPLED = frozenset({"TV610", "TV611", "TV612", "TV613", "TV614", "TV615", "TV622"})
"""Codes of findings from samples of all steps of a run, of which a profiler recorded few."""
BESIDE = 0.5
"""From this part of the leading share on, another one is said beside it,"""
MUCH = 0.20
"""or from this share of the judged time on."""

_UNSURE = {"at most": "A bound", "suspected": "A suspicion", "unexplained": "Unexplained, and"}
_ORDER = {"measured": 0, "at most": 1, "suspected": 2, "unexplained": 3}


@dataclass(frozen=True, slots=True)
class Choice:
    """The option that leads, those that are as large, others worth saying, and all of them with reasons."""

    lead: Option | None
    ties: tuple[Option, ...]
    beside: tuple[Option, ...]
    candidates: tuple[Candidate, ...]


def choose(options: tuple[Option, ...], computes: float = 0.0) -> Choice:
    """Choose among ``options`` by share, certainty and precision.

    Args:
        options: What may lead; keys are unique.
        computes: Share of the judged time in which the host is known to compute, where there is no device.
    """
    reasons = _settled(options)
    running = [option for option in options if option.key not in reasons]
    measured = max((option.share for option in running if option.certainty == "measured"), default=0.0)
    for option in running:
        if why := _barred(option, measured, computes):
            reasons[option.key] = why
    eligible = [option for option in running if option.key not in reasons]
    largest = max((option.share for option in eligible), default=0.0)
    ties = sorted((o for o in eligible if o.share >= TIE * largest), key=lambda o: (_ORDER[o.certainty], -o.share))
    lead = ties[0] if ties else None
    beside = [o for o in running if lead and o not in ties and o.share >= max(HEALTHY, min(MUCH, BESIDE * lead.share))]
    beside.sort(key=lambda option: -option.share)
    return Choice(lead, tuple(ties[1:]), tuple(beside), _explained(options, lead, reasons))


def _settled(options: tuple[Option, ...]) -> dict[str, str]:
    """Why those do not run that explain the time of others, or whose time others explain, by key."""
    parts = {option.key: option for option in options if not option.within}
    reasons: dict[str, str] = {}
    speaks: dict[str, str] = {}  # code of the finding that is said in place of a part, by the part's key
    for precise in sorted((o for o in options if o.within), key=lambda o: (-o.share, o.code)):
        own = sorted((parts[key] for key in precise.within if key in parts), key=lambda part: -part.share)
        if COMPUTE in precise.within or (not own and precise.code not in NEEDS_PARTS):
            continue
        other = _apart_from(precise.code)
        said = next((part for part in own if part.key == INPUT or part.key in reasons), None)
        whole = sum(part.share for part in own)
        if said is not None and speaks.get(said.key) in other:
            continue
        if said is not None:
            reasons[precise.key] = f"The same time as {said.label}."
        elif precise.code in NEEDS_PARTS and STANDS_FOR * precise.share > whole:
            reasons[precise.key] = "Most of its time has causes of its own."
        elif precise.share + max((o.share for o in options if o.code in other), default=0.0) >= STANDS_FOR * whole:
            speaks.update(dict.fromkeys((part.key for part in own), precise.code))
            said_by = f"{precise.code or precise.label} says it more precisely ({format_ratio(precise.share)})."
            reasons.update(dict.fromkeys((part.key for part in own), said_by))
        else:
            named = " and ".join(part.label for part in own)
            reasons[precise.key] = f"It explains {format_ratio(precise.share / whole)} of {named}, less than half."
    return reasons | _sampled(options, parts, reasons)


def _sampled(options: tuple[Option, ...], parts: dict[str, Option], reasons: dict[str, str]) -> dict[str, str]:
    """That time is explained which no event covers, where samples of more steps say what at least half of it is."""
    known = [option for option in options if option.code in SAMPLED and option.key not in reasons]
    largest = max(known, key=lambda option: option.share, default=None)
    unknown = parts.get(UNEXPLAINED)
    if largest is None or unknown is None or largest.share < STANDS_FOR * unknown.share:
        return {}
    return {UNEXPLAINED: f"{largest.code} says it by samples of more steps ({format_ratio(largest.share)})."}


def _apart_from(code: str) -> set[str]:
    """Codes of findings on the part of the time that the one of this code leaves out."""
    first, second = APART
    return second if code in first else first if code in second else set()


def _barred(option: Option, measured: float, computes: float) -> str:
    """Why an option that runs may not lead; empty where it may."""
    if option.share < HEALTHY:
        return f"Below {format_ratio(HEALTHY)}."
    if option.certainty != "measured" and option.share < BOUND:
        return f"{_UNSURE[option.certainty]} below {format_ratio(BOUND)}."
    if option.certainty == "unexplained" and option.share < CLEARLY * measured:
        return "Unexplained, and less than twice as large as what was measured."
    if option.certainty == "unexplained" and option.share < computes:
        return "Unexplained, and the program computes longer."
    return ""


def _explained(options: tuple[Option, ...], lead: Option | None, reasons: dict[str, str]) -> tuple[Candidate, ...]:
    ordered = sorted(options, key=lambda option: (option is not lead, -option.share, option.key))
    return tuple(
        option.candidate(_why_first(option, options, reasons), leads=True)
        if option is lead
        else option.candidate(reasons.get(option.key) or _why_not(option, lead))
        for option in ordered
    )


def _why_first(lead: Option, options: tuple[Option, ...], reasons: dict[str, str]) -> str:
    others = [option for option in options if option is not lead and option.key not in reasons]
    if not others:
        return "The only one that is large and certain enough."
    if max(option.share for option in others) > lead.share:
        return "As large as the largest, and more certain."
    return "The largest that is certain enough."


def _why_not(option: Option, lead: Option | None) -> str:
    if lead is not None and option.share >= TIE * lead.share:
        return "As large as the one that leads: said beside it."
    return "Smaller."
