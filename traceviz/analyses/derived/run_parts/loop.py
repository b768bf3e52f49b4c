"""Work of a loop outside its steps: an evaluation every hundred steps, or new data for each epoch.

If an optimizer marks the steps, each lasts until the optimizer's next call. Occasional work of the loop then lies in
the step before it. The lines of the function with the loop show it::

    line 50  train_step    ## ## ## ## ##               ## ## ## ##
    line 60  rebuild                       ##########
    steps                  |--|--|--|--|-----------------|--|--|--|
                             ordinary            long      ordinary
"""

from __future__ import annotations

import numpy as np

from traceviz.analyses.derived.run_parts.main_process import MainProcess
from traceviz.analyses.derived.stacks.trees import Mask, StackTree
from traceviz.analyses.derived.steps.steps import warmup_steps
from traceviz.core.arrays.intervals import Array

LONG = 3.0
"""A step of at least this many medians may contain other work, unless"""
MOST_LONG = 0.25
"""more than this share of the steps are so long: then there are two kinds of steps."""
RARE = 0.05
"""A line is not part of steps if its time in ordinary steps is below this share of its time in long steps. The latter
must be at least the time of an ordinary step."""
MIN_SAMPLES = 10
"""With fewer samples of steps, nothing is concluded."""


def occasional(main: MainProcess, tree: StackTree, places: Array) -> tuple[Mask, Array]:
    """Return samples of lines that the loop runs only occasionally.

    Args:
        main: The process.
        tree: All stacks.
        places: Row in ``tree`` of the stack of each row of ``main.rows``.

    Returns:
        A mask of the rows of ``main.rows`` that are such work within a step. Also the row in ``tree`` of the outermost
        line that ordinary steps do not reach, even between steps, or -1.
    """
    nothing = np.zeros(places.size, dtype=bool), np.full(places.size, -1)
    starts, ends = (main.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    if not starts.size or not places.size:
        return nothing
    rows = {name: main.rows[name].to_numpy() for name in ("start_ns", "end_ns", "samples")}
    middle, times = (rows["start_ns"] + rows["end_ns"]) // 2, rows["end_ns"] - rows["start_ns"]
    step = np.maximum(np.searchsorted(starts, middle, "right") - 1, 0)
    within = (middle >= starts[step]) & (middle < ends[step]) & (places >= 0)
    between = ~within & (middle >= starts[0]) & (middle < ends[-1]) & (places >= 0)
    is_long = _long(ends - starts)
    in_long, ordinary = within & is_long[step], within & ~is_long[step]
    if rows["samples"][ordinary].sum() < MIN_SAMPLES:
        return nothing
    usual = _inclusive(tree, places[ordinary], times[ordinary])
    lines = np.full(places.size, -1)
    for chosen, least in ((in_long, np.median(ends - starts)), (between, 1)):
        rare = _inclusive(tree, places[chosen], times[chosen])
        outermost = tree.outermost((rare >= least) & (usual <= RARE * rare))
        lines[chosen] = outermost[places[chosen]]
    return in_long & (lines >= 0), lines


def _long(lasting: Array) -> Mask:
    """Return which steps may contain other work."""
    is_long = (lasting > LONG * np.median(lasting)) & ~warmup_steps(lasting)
    return np.asarray(is_long & (is_long.mean() <= MOST_LONG), dtype=bool)


def _inclusive(tree: StackTree, places: Array, times: Array) -> Array:
    """Return the time of each frame including its callees."""
    own = np.zeros(tree.parent.size, np.int64)
    np.add.at(own, places, times)
    return tree.totals(own)
