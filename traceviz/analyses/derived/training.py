"""Whether a program trains: without steps that somebody marked, only what training leaves behind can show it.

A simulation, a benchmark of one operator and an inference loop repeat their work as a training loop does. What tells
them apart is the backward pass and the optimizer; a program without either, and without a data loader, has no input to
wait for.
"""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.host_classes import sees_input
from traceviz.analyses.derived.serving import engine_calls
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.steps import INFERRED
from traceviz.analyses.derived.view import TraceView, once_per_trace

TRAINING_KERNEL = r"(?i)backward|dgrad|wgrad|bprop|bwd|multi_tensor_apply|optimizer|adam|sgd|ApplyGradient"
"""Names of kernels of a backward pass or of an optimizer."""

TRAINING_EVENT = (
    r"Backward\d*(,|$|Function)|^autograd::engine|gradient_tape/|^Optimizer\.|PostBackward"
    r"|(?i:(^|[ ._])backward([ ._(]|$)|(^|[. ])optimizer([ ._]step|[ (]|$))"
    r"|(?i:(^|[^a-z])train(ing)?[ _]?(step|batch|epoch|loop|function)?([^a-z]|$))"
)
"""Names of ranges, annotations and operations of a training loop."""

NOTHING_TRAINS = "no input, gradients or optimizer were recorded, so nothing shows that the program trains"
"""Why nothing is said of the input of a program."""

IF_IT_TRAINS = "If it trains, mark its steps, or name what it waits in for a batch with --input-range REGEX."
"""What to do then."""


@once_per_trace
def trains(trace: TraceView) -> bool:
    """Whether the program trains, as far as the trace shows: its steps are marked, or it takes input or learns.

    A serving engine does not: :mod:`traceviz.analyses.derived.serving`.
    The user's own patterns for steps and input say that there are some.
    """
    if engine_calls(trace).height:
        return False
    options = trace.options
    if options.step_marker or options.input_range or training_steps(trace).source not in INFERRED:
        return True
    return sees_input(trace) or _learns(trace)


def _learns(trace: TraceView) -> bool:
    """Whether a backward pass or an optimizer was recorded, on a device or on the host."""
    kernels = trace.frame("kernels", "name")["name"].unique().cast(pl.String)
    if kernels.str.contains(TRAINING_KERNEL).any():
        return True
    events = trace.host_names.filter(pl.col("category") != "python")["name"]  # modules of Python are only imported
    ranges = trace.ranges["name"].unique()
    return bool(events.str.contains(TRAINING_EVENT).any() or ranges.str.contains(TRAINING_EVENT).any())
