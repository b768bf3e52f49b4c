"""The section of the report that shows step time by the classes of another program."""

from __future__ import annotations

from traceviz.analyses.steps.bases.xprof import CLASSES, ForeignSteps
from traceviz.analyses.steps.bases.xprof_sentences import Shares, conclusion, shares, statements
from traceviz.report import Bar, Bars, Block, Column, Fact, Facts, Grid, Prose, Row
from traceviz.units import counted, format_ns

_LAST = "host_to_host"
"""A class that is shown only where it has time: the original has no column for it."""

_NEAR = " It does not know what marks the steps of this trace, and may divide them otherwise."

_CLASS_COLUMNS = (
    Column("class", "Class", "text", 0),
    Column("total_ns", "Total", "ns", 0),
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


def foreign_blocks(steps: ForeignSteps) -> tuple[Block, ...]:
    """Facts, one stacked bar, the tables behind it, and what the other program concludes; whose rules, in one line."""
    basis, whole, count = steps.basis, steps.total("step_ns"), steps.frame.height
    shown = [c for c in CLASSES if c.key != _LAST or steps.total(c.key)]
    totals = [(c, steps.total(c.key), steps.share(c.key)) for c in shown]
    bars = tuple(Bar(c.key, c.label, total, share) for c, total, share in totals if total)
    rows: tuple[Row, ...] = tuple((c.key, total, share, round(total / count)) for c, total, share in totals)
    found = shares(steps)
    blind = basis.blind if steps.has_device else basis.blind_without_device
    in_words = f"time of {counted(count, 'step')} by the rules of {basis.name} ({format_ns(whole)})"
    words = " ".join((conclusion(found), *statements(found, tf_data=steps.tf_data)))
    return (
        Facts(_facts(steps, found), audience="machine"),
        Prose(f"Classes by the rules of {basis.title}, not ours: {blind}.{_NEAR if steps.near else ''}"),
        Bars("Step time", in_words, "ns", bars),
        Grid(_CLASS_COLUMNS, rows, audience="machine"),
        Grid(_STEP_COLUMNS, _step_rows(steps), title="Steps", audience="machine"),
        Prose(f"Its conclusion: “{words}”"),
    )


def _facts(steps: ForeignSteps, found: Shares) -> tuple[Fact, ...]:
    ratios = (
        ("input_share", "input", found.input),
        ("output_share", "output", found.output),
        ("device_compute_share", "device compute", found.device_compute),
        ("device_collectives_share", "device collectives", found.device_collectives),
        ("idle_share", "device idle", found.idle),
        ("kernel_launch_share", "kernel launch", found.kernel_launch),
        ("other_share", "all others", found.other),
    )
    return (
        Fact("basis", "basis", steps.basis.name),
        Fact("step_ns", "step time", steps.total("step_ns"), "ns"),
        Fact("steps", "steps", steps.frame.height, "count"),
        Fact("conclusion", "conclusion", conclusion(found)),
        *(Fact(key, label, value, "ratio") for key, label, value in ratios),
    )


def _step_rows(steps: ForeignSteps) -> tuple[Row, ...]:
    columns = ("step", "process_id", "start_ns", "step_ns", *(c.key for c in CLASSES))
    return tuple(steps.frame.select(columns).rows())
