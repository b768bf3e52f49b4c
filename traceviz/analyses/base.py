"""Base class of analyses: fields for thresholds, a pure ``run``, ``judge`` for findings, ``describe`` for sections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from traceviz.analyses.derived.view import TraceView
from traceviz.report import Fact, Facts, Finding, Note, Section, Severity, Skipped
from traceviz.report.findings.registry import record_of

R = TypeVar("R")


class Analysis(ABC, Generic[R]):
    """One analysis of a trace.

    Subclasses are frozen dataclasses whose fields are their thresholds. ``run`` is pure: the same tables give the same
    result, and it prints, reads and times nothing.
    """

    slug: ClassVar[str]
    """Stable name of the section in the report."""
    title: ClassVar[str]
    """Heading of the section."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Codes of the findings that ``judge`` may raise."""

    @abstractmethod
    def run(self, trace: TraceView) -> R | Skipped:
        """Compute the result, or return why it cannot be computed."""

    def judge(self, result: R) -> tuple[Finding, ...]:  # noqa: ARG002 (most analyses raise nothing)
        """Return the findings of the result; none for a healthy trace."""
        return ()

    def notes(self, result: R) -> tuple[Note, ...]:  # noqa: ARG002 (most analyses measure nothing about the measurement)
        """Return notes about the measurement itself. They report no problem of the program and do not affect judge."""
        return ()

    @abstractmethod
    def describe(self, result: R) -> Section:
        """Return the section of the report."""

    def skipped(self, reason: str) -> Skipped:
        """Return the reason why this analysis has no result."""
        return Skipped(self.slug, reason)


def known(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return those of ``facts`` that have a value."""
    return tuple(fact for fact in facts if fact.value is not None)


def by_knowledge(facts: Iterable[Fact]) -> tuple[Facts, Facts]:
    """Return the facts that have a value, and those that have none for programs only."""
    every = tuple(facts)
    return Facts(known(every)), Facts(tuple(fact for fact in every if fact.value is None), audience="machine")


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
    heading: str = "",
) -> Finding:
    """Make a finding whose severity follows from ``cost_ns / of_ns``, by the rule of its record.

    Args:
        code: Code of a record in :mod:`traceviz.report.findings`.
        message: One sentence with the figures that matter.
        evidence: The facts that it rests on.
        cost_ns: Time at stake, an upper bound of the gain.
        of_ns: The time that it is a share of.
        share_of: Text that names ``of_ns``.
        advice: Replacement for the advice of the record, if the evidence shows which part of it applies.
        is_hint: True if the condition ``hint_if`` of the record holds. The finding is then for information, for any
            share.
        heading: Name of the problem within a sentence, if the message opens with it (*Saving: 48 % ...*).
    """
    record = record_of(code)
    share = min(cost_ns / of_ns, 1.0) if of_ns > 0 else 0.0
    steps = advice if advice is not None else record.advice
    severity = Severity.INFO if is_hint else record.severity_of(share)
    return Finding(code, record.slug, severity, message, evidence, steps, cost_ns, share, share_of, heading)
