"""The report as commands of GitHub Actions, which become annotations of a job.

The summary of the job shows the whole report. It is Markdown, written by the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from traceviz.core.sanitize import sentence
from traceviz.render.gates import FAILED, UNKNOWN, gates_of, source_of
from traceviz.render.options import RenderOptions, select
from traceviz.render.rows import by_time_at_stake, time_at_stake
from traceviz.report import Report, Severity

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
    yield _command("notice", title, f"{report.verdict.sentence}{tally}")


def _command(name: str, title: str, message: str) -> str:
    return f"::{name} title={_escaped(title, _IN_PROPERTIES)}::{_escaped(message, _IN_MESSAGES)}"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in sentence(text))
