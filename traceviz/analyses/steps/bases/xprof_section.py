"""The section of the report on step time by the classes of the TensorFlow profiler, in its own wording."""

from __future__ import annotations

from traceviz.analyses.derived.statistics import frame_grid
from traceviz.analyses.steps.bases.section import basis_blocks, class_totals
from traceviz.analyses.steps.bases.xprof import CLASSES, XprofSteps
from traceviz.analyses.steps.bases.xprof_sentences import conclusion, shares_of, statements
from traceviz.report import Block, Column, Fact, Grid

_LAST = "host_to_host"
"""A class that is shown only if it has time, because the original has no column for it."""

_NEAR = " It does not know what marks the steps of this trace, and may divide them otherwise."

_CLASS_COLUMNS = (
    Column("class", "Class", "text", 0),
    Column("total_ns", "Total", "ns", 0, additive=True),
    Column("share_of_step", "Of step time", "ratio", 0, bar=True),
    Column("per_step_ns", "Per step", "ns", 1),
)
_STEP_COLUMNS = (
    Column("stepnum", "Step", "text", 0),
    Column("process_id", "Process", "id", 1),
    Column("start_ns", "Start", "ns", 1),
    Column("step_ns", "Step time", "ns", 0),
    *(Column(f"{c.key}_ns", c.label, "ns", 0) for c in CLASSES),
)


def xprof_blocks(steps: XprofSteps) -> tuple[Block, ...]:
    """Return the classes, every step, and the profiler's conclusion."""
    rules, parts = steps.rules, shares_of(steps)
    totals = class_totals(steps, (c for c in CLASSES if c.key != _LAST or steps.total(c.key)))
    blind = rules.blind if steps.has_device else rules.blind_without_device
    sentences = " ".join((conclusion(parts), *statements(parts, tf_data=steps.tf_data)))
    return basis_blocks(
        name=rules.name,
        remark=f"{rules.title}, not ours: {blind}.{_NEAR if steps.near else ''}",
        steps=steps,
        totals=totals,
        facts=(
            Fact("conclusion", "conclusion", conclusion(parts)),
            Fact("input_share", "input", parts.input, "ratio"),
            Fact("output_share", "output", parts.output, "ratio"),
            Fact("device_compute_share", "device compute", parts.device_compute, "ratio"),
            Fact("device_collectives_share", "device collectives", parts.device_collectives, "ratio"),
            Fact("idle_share", "device idle", parts.idle, "ratio"),
            Fact("kernel_launch_share", "kernel launch", parts.kernel_launch, "ratio"),
            Fact("other_share", "all others", parts.other, "ratio"),
        ),
        grids=(
            frame_grid(_CLASS_COLUMNS, totals, audience="machine"),
            Grid(_STEP_COLUMNS, steps.rows(CLASSES), title="Steps", audience="machine"),
        ),
        conclusion=f"Its conclusion: “{sentences}”",
    )
