"""Start and end of marked steps: each owns the time from its start to the start of the next step.

Loops often mark only the computation, and load the batch, save or log between two marks. That time is part of the
loop, so it belongs to the step before it::

    marked        | step 0 |load| step 1 |load| step 2 |
    counted       |   step 0    |   step 1    | step 2 |   the time after the last step is unknown

Time between two marks may belong to a range of another name (an evaluation, a checkpoint). It is then not part of the
loop, and the step before it ends where that range starts. If marks lie in several parent ranges (epochs), the time
between the last step of one and the first of the next belongs to no step either.

Steps that were inferred from repetition may cover a small part of the capture, which does not represent the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.frames import intervals, unions_by
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array, IntervalSet

OTHER_WORK = (
    r"(?:^|[^A-Za-z])(?i:eval|evaluat(?:e|ion|ing)|val|valid|validat(?:e|ion|ing)|test|testing|ckpt|checkpoint(?:ing)?"
    r"|save|saving)(?:$|[^a-z])|(?:Eval|Valid|Test|Ckpt|Checkpoint|Save|Saving)[a-z]*"
)
"""Names of ranges between steps that do not belong to the loop."""

OTHERS_SHARE = 0.5
"""Minimum share of the time between two marks that such a range must cover to exclude it."""
GAPS_MATTER = 0.1
"""From this share of step time on, the time after marks matters: steps that lack it are not representative."""
STEPS_IN_PARENT = 2
"""If parents contain fewer steps than this on average, each step has its own parent, and parents are not epochs."""


def start_to_start(markers: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Set ``end_ns`` of markers to the end of their steps, and ``cut`` if the time after the step is unknown.

    A step is cut if no other follows in the same parent, and steps include significant time after their marks. A
    marker inside another one is not a step.

    Args:
        markers: ``start_ns, end_ns`` of one process, sorted by start, and ``parent_id`` if ranges have one.
        others: ``start_ns, end_ns`` of ranges whose names match :data:`OTHER_WORK`.
    """
    reach = pl.col("end_ns").cum_max().shift(1)
    outer = markers.filter(reach.is_null() | (pl.col("end_ns") > reach))
    starts, ends = outer["start_ns"].to_numpy(), outer["end_ns"].to_numpy()
    following = np.append(starts[1:], np.iinfo(np.int64).max)
    followed = np.append(_has_same_parent(outer), [False])[: starts.size]
    until = np.where(followed, following, np.minimum(ends, following))
    until = np.where(followed, end_before_others(ends, until, others), until)
    after = np.maximum(until - ends, 0)[followed].sum()
    matters = after > GAPS_MATTER * (until - starts)[followed].sum()
    timed = outer.with_columns(pl.Series("end_ns", until), pl.Series("cut", ~followed & matters))
    return timed.filter(pl.col("end_ns") > pl.col("start_ns"))


def cut_beside_whole() -> pl.Expr:
    """Return column ``cut``, ``False`` if a process has only cut steady steps, since these are better than none."""
    whole = (~pl.col("warmup") & ~pl.col("cut")).any().over("process_id")
    return pl.col("cut") & whole


def _has_same_parent(markers: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Return whether each marker but the last lies in the same parent as the next."""
    everywhere = np.ones(max(markers.height - 1, 0), dtype=bool)
    if "parent_id" not in markers.columns:
        return everywhere
    parents = markers["parent_id"].fill_null(-1)
    if markers.height < STEPS_IN_PARENT * parents.n_unique():
        return everywhere
    return np.asarray((parents[1:] == parents[:-1]).to_numpy())


def end_before_others(ends: Array, until: Array, others: pl.DataFrame) -> Array:
    """Return ``until``, or the start of the first of ``others`` after a mark, if they fill enough of that time."""
    claimed = intervals(others)
    if not len(claimed):
        return until
    after = np.maximum(until, ends)
    theirs = claimed.overlap(ends, after)
    first = np.minimum(np.searchsorted(claimed.ends, ends, "right"), len(claimed) - 1)
    begins = np.maximum(claimed.starts[first], ends)
    return np.where((theirs > 0) & (theirs >= OTHERS_SHARE * (after - ends)), begins, until)


WHOLE_PASS = 0.85
"""Minimum share of the events' time in inferred steps, with one more for the last, whose end is unknown.

Repeats that leave more outside are parts of a pass: layers, between the first and the last part of a model.
"""
ENOUGH = 0.5
"""Inferred steps that cover less than this share of the time of device work are listed but not judged."""
ENOUGH_OF_CAPTURE = 0.1
"""So are inferred steps that cover less than this share of the captured time: most of it is something else."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares (0 to 1) that steps cover, over all ranks.

    Args:
        work: Share of the time in which devices work; ``None`` if no device work was recorded.
        time: Share of the time from each rank's first to its last device work; without device work, of the capture.
        captured: Share of the captured time.
        steps: Number of steps of a rank.
    """

    work: float | None
    time: float
    captured: float = 1.0
    steps: int = 1

    @property
    def is_enough(self) -> bool:
        """True if the capture can be judged by these steps."""
        with_last = 1.0 if self.work is None else self.work * (1 + 1 / self.steps)
        return with_last >= WHOLE_PASS and self.time >= ENOUGH and self.captured >= ENOUGH_OF_CAPTURE


def coverage(trace: TraceView, steps: pl.DataFrame, others: pl.DataFrame) -> Coverage:
    """Return the shares that ``steps`` (``process_id, start_ns, end_ns``) cover.

    Ranges of other work between them are known: ``others`` (the same columns) do not make steps parts of a pass.
    """
    inside = unions_by(steps, "process_id")
    theirs = unions_by(others, "process_id")
    known = {
        rank: own.union(theirs[rank].clip(int(own.starts[0]), int(own.ends[-1]))) if rank in theirs else own
        for rank, own in inside.items()
    }
    extents = {rank: IntervalSet.span(*extent) for rank, extent in trace.rank_extents.items()}
    work, time = (
        ratio(
            sum(all_of[rank].intersect(own).total for rank, own in known.items() if rank in all_of),
            sum(own.total for own in all_of.values()),
        )
        for all_of in (trace.rank_busy, extents)
    )
    captured = ratio(sum(own.total for own in inside.values()), len(inside) * trace.captured_ns)
    return Coverage(work, time or 0.0, captured or 0.0, max(1, steps.height // max(1, len(inside))))
