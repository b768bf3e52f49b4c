"""Evidence that a program trains. Without marked steps, only effects of training can show it.

A simulation, a benchmark of one operator and an inference loop repeat their work as a training loop does. The backward
pass and the optimizer distinguish them. A program without either, and without a data loader, has no input to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import polars as pl

from traceviz.analyses.derived.host.classes import TO_DEVICE, sees_input
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.serving import engine_calls
from traceviz.analyses.derived.steps.steps import INFERRED
from traceviz.analyses.derived.view import TraceView, once_per_trace


class ReasonCode(Enum):
    """Reasons for not judging the input."""

    SERVES = auto()
    TRAINS_NOTHING = auto()
    NO_STEPS = auto()
    NO_SIGN_OF_TRAINING = auto()
    NO_RANGES = auto()
    NO_RANGES_NOR_DEVICE = auto()
    NO_HOST = auto()
    FEW_STEPS = auto()


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason.

    Args:
        code: The kind of reason.
        fact: The fact, within a sentence.
        consequence: Its consequence; the first sentence of a report omits it.
    """

    code: ReasonCode
    fact: str
    consequence: str = ""

    @property
    def text(self) -> str:
        """The fact and its consequence, within a sentence."""
        return f"{self.fact}, so {self.consequence}" if self.consequence else self.fact


@dataclass(frozen=True, slots=True)
class Remedy:
    """Advice on how to make the next capture judgeable.

    Args:
        first: The first way; empty if nothing helps.
        others: The other ways, with their leading punctuation; the first sentence of a report omits them.
    """

    first: str = ""
    others: str = ""

    @property
    def text(self) -> str:
        """All ways."""
        return f"{self.first}{self.others}"

    @property
    def brief(self) -> str:
        """The first way, as a sentence."""
        return f"{self.first.rstrip('.')}." if self.first else ""


NO_REMEDY = Remedy()


GRADIENT_KERNEL = r"(?i:backward|dgrad|wgrad|bprop|bwd)"
"""Names of kernels of a backward pass."""
UPDATE_KERNEL = r"(?i:multi_tensor_apply|optimizer|adam|sgd|ApplyGradient)"
"""Names of kernels of an optimizer."""
TRAINING_KERNEL = f"{GRADIENT_KERNEL}|{UPDATE_KERNEL}"

GRADIENT_EVENT = (
    r"Backward\d*(,|$|Function)|^autograd::engine|gradient_tape/|PostBackward|(?i:(^|[ ._])backward([ ._(]|$))"
)
"""Names of ranges, annotations and operations of a backward pass."""
UPDATE_EVENT = (
    r"^Optimizer\.|(?i:(^|[. ])optimizer([ ._]step|[ (]|$))"
    r"|(?i:(^|[^a-z])train(ing)?[ _]?(step|batch|epoch|loop|function)?([^a-z]|$))"
)
"""Names of ranges, annotations and operations of an optimizer, or of training in general."""
TRAINING_EVENT = f"{GRADIENT_EVENT}|{UPDATE_EVENT}"

NOTHING_RECORDED = "no input, gradients or optimizer were recorded"
GRADIENTS_ALONE = "gradients were recorded, but no input, optimizer or copy to a device"
"""Fact about a program that computes gradients and takes no input, such as a benchmark of a loss."""

IF_IT_TRAINS = "If it trains, mark its steps, or name what it waits in for a batch with --input-range REGEX."
"""Advice for programs without signs of training."""


@once_per_trace
def trains(trace: TraceView) -> bool:
    """Return whether the trace shows that the program trains: its steps are marked, or it takes input or learns.

    Simulations mark steps as well, so marks count only if the program may use a framework. A serving engine does not
    train: :mod:`traceviz.analyses.derived.steps.serving`.
    If the user gives patterns for steps or input, the program counts as training.
    """
    if engine_calls(trace).height:
        return False
    options = trace.options
    if options.step_marker or options.input_range:
        return True
    if training_steps(trace).source not in INFERRED and likely_frameworks(trace):
        return True
    if sees_input(trace) or _has(trace, UPDATE_KERNEL, UPDATE_EVENT):
        return True
    return _has(trace, GRADIENT_KERNEL, GRADIENT_EVENT) and _may_take_input(trace)


def why_nothing_trains(trace: TraceView) -> Reason:
    """Return why a program counts as not training."""
    fact = GRADIENTS_ALONE if _has(trace, GRADIENT_KERNEL, GRADIENT_EVENT) else NOTHING_RECORDED
    return Reason(ReasonCode.NO_SIGN_OF_TRAINING, fact, "nothing shows that the program trains")


def _has(trace: TraceView, kernel: str, event: str) -> bool:
    """Return whether work with such a name was recorded, on a device or on the host."""
    kernels = trace.frame("kernels", "name")["name"].unique().cast(pl.String)
    if kernels.str.contains(kernel).any():
        return True
    events = trace.host_names.filter(pl.col("category") != "python")["name"]  # Python modules may only be imported
    ranges = trace.ranges["name"].unique()
    return bool(events.str.contains(event).any() or ranges.str.contains(event).any())


def _may_take_input(trace: TraceView) -> bool:
    """Return whether data was copied to the program's devices, or copies or their directions are not known."""
    if "memcpy" not in trace.tables or not trace.rank_busy or trace.has_tpu:
        return True
    kinds = trace.frame("memcpy", "kind")["kind"].unique().cast(pl.String)
    brought = trace.host_names.filter((pl.col("category") == "transfer") & pl.col("name").str.contains(TO_DEVICE))
    return kinds.str.contains("h2d|unknown").any() or bool(brought.height)
