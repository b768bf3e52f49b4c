"""Findings that appeared, went away or stayed, with their cost per step before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from traceviz.compare.sides.sides import Side
from traceviz.report import Finding, Report, Severity
from traceviz.report.findings.registry import find_record
from traceviz.report.verdicts import InputVerdict

PER_STEP = "steady step time"
"""``share_of`` of findings whose cost lies in steady steps."""


class Seen(StrEnum):
    """Change of a finding from the base to the new side."""

    APPEARED = "appeared"
    WENT_AWAY = "went away"
    STAYED = "stayed"
    ONLY_BASE = "not looked for in the new side"
    ONLY_NEW = "not looked for in the base"


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A kind of finding on both sides.

    Args:
        code: Code of the rule. If one side supposes what the other measures, the code of the new side.
        slug: Name of the problem; if one side supposes it, the names on both.
        seen: Change from the base to the new side.
        base: The most serious finding on the base; ``None`` if it has none.
        new: The same for the new side.
        base_ns: Cost per steady step, in the runs that have it. ``None`` if no run has it, or if its cost does not lie
            in steady steps. A cost below a finding's threshold is not measured, and need not be zero.
        new_ns: The same for the new side.
        base_share: Cost as a share of the time that it names, mean over the runs that have it; ``None`` if none has it,
            or its cost is unknown.
        new_share: The same for the new side.
    """

    code: str
    slug: str
    seen: Seen
    base: Finding | None
    new: Finding | None
    base_ns: int | None
    new_ns: int | None
    base_share: float | None
    new_share: float | None

    @property
    def severity(self) -> Severity:
        """The higher severity of both sides."""
        both = (finding.severity for finding in (self.base, self.new) if finding is not None)
        return max(both, key=lambda severity: severity.rank)

    @property
    def message(self) -> str:
        """Message of the new side; if the finding went away, that of the base."""
        finding = self.new or self.base
        return finding.message if finding else ""


@dataclass(frozen=True, slots=True)
class FindingChanges:
    """Findings of both sides: first those that appeared, then stayed, then went away; the most expensive first."""

    changes: tuple[FindingChange, ...] = ()

    def of(self, *seen: Seen) -> tuple[FindingChange, ...]:
        """Return the changes of these kinds."""
        return tuple(change for change in self.changes if change.seen in seen)


def compare_findings(base: Side, new: Side) -> FindingChanges:
    """Compare findings by code.

    If one side supposes a finding and the other measures it, it is one finding that stayed.
    """
    before, after = (
        frozenset(finding.code for report in side.reports for finding in report.findings) for side in (base, new)
    )
    supposed = ((code, record.supposes) for code in before | after if (record := find_record(code)) and record.supposes)
    kin = {pair for one, other in supposed for pair in ((one, other), (other, one))}
    moved = [(was, now) for was, now in sorted(kin) if was in before - after and now in after - before]
    others = sorted((before | after).difference(*moved))
    changes = [_change(codes, base, new) for codes in (*moved, *((code, code) for code in others))]
    return FindingChanges(tuple(sorted(changes, key=_order)))


_ORDER = (Seen.APPEARED, Seen.ONLY_NEW, Seen.STAYED, Seen.WENT_AWAY, Seen.ONLY_BASE)


def _order(change: FindingChange) -> tuple[int, float, int, str]:
    dearest = max(change.base_share or 0.0, change.new_share or 0.0)
    return _ORDER.index(change.seen), -dearest, -change.severity.rank, change.code


def _change(codes: tuple[str, str], base: Side, new: Side) -> FindingChange:
    sides = _FindingsOfSide.of(codes[0], base), _FindingsOfSide.of(codes[1], new)
    record = find_record(codes[1])
    if record and record.needs_same_recorder and _recorders(base) != _recorders(new):
        sides = replace(sides[0], looked=bool(sides[0].findings)), replace(sides[1], looked=bool(sides[1].findings))
    before, after = (side.worst for side in sides)
    slugs = dict.fromkeys(finding.slug for finding in (before, after) if finding is not None)
    costs, shares = [side.per_step for side in sides], [side.share for side in sides]
    return FindingChange(codes[1], " → ".join(slugs), _compare_presence(*sides), before, after, *costs, *shares)


def _recorders(side: Side) -> frozenset[str]:
    """Return the formats of a side's captures and, for run folders, the collectors."""
    return side.recorders.union(side.run_fact("format"))


@dataclass(frozen=True, slots=True)
class _FindingsOfSide:
    """Findings of one code on one side.

    Args:
        findings: Findings in all runs.
        runs: Number of runs that have it.
        work: Number of their steady steps, once per rank; units of work if sides are compared by that.
        looked: True if any run was searched for it.
    """

    findings: tuple[Finding, ...]
    runs: int
    work: Fraction
    looked: bool

    @classmethod
    def of(cls, code: str, side: Side) -> _FindingsOfSide:
        by_run = [tuple(finding for finding in report.findings if finding.code == code) for report in side.reports]
        steps = sum(count for findings, count in zip(by_run, side.rank_steps_by_run, strict=True) if findings)
        looked = any(was_looked_for(code, report) for report in side.reports)
        return cls(sum(by_run, ()), sum(map(bool, by_run)), steps * side.per, looked)

    @property
    def worst(self) -> Finding | None:
        return max(self.findings, key=lambda finding: (finding.severity.rank, finding.cost_ns), default=None)

    @property
    def share(self) -> float | None:
        known = [finding.share for finding in self.findings if finding.share is not None]
        return sum(known) / self.runs if len(known) == len(self.findings) > 0 else None

    @property
    def per_step(self) -> int | None:
        if not self.work or any(finding.share_of != PER_STEP for finding in self.findings):
            return None
        return round(sum(finding.cost_ns for finding in self.findings) / self.work)


def was_looked_for(code: str, report: Report) -> bool:
    """Return whether a report would show the finding if it existed.

    That requires that its section is present and could judge.
    """
    if any(finding.code == code for finding in report.findings):
        return True
    record = find_record(code)
    if record is None or all(section.slug != record.section for section in report.sections):
        return False
    try:
        verdict = InputVerdict.read(report.fact(record.section, "verdict"))
    except KeyError:
        return True
    return verdict is None or verdict.is_measured or (verdict.is_judged and bool(record.supposes))


def _compare_presence(base: _FindingsOfSide, new: _FindingsOfSide) -> Seen:
    if base.findings and new.findings:
        return Seen.STAYED
    if new.findings:
        return Seen.APPEARED if base.looked else Seen.ONLY_NEW
    return Seen.WENT_AWAY if new.looked else Seen.ONLY_BASE
