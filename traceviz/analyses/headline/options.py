"""An option for the first sentence: something that takes time, how sure that is, and how it would be said."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.report import Candidate, Certainty
from traceviz.report.verdicts import Cause

COMPUTE = "device_compute"
"""Key of what is no cause: a device computes."""
HOST = "host"
INPUT, POSSIBLE_INPUT, UNEXPLAINED = Cause.INPUT.value, Cause.POSSIBLE_INPUT.value, Cause.UNEXPLAINED.value
INPUTS = frozenset({INPUT, POSSIBLE_INPUT})
"""Keys of what the verdict on the input says."""
IN_TURN = "devices_in_turn"


@dataclass(frozen=True, slots=True)
class Option:
    """One candidate before the choice.

    Args:
        key: Stable key.
        label: For people, within a sentence.
        time_ns: Time over all ranks.
        share: Its share of the time that ``share_of`` names.
        share_of: That time in words.
        certainty: How sure it is.
        evidence: What shows it.
        sentence: What is said where it leads.
        within: Keys of the exclusive parts whose time it explains more precisely; empty for such a part. With
            :data:`COMPUTE` it concerns the computing itself.
        code: Code of the finding that it comes from; may be empty.
    """

    key: str
    label: str
    time_ns: int
    share: float
    share_of: str
    certainty: Certainty
    evidence: str
    sentence: str
    within: frozenset[str] = frozenset()
    code: str = ""

    def candidate(self, reason: str, *, leads: bool = False) -> Candidate:
        """The same in a report."""
        return Candidate(
            self.key,
            self.label,
            self.time_ns,
            self.share,
            self.share_of,
            self.certainty,
            self.evidence,
            reason,
            leads,
        )
