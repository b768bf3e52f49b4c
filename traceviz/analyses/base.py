"""What an analysis is: thresholds as fields, a pure ``run``, findings from ``judge``, a section from ``describe``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from traceviz.analyses.derived.view import TraceView
from traceviz.report import Fact, Facts, Finding, Note, Section, Severity, Skipped, rules

R = TypeVar("R")


class Analysis(ABC, Generic[R]):
    """One question asked of a trace.

    Subclasses are frozen dataclasses whose fields are their thresholds. ``run`` is pure: the same tables give the
    same result, and nothing is printed, read or timed.
    """

    slug: ClassVar[str]
    """Stable name of the section in the report."""
    title: ClassVar[str]
    """Heading of the section."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Codes of the rules that ``judge`` may raise."""

    @abstractmethod
    def run(self, trace: TraceView) -> R | Skipped:
        """Compute the result, or say why it cannot be computed."""

    def judge(self, result: R) -> tuple[Finding, ...]:  # noqa: ARG002 (most analyses raise nothing)
        """Findings that the result gives rise to; none for a healthy trace."""
        return ()

    def notes(self, result: R) -> tuple[Note, ...]:  # noqa: ARG002 (most analyses measure nothing about the measurement)
        """What the result says of the measurement itself: no problem of the program, and nothing that gates judge."""
        return ()

    @abstractmethod
    def describe(self, result: R) -> Section:
        """The section of the report."""

    def skipped(self, reason: str) -> Skipped:
        """Say why this analysis has no result."""
        return Skipped(self.slug, reason)


def known(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Those of ``facts`` that have a value."""
    return tuple(fact for fact in facts if fact.value is not None)


def by_knowledge(facts: Iterable[Fact]) -> tuple[Facts, Facts]:
    """The facts that have a value, and for programs only those that have none."""
    every = tuple(facts)
    return Facts(known(every)), Facts(tuple(fact for fact in every if fact.value is None), audience="machine")


WARNING_SHARE = 0.05
"""From this share of the judged time on, a finding is a warning."""
ERROR_SHARE = 0.20
"""From this share on, it is an error: fix this first."""


def severity_of(share: float) -> Severity:
    """Severity of a finding that has ``share`` (0 to 1) of the judged time at stake."""
    if share >= ERROR_SHARE:
        return Severity.ERROR
    return Severity.WARNING if share >= WARNING_SHARE else Severity.INFO


def finding(  # noqa: PLR0917 (a finding consists of these six)
    code: str,
    message: str,
    evidence: tuple[Fact, ...],
    cost_ns: int,
    of_ns: int,
    share_of: str,
    *,
    advice: tuple[str, ...] | None = None,
    is_hint: bool = False,
) -> Finding:
    """A finding of rule ``code`` whose severity follows ``cost_ns / of_ns``.

    Args:
        code: Code of a rule in :mod:`traceviz.report.rules`.
        message: One sentence with the figures that matter.
        evidence: The facts behind it.
        cost_ns: Time at stake, an upper bound of the gain.
        of_ns: The time that it is a share of.
        share_of: ``of_ns`` in words.
        advice: Replaces the rule's own advice where the evidence says which part of it applies.
        is_hint: What was seen may well be meant: the finding is for information, whatever its share.
    """
    rule = rules.rule(code)
    share = min(cost_ns / of_ns, 1.0) if of_ns > 0 else 0.0
    steps = advice if advice is not None else rule.advice
    severity = Severity.INFO if is_hint else severity_of(share)
    return Finding(code, rule.slug, severity, message, evidence, steps, cost_ns, share, share_of)
