"""The section of the report on step time by the classes of the TensorFlow profiler, and its conclusions.

Thresholds and sentences are those of openxla/xprof (`op_stats_to_input_pipeline_analysis`). They are older than its
name: TensorBoard's profiler plugin has had them since 2020. Percentages are of all step time, with one decimal.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.analyses.derived.statistics import frame_grid
from traceviz.analyses.steps.bases.section import basis_blocks, class_totals
from traceviz.analyses.steps.bases.xprof import CLASSES, XprofSteps
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


HIGHLY_INPUT_BOUND, MODERATELY_INPUT_BOUND = 0.20, 0.05
"""Shares of input from which a program is highly or moderately input-bound; for output, the same."""
NOTABLE = 0.03
"""Share from which on kernel launch, collectives and all others are mentioned."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares (0 to 1) of step time that conclusions rest on."""

    input: float
    output: float
    device_compute: float
    device_collectives: float
    kernel_launch: float
    other: float

    @property
    def idle(self) -> float:
        """Share of step time other than input, output, device compute and collectives."""
        return max(0.0, 1.0 - self.input - self.output - self.device_compute - self.device_collectives)


def shares_of(steps: XprofSteps) -> Shares:
    """Return the shares of all step time."""
    return Shares(
        input=steps.share("infeed"),
        output=steps.share("outfeed"),
        device_compute=steps.share("device_compute"),
        device_collectives=steps.share("device_collectives"),
        kernel_launch=steps.share("kernel_launch"),
        other=steps.share("other"),
    )


def conclusion(shares: Shares) -> str:
    """Return the sentence on input."""
    if shares.input >= HIGHLY_INPUT_BOUND:
        return (
            f"Your program is HIGHLY input-bound because {_percent(shares.input)}% of the total step time sampled is "
            "waiting for input. Therefore, you should first focus on reducing the input time."
        )
    if shares.input >= MODERATELY_INPUT_BOUND:
        return (
            f"Your program is MODERATELY input-bound because {_percent(shares.input)}% of the total step time sampled "
            "is waiting for input. Therefore, you would need to reduce both the input time and other time."
        )
    if shares.other >= NOTABLE:
        return (
            f"Your program is POTENTIALLY input-bound because {_percent(shares.other)}% of the total step time sampled "
            "is spent on 'All Others' time (which could be due to I/O or Python execution or both)."
        )
    return (
        f"Your program is NOT input-bound because only {_percent(shares.input)}% of the total step time sampled is "
        "waiting for input. Therefore, you should focus on reducing other time."
    )


def statements(shares: Shares, *, tf_data: bool) -> tuple[str, ...]:
    """Return further sentences on output, collectives, kernel launch and all others, if they are notable.

    Args:
        shares: Shares of step time.
        tf_data: True if the program uses tf.data, which may compete with kernel launches for cores.
    """
    python = " This could be due to Python execution overhead."
    contention = (
        " It could be due to CPU contention with tf.data. In this case, you may try to set the environment variable "
        "TF_GPU_THREAD_MODE=gpu_private."
    )
    reported = shares.input < MODERATELY_INPUT_BOUND  # the sentence on input has then already named all others
    sentences = (
        _output(shares.output),
        _notable(shares.device_collectives, "'Device Collective Communication'"),
        _notable(shares.kernel_launch, "'Kernel Launch'", contention if tf_data else ""),
        "" if reported else _notable(shares.other, "'All Others' time", python),
    )
    return tuple(sentence for sentence in sentences if sentence)


def _output(share: float) -> str:
    if share >= HIGHLY_INPUT_BOUND:
        return (
            f"Your program is HIGHLY output-bound because {_percent(share)}% of the total step time sampled is spent "
            "on output. Therefore, you should first focus on reducing the output time."
        )
    if share >= MODERATELY_INPUT_BOUND:
        return (
            f"Your program is MODERATELY output-bound because {_percent(share)}% of the total step time sampled is "
            "spent on output. Therefore, you would need to reduce both the output time and other time."
        )
    return ""


def _notable(share: float, name: str, remark: str = "") -> str:
    if share < NOTABLE:
        return ""
    return f"{_percent(share)} % of the total step time sampled is spent on {name}.{remark}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
