"""Stages of the input pipeline of both sides, by the time that steps waited in each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from traceviz.compare.changes.events import EventChange, changes_by_name
from traceviz.compare.changes.figures import no_steps, why_not
from traceviz.compare.kernel_pairs import Events, PerStep
from traceviz.compare.sides.sides import Side, rows, whole
from traceviz.report.verdicts import InputVerdict

_STAGE_COLUMNS = frozenset({"stage", "kind", "self_ns", "path"})
"""Columns of the grid of stages. Grids of the inside of a stage have no path."""


@dataclass(frozen=True, slots=True)
class StageChanges:
    """Stages of the input pipeline, by the time that steps waited in each, the largest difference first.

    Args:
        changes: ``group`` is the evidence (tf.data, NVTX range, ...); calls are not counted.
        base_share: Share of step time that waits for input; ``None`` if it was not measured.
        new_share: The same for the new side.
        why_not: Why stages cannot be compared; empty if they can.
    """

    changes: tuple[EventChange, ...] = ()
    base_share: float | None = None
    new_share: float | None = None
    why_not: str = ""


def compare_stages(base: Side, new: Side) -> StageChanges:
    """Compare the stages of the input pipeline by name."""
    why = why_not(base, new, "input_pipeline", "the input pipeline")
    unsure = [side.label for side in (base, new) if not sees_input(side)]
    if not why and unsure:
        why = f"the wait for input cannot be told in {' and '.join(unsure)}"
    if not why and not (base.steps and new.steps):
        why = no_steps(base, new)
    if why:
        return StageChanges(why_not=why)
    before, after = (side.mean("input_pipeline", "input_share") for side in (base, new))
    return StageChanges(changes_by_name(_stages(base), _stages(new)), before, after)


def sees_input(side: Side) -> bool:
    """Return whether the wait for input was measured in every run. A verdict of "cannot judge" does not count.

    If steps are divided into classes, input wait must be a measured class. Otherwise the report only bounds the time in
    which steps could have waited for input.
    """
    verdicts = [InputVerdict.read(value) for value in side.facts("input_pipeline", "verdict")]
    is_measured = all(verdict is None or verdict.is_measured for verdict in verdicts)
    return is_measured and len(verdicts) == len(side.reports) and (not side.classes or "input_wait" in side.measured)


def _stages(side: Side) -> Events:
    stages: dict[str, PerStep] = {}
    for report in side.reports:
        grids = report.grids("input_pipeline")
        table = next((grid for grid in grids if {column.name for column in grid.columns} >= _STAGE_COLUMNS), None)
        for row in rows(table):
            name, waited = str(row["stage"]), side.per_step(whole(row["self_ns"]))
            before = stages[name].ns if name in stages else Fraction(0)
            stages[name] = PerStep(Fraction(0), before + waited, str(row["kind"]))
    return stages
