"""Options for the first sentence. An option takes time; it has a certainty and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.report import Candidate, Certainty
from traceviz.report.findings.record import FindingRecord
from traceviz.report.verdicts import Cause

COMPUTE = "device_compute"
"""Key for the time in which a device computes, which is no cause."""
HOST = "host"
INPUT, POSSIBLE_INPUT, UNEXPLAINED = Cause.INPUT.value, Cause.POSSIBLE_INPUT.value, Cause.UNEXPLAINED.value
INPUTS = frozenset({INPUT, POSSIBLE_INPUT})
"""Keys of options that the verdict on the input covers."""
IN_TURN = "devices_in_turn"


@dataclass(frozen=True, slots=True)
class Option:
    """One candidate before the choice.

    Args:
        key: Stable key.
        label: Name for readers, within a sentence.
        time_ns: Time over all ranks.
        share: Its share of the time that ``share_of`` names.
        share_of: Text that names that time.
        certainty: Certainty of the option.
        evidence: Text that states the evidence.
        sentence: Sentence of the report if it leads.
        within: Keys of the exclusive parts whose time it explains more precisely; empty for such a part.
            :data:`COMPUTE` stands for the computing itself.
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
        """True if the device waits for its next launch. The work of the host before the launch does not matter."""
        return self.record is not None and {"kernel_launch", HOST} <= self.within

    def candidate(self, reason: str, *, leads: bool = False) -> Candidate:
        """Return this option as a candidate of the report."""
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
