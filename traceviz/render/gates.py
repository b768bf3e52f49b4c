"""The gates of a report, for renderers used in continuous integration."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.render.options import GATES
from traceviz.report import Report

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
