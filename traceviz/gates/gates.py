"""Gates: conditions that a run must meet, for continuous integration.

A gate passes, fails, or is unknown if its figure was not measured. An unmeasured figure never passes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from traceviz.compare.effect import Outcome as Judged
from traceviz.compare.judge import Judgement
from traceviz.core.errors import GateFailedError, NoVerdictError, UsageError
from traceviz.core.sanitize import Lines
from traceviz.core.units import Unit, counted, format_change, format_ratio, format_value
from traceviz.gates.budgets import RELATIONS, Budget, parse_share
from traceviz.gates.metrics import Candidate, Metric, Reading, at_least, findings
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, Report, Section, Severity

BUDGETS, GATES = "budgets", "gates"
FAIL_ON, REGRESSION = "fail-on", "fail-on-regression"
SEVERITIES = (Severity.WARNING, Severity.ERROR)
"""Allowed values of ``fail-on``."""


def gates_from_toml(text: str, source: str = "The file") -> Gates:
    """Return the gates in ``[budgets]`` and ``[gates]``.

    Args:
        text: The TOML.
        source: Name of the file in errors.

    Raises:
        UsageError: it is not TOML, or contains something other than gates.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not TOML.", f"{error}.") from None
    _check_names(source, "table", document, (BUDGETS, GATES))
    budgets, gates = (_table(source, document, name) for name in (BUDGETS, GATES))
    _check_names(f"[{GATES}] of {source}", "key", gates, (FAIL_ON, REGRESSION))
    requested = Gates(
        tuple(Budget.parse(expression) for expression in _expressions(source, budgets)),
        _severity(source, gates.get(FAIL_ON)),
        _share(source, gates.get(REGRESSION)),
    )
    if not requested:
        raise UsageError(f"{source} sets no gate.", fix=f"Write limits in [{BUDGETS}], or {FAIL_ON} in [{GATES}].")
    return requested


def _check_names(where: str, kind: str, table: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in table:
        if name not in names:
            raise UsageError(f"{where} has the unknown {kind} {name!r}.", fix=f"Known: {', '.join(names)}.")


def _table(source: str, document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"[{name}] of {source} should be a table.")
    return table


def _expressions(source: str, table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield budgets from ``name = "<=5%"`` or a list of such limits; an unquoted ``section.fact`` is a nested table."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and not prefix:
            yield from _expressions(source, value, f"{key}.")
            continue
        for limit in value if isinstance(value, list) else [value]:
            if not isinstance(limit, str) or not limit.strip().startswith(RELATIONS):
                raise UsageError(f'{name} of {source} should be a text such as "<=5%", but is {limit!r:.40}.')
            yield f"{name}{limit}"


def _severity(source: str, value: Any) -> Severity | None:
    if value is None:
        return None
    if value not in [severity.value for severity in SEVERITIES]:
        raise UsageError(f"{FAIL_ON} of {source} is {value!r:.40}.", fix=f"Known: {', '.join(SEVERITIES)}.")
    return Severity(value)


def _share(source: str, value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise UsageError(f'{REGRESSION} of {source} should be a text such as "5%", but is {value!r:.40}.')
    return parse_share(value)


SLUG = "gates"
"""Slug of the section."""


class Outcome(StrEnum):
    """Outcome of a gate."""

    FAILED = "failed"
    UNKNOWN = "unknown"
    PASSED = "passed"


WORDS = {Outcome.FAILED: "failed", Outcome.UNKNOWN: "cannot judge", Outcome.PASSED: "passed"}
"""Display text of outcomes."""


@dataclass(frozen=True, slots=True)
class Gates:
    """Conditions that a run must meet.

    Args:
        budgets: Limits for figures.
        fail_on: Findings of this severity or worse fail.
        regression: Smallest increase of the mean step, as a share of the base's, that fails if it is beyond chance.
    """

    budgets: tuple[Budget, ...] = ()
    fail_on: Severity | None = None
    regression: float | None = None

    def __bool__(self) -> bool:
        """Return whether there is any condition."""
        return bool(self.budgets) or self.fail_on is not None or self.regression is not None

    @property
    def sections(self) -> frozenset[str]:
        """Sections of the report that are needed to judge the budgets."""
        return frozenset(slug for budget in self.budgets for slug in budget.metric.sections)

    @property
    def needs_all(self) -> bool:
        """True if every section is needed, because any of them may have findings."""
        return self.fail_on is not None or any(budget.metric.of_findings for budget in self.budgets)

    @property
    def comparing(self) -> tuple[str, ...]:
        """Names of the gates that need a base to compare with."""
        names = (budget.metric.name for budget in self.budgets if budget.metric.comparing)
        return (*(("fail-on-regression",) if self.regression is not None else ()), *dict.fromkeys(names))

    def over(self, lower: Gates) -> Gates:
        """Return these gates, and those of ``lower`` that they do not set.

        A budget replaces those with the same metric and the same direction.
        """
        own = {(budget.metric.name, budget.is_upper) for budget in self.budgets}
        others = tuple(b for b in lower.budgets if (b.metric.name, b.is_upper) not in own)
        fail_on = lower.fail_on if self.fail_on is None else self.fail_on
        regression = lower.regression if self.regression is None else self.regression
        return Gates((*others, *self.budgets), fail_on, regression)


@dataclass(frozen=True, slots=True)
class GateResult:
    """A gate and its outcome.

    Args:
        gate: Its name: a metric, ``findings`` or ``regression``.
        kind: ``budget``, ``findings`` or ``regression``.
        limit: The limit for people.
        measured: The measured figure, for people.
        outcome: The outcome.
        why: Why it is unknown, or another remark.
        side: The judged side, if there are several.
        relation: Required relation of ``value`` to ``limit_value``.
        limit_value: The limit in base ``unit``; ``None`` if the unit is unknown.
        value: The measured figure in base ``unit``; ``None`` if nothing was measured.
        unit: Base unit.
    """

    gate: str
    kind: str
    limit: str
    measured: str
    outcome: Outcome
    why: str = ""
    side: str = ""
    relation: str = "<="
    limit_value: float | None = None
    value: float | None = None
    unit: Unit = "number"


def judge_gates(gates: Gates, candidates: Sequence[Candidate]) -> tuple[GateResult, ...]:
    """Judge every candidate by every gate; failed ones first, then unknown ones.

    Raises:
        UsageError: a limit does not fit its metric.
    """
    results = [result for candidate in candidates for result in _of(gates, candidate)]
    order = list(Outcome)
    return tuple(sorted(results, key=lambda result: order.index(result.outcome)))


def _of(gates: Gates, candidate: Candidate) -> Iterator[GateResult]:
    if gates.regression is not None:
        yield replace(_regression(gates.regression, candidate.judgement), side=candidate.label)
    if gates.fail_on is not None:
        yield replace(_findings(gates.fail_on, candidate), side=candidate.label)
    for budget in gates.budgets:
        yield replace(_budget(budget, budget.metric.read(candidate)), side=candidate.label)


def _budget(budget: Budget, reading: Reading) -> GateResult:
    unit, value = reading.unit, reading.value
    if value is None:
        limit = None if budget.metric.unit is None else budget.limit(unit)
        outcome, measured = Outcome.UNKNOWN, "not measured"
    else:
        limit, holds = budget.limit(unit), budget.holds(value, unit)
        unseen = reading.at_least and holds == budget.is_upper
        outcome = Outcome.UNKNOWN if unseen else Outcome.PASSED if holds else Outcome.FAILED
        measured = _distinguishable(value, limit, unit)
    return GateResult(
        gate=budget.metric.name,
        kind="budget",
        limit=budget.limit_text,
        measured=measured,
        outcome=outcome,
        why=reading.why,
        relation=budget.relation,
        limit_value=limit,
        value=value,
        unit=unit,
    )


def _distinguishable(value: float, limit: float, unit: Unit) -> str:
    """Format a value for people; use more digits if rounding would make it look like the limit."""
    shown = format_value(value, unit)
    if value == limit or shown != format_value(limit, unit):
        return shown
    return f"{value * 100:.9g} %" if unit == "ratio" else f"{value:,.9g}{f' {unit}' if unit in _NAMED else ''}"


_NAMED = frozenset({"ns", "bytes", "bytes/s", "joule", "per_second"})


def _findings(severity: Severity, candidate: Candidate) -> GateResult:
    name = f"findings_{severity}"
    metric = Metric(name, "count", "", (), partial(findings, severity))
    result = _budget(Budget(metric, "<=", "0"), metric.read(candidate))
    raised = (finding for report in candidate.reports for finding in at_least(report, severity))
    codes = ", ".join(dict.fromkeys(f"{finding.code} {finding.slug}" for finding in raised))
    measured = f"{result.measured} ({codes})" if codes else "none"
    limit = "no warning, no error" if severity is Severity.WARNING else f"no {severity}"
    return replace(result, gate="findings", kind="findings", limit=limit, measured=measured)


def _regression(limit: float, judgement: Judgement | None) -> GateResult:
    """Fail if the new side is judged slower by at least the limit."""
    if judgement is None:
        judgement = Judgement(Judged.UNKNOWN, None, "there is nothing to compare with")
    ratio = None if judgement.effect is None else judgement.effect.ratio
    outcome = Outcome.FAILED if judgement.is_slower_by(limit) else Outcome.PASSED
    if judgement.outcome is Judged.UNKNOWN:
        outcome = Outcome.UNKNOWN
    measured = "not compared" if ratio is None else format_change(ratio, "ratio")
    if ratio is not None and ratio > 0:
        measured = f"+{_distinguishable(ratio, limit, 'ratio')}"
    verdict = Judged.SLOWER if outcome is Outcome.FAILED else judgement.outcome  # even below the limit
    return GateResult(
        gate="regression",
        kind="regression",
        limit=f"< {format_ratio(limit)} longer {'steps' if judgement.basis.is_step else judgement.basis.words}",
        measured=f"{measured}, {verdict}",
        outcome=outcome,
        why=judgement.why or ("" if outcome is Outcome.FAILED else _not_excluded(limit, judgement)),
        relation="<",
        limit_value=limit,
        value=ratio,
        unit="ratio",
    )


def _not_excluded(limit: float, judgement: Judgement) -> str:
    """Return a caution if no change is found and the limit lies within the interval."""
    ends = judgement.effect.interval if judgement.effect and judgement.outcome is Judged.NO_CHANGE else None
    if ends is None or ends[1] < limit:
        return ""
    reach = format_ratio(ends[1])
    if not judgement.basis.is_step:
        return f"a {judgement.basis.words} up to {reach} longer is not excluded; more runs of each side would tell"
    return f"steps that are up to {reach} longer are not excluded; more steps, or more runs of each side, would tell"


def exit_code(results: Iterable[GateResult]) -> int:
    """Return 0 if all passed, 1 if one failed, else 4: one cannot be judged."""
    outcomes = {result.outcome for result in results}
    return 1 if Outcome.FAILED in outcomes else 4 if Outcome.UNKNOWN in outcomes else 0


def check(results: Sequence[GateResult]) -> None:
    """Raise the error that ends the command line with :func:`exit_code`.

    Raises:
        GateFailedError: a gate failed.
        NoVerdictError: none failed, and one cannot be judged.
    """
    for outcome, error in ((Outcome.FAILED, GateFailedError), (Outcome.UNKNOWN, NoVerdictError)):
        not_passed = [result for result in results if result.outcome is outcome]
        if not_passed:
            raise error(_tally(results), Lines.of(*map(_sentence, not_passed)))


def _sentence(result: GateResult) -> str:
    """Return the outcome of a gate as a sentence: side, measured figure and limit."""
    if result.outcome is Outcome.UNKNOWN:
        return f"{_subject(result)}: {result.why.rstrip('.') or 'not measured'}."
    if result.kind == "findings":
        return f"{_subject(result)}: {result.measured}; {result.limit} is allowed."
    return f"{_subject(result)}: {result.measured}, and the limit is {result.limit}."


def _subject(result: GateResult) -> str:
    return f"{result.side}: {result.gate}" if result.side else result.gate


def _remark(result: GateResult) -> str:
    cannot = "Cannot judge " if result.outcome is Outcome.UNKNOWN else ""
    return f"{cannot}{_subject(result)}: {result.why.rstrip('.')}."


def _tally(results: Sequence[GateResult]) -> str:
    """Return the number of gates, and how many of them did not pass."""
    count = {outcome: sum(result.outcome is outcome for result in results) for outcome in Outcome}
    failed, unknown = count[Outcome.FAILED], count[Outcome.UNKNOWN]
    whole = counted(len(results), "gate")
    if not failed and not unknown:
        return f"{whole} passed."
    if not failed:
        return f"{unknown} of {whole} cannot be judged."
    others = f", {unknown} cannot be judged" if unknown else ""
    return f"{failed} of {whole} failed{others}."


def add_gate_section(report: Report, results: Sequence[GateResult]) -> Report:
    """Return the report with a section of its gates at the end; unchanged if there are none."""
    return replace(report, sections=(*report.sections, section(results))) if results else report


def section(results: Sequence[GateResult]) -> Section:
    """Return the section of the gates, worst first, with the reasons of those that cannot be judged."""
    several = any(result.side for result in results)
    columns = (
        Column("gate", "Gate", "text", 0),
        Column("side", "Side", "text", 0 if several else 9),
        Column("limit", "Limit", "text", 0),
        Column("measured", "Measured", "text", 0),
        Column("result", "Outcome", "text", 0),
        *(Column(name, name, "text", 9) for name in ("outcome", "kind", "relation")),
        *(Column(name, name, "number", 9) for name in ("limit_value", "measured_value")),
        *(Column(name, name, "text", 9) for name in ("unit", "why", "message")),
    )
    rows = tuple(
        (
            *(r.gate, r.side or None, r.limit, r.measured, WORDS[r.outcome], r.outcome.value, r.kind, r.relation),
            *(r.limit_value, r.value, r.unit, r.why or None, _sentence(r)),
        )
        for r in results
    )
    total = {outcome: sum(result.outcome is outcome for result in results) for outcome in Outcome}
    facts = (
        Fact("gates", "gates", len(results), "count"),
        *(Fact(outcome.value, WORDS[outcome], total[outcome], "count") for outcome in Outcome),
    )
    remarks: list[Block] = [Prose(text) for text in dict.fromkeys(_remark(r) for r in results if r.why)]
    return Section(SLUG, "Gates", (Facts(facts), Grid(columns, rows, complete=True), *remarks))


def for_one_side(gates: Gates) -> Gates:
    """Return the gates for a report without a base to compare with.

    Raises:
        UsageError: one of them needs a base.
    """
    if names := gates.comparing:
        raise UsageError(
            f"{' and '.join(names)} compares two sides, and a report has one.",
            fix="Use it with `traceviz compare BASE NEW`.",
        )
    return gates
