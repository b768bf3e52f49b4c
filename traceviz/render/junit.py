"""The gates as JUnit XML, which build servers show as tests.

A failed gate is a failure. A gate that cannot be judged is an error. Neither counts as a success.
"""

from __future__ import annotations

from typing import ClassVar
from xml.sax.saxutils import escape, quoteattr

from traceviz.core.sanitize import sentence
from traceviz.render.gates import FAILED, UNKNOWN, Gate, gates_of, source_of
from traceviz.render.options import RenderOptions, select
from traceviz.report import Report


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
            f"    <system-out>{escape(sentence(report.verdict.sentence))}</system-out>",
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
