"""An option for the first sentence: something that takes time, how sure that is, and how it would be said."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.report import Candidate, Certainty
from traceviz.report.findings.record import FindingRecord

COMPUTE = "device_compute"
"""Key of what is no cause: a device computes."""
HOST = "host"
INPUT = "input"
POSSIBLE_INPUT = "possible_input"
INPUTS = frozenset({INPUT, POSSIBLE_INPUT})
"""Keys of what the verdict on the input says."""
UNEXPLAINED = "unexplained"
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
        record: Record of the finding that it comes from, if any.
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
    record: FindingRecord | None = None

    @property
    def code(self) -> str:
        """Code of the finding that it comes from; empty if there is none."""
        return self.record.code if self.record else ""

    @property
    def is_launch_bound(self) -> bool:
        """The device waits for its next launch, whatever the host does before it."""
        return self.record is not None and {"kernel_launch", HOST} <= self.within

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
