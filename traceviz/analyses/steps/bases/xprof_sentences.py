"""Conclusions of the TensorFlow profiler from its classes, in its own sentences.

Thresholds and wording are those of openxla/xprof (`op_stats_to_input_pipeline_analysis`). They are older than its name:
TensorBoard's profiler plugin has had them since 2020. Percentages are of all step time, with one decimal.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.analyses.steps.bases.xprof import XprofSteps

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
