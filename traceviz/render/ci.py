"""Formats for CI: gates of a report, JUnit XML, and annotations of GitHub."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar
from xml.sax.saxutils import escape, quoteattr

from traceviz.core.sanitize import sentence
from traceviz.render.options import GATES, RenderOptions, select
from traceviz.render.rows import by_time_at_stake, time_at_stake
from traceviz.render.verdict_text import first_lines
from traceviz.report import Report, Severity

FAILED, UNKNOWN = "failed", "unknown"
"""Outcomes other than a pass."""
_COLUMNS = ("gate", "side", "limit", "outcome", "kind", "message")


@dataclass(frozen=True, slots=True)
class Gate:
    """A row of section ``gates``: readable texts, ``outcome``, ``kind`` and ``message`` as in the JSON report."""

    gate: str
    side: str
    limit: str
    outcome: str
    kind: str
    message: str

    @property
    def title(self) -> str:
        """The condition, and the side that it applies to: ``input_wait <= 5%``."""
        condition = f"{self.gate} {self.limit}" if self.kind == "budget" else f"{self.gate}: {self.limit}"
        return f"{self.side}: {condition}" if self.side else condition


def gates_of(report: Report) -> tuple[Gate, ...]:
    """Return the gates of the report, worst first; empty if it has no such section."""
    gates: list[Gate] = []
    for grid in report.grids(GATES):
        names = [column.name for column in grid.columns]
        if set(_COLUMNS) <= set(names):
            positions = [names.index(name) for name in _COLUMNS]
            texts = [
                ["" if row[position] is None else str(row[position]) for position in positions] for row in grid.rows
            ]
            gates += [Gate(*row) for row in texts]
    return tuple(gates)


def source_of(report: Report) -> str:
    """Return the name of the report's trace; empty if the report does not state it."""
    return next((str(fact.value) for fact in report.run if fact.key == "source" and fact.value is not None), "")


class JUnitRenderer:
    """One test case per gate, and the verdict as the output; no other parts of the report."""

    name: ClassVar[str] = "junit"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render the document in ASCII, ended by a newline; width, colour and row limit have no effect."""
        report = select(report, options.sections)
        gates = gates_of(report)
        failed, unknown = (sum(gate.outcome == kind for gate in gates) for kind in (FAILED, UNKNOWN))
        counts = f'tests="{len(gates)}" failures="{failed}" errors="{unknown}"'
        name = ": ".join(part for part in ("traceviz", source_of(report)) if part)
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {counts}>",
            f'  <testsuite name={_attribute(name)} {counts} skipped="0">',
            *(line for gate in gates for line in _case(gate)),
            f"    <system-out>{escape(sentence(first_lines(report.verdict).text))}</system-out>",
            "  </testsuite>",
            "</testsuites>",
        ]
        return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode("ascii") + "\n"


def _case(gate: Gate) -> list[str]:
    opening = f"    <testcase classname={_attribute(f'traceviz.{gate.kind}')} name={_attribute(gate.title)}"
    element = {FAILED: "failure", UNKNOWN: "error"}.get(gate.outcome)
    if element is None:
        return [f"{opening}/>"]
    result = f"      <{element} type={_attribute(gate.kind)} message={_attribute(gate.message)}/>"
    return [f"{opening}>", result, "    </testcase>"]


def _attribute(text: str) -> str:
    return quoteattr(sentence(text))


_IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_IN_MESSAGES, ":": "%3A", ",": "%2C"}
"""Escapes of https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts."""


class GitHubRenderer:
    """An error for each gate that did not pass, a warning for each serious finding, and the verdict as a notice."""

    name: ClassVar[str] = "github"

    def render(self, report: Report, options: RenderOptions) -> str:
        """Render one command per line, ended by a newline; width, colour and row limit have no effect."""
        return "".join(f"{line}\n" for line in _commands(select(report, options.sections)))


def _commands(report: Report) -> Iterator[str]:
    gates = gates_of(report)
    for gate in gates:
        if gate.outcome in {FAILED, UNKNOWN}:
            ending = "failed" if gate.outcome == FAILED else "cannot be judged"
            yield _command("error", f"Gate {gate.title} {ending}", gate.message)
    for finding in by_time_at_stake(report.findings):
        if finding.severity.rank >= Severity.WARNING.rank:
            stake = time_at_stake(finding)
            message = f"{finding.message} ({stake})" if stake else finding.message
            yield _command("warning", f"{finding.code} {finding.slug}", message)
    passed = sum(gate.outcome not in {FAILED, UNKNOWN} for gate in gates)
    tally = f" {passed} of {len(gates)} gates passed." if gates else ""
    title = ": ".join(part for part in ("traceviz", source_of(report)) if part)
    yield _command("notice", title, f"{first_lines(report.verdict).text}{tally}")


def _command(name: str, title: str, message: str) -> str:
    return f"::{name} title={_escaped(title, _IN_PROPERTIES)}::{_escaped(message, _IN_MESSAGES)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in sentence(text))
