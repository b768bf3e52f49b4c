"""Options for the first sentence, and the choice of the one that leads: the largest that is certain enough.

``docs/causes.md`` gives the rule as text, with its reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from traceviz.analyses.derived.causes.kinds import HOST
from traceviz.core.units import format_ratio
from traceviz.report import Candidate, Claim
from traceviz.report.findings.record import FindingRecord
from traceviz.report.verdicts import Cause

COMPUTE = "device_compute"
"""Key for the time in which a device computes, which is no cause."""
INPUT, POSSIBLE_INPUT, UNEXPLAINED = Cause.INPUT.value, Cause.POSSIBLE_INPUT.value, Cause.UNEXPLAINED.value
INPUTS = frozenset({INPUT, POSSIBLE_INPUT})
"""Keys of options that the verdict on the input covers."""
IN_TURN = "devices_in_turn"
WORK_WAITS = "waits-for-work"
"""Key of recurring waits for requests or messages. Any time that is saved elsewhere lengthens them."""


@dataclass(frozen=True, slots=True)
class Option(Claim):
    """A claim before the choice.

    Args:
        sentence: Sentence of the report if it leads.
        within: Keys of the exclusive parts whose time it explains more precisely; empty for such a part.
            :data:`COMPUTE` stands for the computing itself.
        record: Record of the finding that it comes from, if any.
        culprit: Event with most of its time, and its place; may be empty.
        inside: Share of the operators that it is about, in any part: their own work, their launches and waits.
        waits: Share in which ranks wait for one another because of it.
        without_gain: The sentence without the possible gain, which is that of its own time; empty if it states none.
    """

    sentence: str
    within: frozenset[str] = frozenset()
    record: FindingRecord | None = None
    culprit: str = ""
    inside: float = 0.0
    waits: float = 0.0
    without_gain: str = ""

    @property
    def reach(self) -> float:
        """Its share with the waits that follow from it."""
        return self.share + self.waits

    @property
    def code(self) -> str:
        """Code of the finding that it comes from; empty if there is none."""
        return self.record.code if self.record else ""

    @property
    def is_launch_bound(self) -> bool:
        """True if the device waits for its next launch. The work of the host before the launch does not matter."""
        is_launch = self.record is not None and not self.record.counts_later_time
        return is_launch and {"kernel_launch", HOST} <= self.within

    def candidate(self, reason: str, *, leads: bool = False) -> Candidate:
        """Return this option as a candidate of the report."""
        time = self.time_ns, self.share, self.share_of
        return Candidate(self.key, self.label, *time, self.certainty, self.evidence, reason, leads)


HEALTHY = 0.05
"""Least share of the judged time with which an option may lead."""
BOUND = 0.20
"""Least share with which a bound, a suspicion or unexplained time may lead."""
CLEARLY = 2.0
"""Unexplained time leads if it is this many times larger than everything that was measured."""
TIE = 0.9
"""An option with this part of the largest share counts as large as the largest."""
STANDS_FOR = 0.5
"""A finding that explains this part of the parts it lies within replaces them in the sentence."""
MOST = 0.5
"""Least part of a whole that is called most of it."""
BESIDE = 0.5
"""Another option is named next to the leading one from this part of its share on."""
MUCH = 0.20
"""Another option is also named from this share of the judged time on."""

_UNSURE = {"at most": "A bound", "suspected": "A suspicion", "unexplained": "Unexplained, and"}
_ORDER = {"measured": 0, "at most": 1, "suspected": 2, "unexplained": 3}


@dataclass(frozen=True, slots=True)
class Choice:
    """The option that leads, those that are as large, others worth saying, and all of them with reasons."""

    lead: Option | None
    ties: tuple[Option, ...]
    beside: tuple[Option, ...]
    candidates: tuple[Candidate, ...]


def choose(options: tuple[Option, ...], computes: float = 0.0, late_by: str = "") -> Choice:
    """Choose among ``options`` by share, certainty and precision.

    Args:
        options: Candidates for the lead; keys are unique.
        computes: Share of the judged time in which the host is known to compute, if there is no device.
        late_by: Key of the part by which ranks are late at their collectives, if all ranks have it; may be empty.
    """
    reasons = _find_reasons_against(options)
    if any(option.key == WORK_WAITS and option.share >= HEALTHY for option in options):
        reasons |= {o.key: "Saved time would be spent waiting for work." for o in options if o.key != WORK_WAITS}
    options = _with_waits(options, reasons, late_by)
    running = [option for option in options if option.key not in reasons]
    measured = max((option.share for option in running if option.certainty == "measured"), default=0.0)
    for option in running:
        if why := _reason_not_to_lead(option, measured, computes):
            reasons[option.key] = why
    eligible = [option for option in running if option.key not in reasons]
    largest = max((option.reach for option in eligible), default=0.0)
    ties = [option for option in eligible if option.reach >= TIE * largest]
    # What is as large only with the waits that follow from it is less certain.
    ties.sort(key=lambda option: (_ORDER[option.certainty], option.share < TIE * largest, -option.reach))
    lead = ties[0] if ties else None
    beside = [o for o in running if lead and o not in ties and o.share >= max(HEALTHY, min(MUCH, BESIDE * lead.share))]
    beside.sort(key=lambda option: -option.share)
    return Choice(lead, tuple(ties[1:]), tuple(beside), _list_candidates(options, lead, reasons))


LATE = "late-collectives"
"""Key of the finding on ranks that wait for one another."""


def _with_waits(options: tuple[Option, ...], reasons: dict[str, str], late_by: str) -> tuple[Option, ...]:
    """Return ``options`` with the waits of ranks as a consequence of the cause by which all of them are late.

    That the waits cannot lead is added to ``reasons``.
    """
    late = next((option for option in options if option.key == LATE and LATE not in reasons), None)
    causes = [o for o in options if o.key not in reasons and late_by and (o.key == late_by or late_by in o.within)]
    cause = max(causes, key=lambda option: option.share, default=None)
    if late is None or cause is None:
        return options
    reasons[LATE] = f"A consequence of {cause.label}: the late ranks are late by it."
    consequence = f"Because of it, ranks wait for one another for a further {format_ratio(late.share)}"
    sentence = f"{cause.without_gain or cause.sentence} {consequence} of the {late.share_of}."
    return tuple(replace(o, waits=late.share, sentence=sentence) if o is cause else o for o in options)


def _find_reasons_against(options: tuple[Option, ...]) -> dict[str, str]:
    """Return the reason against each option that another one explains, or whose time others explain, by key."""
    parts = {option.key: option for option in options if not option.within}
    reasons: dict[str, str] = {}
    speaks: dict[str, str] = {}  # code of the finding that replaces a part, by the part's key
    for precise in sorted((o for o in options if o.within), key=lambda o: (-o.share, o.code)):
        own = sorted((parts[key] for key in precise.within if key in parts), key=lambda part: -part.share)
        counts_later = precise.record is not None and precise.record.counts_later_time
        if COMPUTE in precise.within or (not own and not counts_later):
            continue
        other = precise.record.disjoint_from if precise.record else ()
        said = next((part for part in own if part.key == INPUT or part.key in reasons), None)
        whole = sum(part.share for part in own)
        if said is not None and speaks.get(said.key) in other:
            continue
        if said is not None:
            reasons[precise.key] = f"The same time as {said.label}."
        elif counts_later and STANDS_FOR * precise.share > max(whole, precise.inside):
            reasons[precise.key] = "Most of its time has causes of its own."
        elif precise.share + max((o.share for o in options if o.code in other), default=0.0) >= STANDS_FOR * whole:
            speaks.update(dict.fromkeys((part.key for part in own), precise.code))
            said_by = f"{precise.code or precise.label} says it more precisely ({format_ratio(precise.share)})."
            reasons.update(dict.fromkeys((part.key for part in own), said_by))
        else:
            named = " and ".join(part.label for part in own)
            reasons[precise.key] = f"It explains {format_ratio(precise.share / whole)} of {named}, less than half."
    return reasons | _find_sampled_reason(options, parts, reasons)


def _find_sampled_reason(
    options: tuple[Option, ...], parts: dict[str, Option], reasons: dict[str, str]
) -> dict[str, str]:
    """Return the reason against unexplained time if samples of more steps explain at least half of it."""
    known = [o for o in options if o.record and o.record.is_sampled and o.key not in reasons]
    largest = max(known, key=lambda option: option.share, default=None)
    unknown = parts.get(UNEXPLAINED)
    if largest is None or unknown is None or largest.share < STANDS_FOR * unknown.share:
        return {}
    return {UNEXPLAINED: f"{largest.code} says it by samples of more steps ({format_ratio(largest.share)})."}


def _reason_not_to_lead(option: Option, measured: float, computes: float) -> str:
    """Return the reason why an option may not lead; empty if it may."""
    if option.reach < HEALTHY:
        return f"Below {format_ratio(HEALTHY)}."
    if option.certainty != "measured" and option.reach < BOUND:
        return f"{_UNSURE[option.certainty]} below {format_ratio(BOUND)}."
    if option.certainty == "unexplained" and option.reach < CLEARLY * measured:
        return "Unexplained, and less than twice as large as what was measured."
    if option.certainty == "unexplained" and option.share < computes:
        return "Unexplained, and the program computes longer."
    return ""


def _list_candidates(
    options: tuple[Option, ...], lead: Option | None, reasons: dict[str, str]
) -> tuple[Candidate, ...]:
    """Return all options with the reason for or against each; the leading option is first."""
    others = [option for option in options if option is not lead and option.key not in reasons]
    why_first = "The largest that is certain enough."
    if not others:
        why_first = "The only one that is large and certain enough."
    elif lead is not None and max(option.reach for option in others) > lead.reach:
        why_first = "As large as the largest, and more certain."
    candidates = []
    for option in sorted(options, key=lambda option: (option is not lead, -option.share, option.key)):
        is_tie = lead is not None and option.reach >= TIE * lead.reach
        why_not = reasons.get(option.key) or (
            "As large as the one that leads: said beside it." if is_tie else "Smaller."
        )
        candidates.append(option.candidate(why_first if option is lead else why_not, leads=option is lead))
    return tuple(candidates)
