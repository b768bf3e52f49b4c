"""Work of a loop that is not part of its steps: an evaluation every hundred steps, new data for each epoch.

Where an optimizer marks the steps, each lasts until the optimizer's next call, and what the loop does only now and
then is in the step that it follows. The lines of the function with the loop show it::

    line 50  train_step    ## ## ## ## ##               ## ## ## ##
    line 60  rebuild                       ##########
    steps                  |--|--|--|--|-----------------|--|--|--|
                             ordinary            long      ordinary
"""

from __future__ import annotations

import numpy as np

from traceviz.analyses.derived.run_parts.chains import Chains, Flags
from traceviz.analyses.derived.run_parts.main_process import MainProcess
from traceviz.analyses.derived.steps.steps import warmup_steps
from traceviz.intervals import Array

LONG = 3.0
"""A step that lasts so many medians may hold other work;"""
MOST_LONG = 0.25
"""not where more than this part of the steps do: then they are of two kinds."""
RARE = 0.05
"""A line of which ordinary steps have less than this part of what long ones have, and these at least the time of an
ordinary step, is no work of steps."""
MIN_SAMPLES = 10
"""Fewer samples of steps say nothing."""


def occasional(main: MainProcess, stacks: Chains, places: Array) -> tuple[Flags, Array]:
    """Samples of lines that the loop runs only now and then.

    Args:
        main: The process.
        stacks: All stacks.
        places: Position of the stack of each row of ``main.rows``.

    Returns:
        Whether each row of ``main.rows`` is such work, and the position of the outermost line that is.
    """
    nothing = np.zeros(places.size, dtype=bool), np.full(places.size, stacks.nobody)
    starts, ends = (main.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    if not starts.size or not places.size:
        return nothing
    lasting = ends - starts
    is_long = (lasting > LONG * np.median(lasting)) & ~warmup_steps(lasting)
    if not is_long.any() or is_long.mean() > MOST_LONG:
        return nothing
    rows = {name: main.rows[name].to_numpy() for name in ("start_ns", "end_ns", "samples")}
    middle = (rows["start_ns"] + rows["end_ns"]) // 2
    step = np.searchsorted(starts, middle, "right") - 1
    within = (step >= 0) & (middle < ends[np.maximum(step, 0)])
    in_long = within & is_long[np.maximum(step, 0)]
    ordinary = within & ~in_long
    if rows["samples"][ordinary].sum() < MIN_SAMPLES:
        return nothing
    times = rows["end_ns"] - rows["start_ns"]
    usual, rare = (stacks.inclusive(places, np.where(chosen, times, 0)) for chosen in (ordinary, in_long))
    is_rare = (rare >= np.median(lasting)) & (usual <= RARE * rare)
    lines = stacks.outermost(is_rare[: stacks.nobody])[places]
    return in_long & (lines < stacks.nobody), lines
