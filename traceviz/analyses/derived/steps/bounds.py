"""Where marked steps begin and end: each owns the time from its start to the start of the next.

Loops often mark only the computation, and load the batch, save or log between two marks. That time is the loop's, so
it belongs to the step before it::

    marked        | step 0 |load| step 1 |load| step 2 |
    counted       |   step 0    |   step 1    | step 2 |   nobody knows what comes after the last

Time between two marks that a range of another name claims (an evaluation, a checkpoint) is not the loop's: the step
before it ends where that range begins. Where marks lie in several parent ranges (epochs), what lies between the last
step of one and the first of the next is no step's either.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import intervals
from traceviz.core.arrays.intervals import Array

OTHER_WORK = (
    r"(?:^|[^A-Za-z])(?i:eval|evaluat(?:e|ion|ing)|val|valid|validat(?:e|ion|ing)|test|testing|ckpt|checkpoint(?:ing)?"
    r"|save|saving)(?:$|[^a-z])|(?:Eval|Valid|Test|Ckpt|Checkpoint|Save|Saving)[a-z]*"
)
"""Names of ranges between steps that are not the loop's."""

OTHERS_SHARE = 0.5
"""From this share of the time between two marks on, a range of such a name makes it its own."""
GAPS_MATTER = 0.1
"""From this share of step time on, a step that lacks the time after it is no measure of a step."""
STEPS_IN_PARENT = 2
"""Parents that hold fewer steps than this on average are one for each step, and no epochs."""


def start_to_start(markers: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """The markers with ``end_ns`` where their steps end, and ``cut``: whether the time after the step is unknown.

    A step is cut where no other follows in the same parent, if steps include a notable time after their marks. A
    marker inside another is no step of its own.

    Args:
        markers: ``start_ns, end_ns`` of one process, sorted by start, and ``parent_id`` where ranges have one.
        others: ``start_ns, end_ns`` of ranges whose names match :data:`OTHER_WORK`.
    """
    outer = _outer(markers)
    starts, ends = outer["start_ns"].to_numpy(), outer["end_ns"].to_numpy()
    following = np.append(starts[1:], np.iinfo(np.int64).max)
    followed = np.append(_same_parent(outer), [False])[: starts.size]
    until = np.where(followed, following, np.minimum(ends, following))
    until = np.where(followed, _before_others(ends, until, others), until)
    after = np.maximum(until - ends, 0)[followed].sum()
    matters = after > GAPS_MATTER * (until - starts)[followed].sum()
    timed = outer.with_columns(pl.Series("end_ns", until), pl.Series("cut", ~followed & matters))
    return timed.filter(pl.col("end_ns") > pl.col("start_ns"))


def cut_beside_whole() -> pl.Expr:
    """Column ``cut``, ``False`` where a process has no steady step but cut ones: those are better than none."""
    whole = (~pl.col("warmup") & ~pl.col("cut")).any().over("process_id")
    return pl.col("cut") & whole


def _outer(markers: pl.DataFrame) -> pl.DataFrame:
    reach = pl.col("end_ns").cum_max().shift(1)
    return markers.filter(reach.is_null() | (pl.col("end_ns") > reach))


def _same_parent(markers: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Whether each but the last lies in the same parent as the next."""
    everywhere = np.ones(max(markers.height - 1, 0), dtype=bool)
    if "parent_id" not in markers.columns:
        return everywhere
    parents = markers["parent_id"].fill_null(-1)
    if markers.height < STEPS_IN_PARENT * parents.n_unique():
        return everywhere
    return np.asarray((parents[1:] == parents[:-1]).to_numpy())


def _before_others(ends: Array, until: Array, others: pl.DataFrame) -> Array:
    """``until``, or where the first of ``others`` begins after a mark's end, if they fill enough of that time."""
    claimed = intervals(others)
    if not len(claimed):
        return until
    after = np.maximum(until, ends)
    theirs = claimed.overlap(ends, after)
    first = np.minimum(np.searchsorted(claimed.ends, ends, "right"), len(claimed) - 1)
    begins = np.maximum(claimed.starts[first], ends)
    return np.where((theirs > 0) & (theirs >= OTHERS_SHARE * (after - ends)), begins, until)
