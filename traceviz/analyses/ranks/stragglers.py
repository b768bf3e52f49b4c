"""Ranks that are slower than the others: comparison of step times, and outliers by a robust score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import polars as pl

from traceviz.analyses.derived.device.names import rank_numbers
from traceviz.analyses.derived.frames import bounds
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.steps import INFERRED
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import IntervalSet

TOGETHER = 0.5
"""Without steps, ranks are compared if the time in which all are judged is this part of that of the longest."""
LEAST_RANKS = 3
"""Least number of ranks for outliers. Of two ranks, neither is the exception."""
_ROUNDS = {
    **dict.fromkeys(("process_id", "step", "occurrence", "start_ns", "end_ns"), pl.Int64),
    "is_common": pl.Boolean,
}


def modified_scores(values: Sequence[float], spread_floor: float) -> tuple[float, ...]:
    """Return the modified z-score of each value: ``0.6745 * (x - median) / MAD`` (Iglewicz and Hoaglin, 1993).

    Args:
        values: One value per rank.
        spread_floor: The median absolute deviation (MAD) counts as at least this share of the median, so that nearly
            equal ranks have no outliers.

    Returns:
        The scores; zeros if there are fewer than :data:`LEAST_RANKS` values, or if all are 0.
    """
    samples = np.asarray(values, dtype=np.float64)
    if samples.size < LEAST_RANKS:
        return (0.0,) * samples.size
    middle = float(np.median(samples))
    spread = max(float(np.median(np.abs(samples - middle))), spread_floor * abs(middle))
    return tuple((0.6745 * (samples - middle) / spread).tolist()) if spread > 0 else (0.0,) * samples.size


@dataclass(frozen=True, slots=True)
class Rounds:
    """Times in which ranks are compared.

    Args:
        frame: One row per rank and round: ``process_id``, ``step``, ``occurrence``, ``start_ns``, ``end_ns``, and
            ``is_common``, true if all ranks have the round.
        are_steps: True if rounds are steady steps. Else each rank has one: the time in which all of them are judged.
    """

    frame: pl.DataFrame
    are_steps: bool = True

    @property
    def common(self) -> pl.DataFrame:
        """Rounds that all ranks have, in equal order for each rank."""
        return self.frame.filter("is_common").sort("process_id", "step", "occurrence")


@dataclass(frozen=True, slots=True)
class StepImbalance:
    """Own times of the steady steps. The own time of a step excludes the time in which its rank waits for others.

    Args:
        steps: One row per step that all ranks have: ``step``, ``slowest`` (a ``process_id``), ``max_ns`` and
            ``mean_ns`` over the ranks.
        medians: Median own time of the steps of each rank, by ``process_id``.
        are_steps: False if each rank has one time instead, because its steps cannot be compared (:class:`Rounds`).
    """

    steps: pl.DataFrame
    medians: Mapping[int, float]
    are_steps: bool = True

    @property
    def middle_ns(self) -> float:
        """Median of the median rank."""
        return median(self.medians.values()) if self.medians else 0.0

    @property
    def share(self) -> float | None:
        """``(max - median) / median`` of the ranks' medians; ``None`` if fewer than two have steps."""
        if len(self.medians) < 2 or self.middle_ns <= 0:
            return None
        return (max(self.medians.values()) - self.middle_ns) / self.middle_ns

    @property
    def lost_ns(self) -> int:
        """Time that the steps would save if their work were evenly distributed: the sum of (slowest - mean)."""
        return round(float((self.steps["max_ns"] - self.steps["mean_ns"]).sum()))

    def is_mostly_slowest(self, process_id: int) -> bool:
        """Return whether the rank is the slowest in most of the common steps; true if there are none.

        A few outliers also make its mean the largest, but another rank has them next time.
        """
        return not self.steps.height or 2 * self.slowest(process_id) > self.steps.height

    def slowest(self, process_id: int) -> int:
        """Count steps in which the rank is the slowest."""
        return int((self.steps["slowest"] == process_id).sum())


@once_per_trace
def find_rounds(trace: TraceView) -> Rounds:
    """Return the steady steps of the ranks, or the time in which all are judged if steps cannot be compared.

    Inferred steps have no numbers of their own. They are compared if all ranks have the same number of steps.
    """
    steps = training_steps(trace)
    # A program may count from 0 again (epochs), so the first, second ... step of a number are distinguished. Warm-up is
    # left out afterwards, because it may differ from rank to rank.
    occurrence = pl.int_range(pl.len()).over("process_id", "step").alias("occurrence")
    steady = steps.frame.with_columns(occurrence).filter(~pl.col("warmup") & ~pl.col("cut"))
    ranks = steady["process_id"].n_unique()
    equal = steady.group_by("process_id").len()["len"].n_unique() == 1
    is_common = (pl.len().over("step", "occurrence") == ranks) & (ranks > 1)
    if equal or (ranks and steps.source not in INFERRED):
        return Rounds(steady.with_columns(is_common.alias("is_common")))
    judged = [(process, judged_time(trace, process)) for process in sorted(rank_numbers(trace))]
    extents = [(int(time.starts[0]), int(time.ends[-1])) for _, time in judged if len(time)]
    start, end = max((start for start, _ in extents), default=0), min((end for _, end in extents), default=0)
    if len(extents) < max(2, len(judged)) or end - start < TOGETHER * max(end - start for start, end in extents):
        return Rounds(steady.with_columns(pl.lit(value=False).alias("is_common")))
    rows = [(process, 0, 0, start, end, True) for process, _ in judged]
    return Rounds(pl.DataFrame(rows, schema=_ROUNDS, orient="row"), are_steps=False)


def step_imbalance(rounds: Rounds, away: Mapping[int, IntervalSet]) -> StepImbalance:
    """Compare the own times of the ranks' rounds.

    Args:
        rounds: The steps of all ranks.
        away: Time in which each rank waits for others, by ``process_id``.
    """
    parts = []
    for (process, *_), part in rounds.frame.partition_by("process_id", as_dict=True, maintain_order=True).items():
        starts, ends = bounds(part)
        waits = away.get(process, IntervalSet.empty()).overlap(starts, ends)
        parts.append(part.with_columns(pl.Series("dur_ns", ends - starts - waits)))
    without = pl.concat(parts) if parts else rounds.frame.with_columns(pl.lit(0, pl.Int64).alias("dur_ns"))
    times = without.select("process_id", "step", "dur_ns", "occurrence", "is_common")
    medians = times.group_by("process_id").agg(pl.col("dur_ns").median()).sort("process_id")
    rows = (
        times.filter("is_common")
        .group_by("step", "occurrence")
        .agg(
            pl.col("process_id").sort_by("dur_ns", "process_id", descending=[True, False]).first().alias("slowest"),
            pl.col("dur_ns").max().alias("max_ns"),
            pl.col("dur_ns").mean().alias("mean_ns"),
        )
    )
    slowest = rows.sort("occurrence", "step").drop("occurrence")
    return StepImbalance(slowest, dict(medians.iter_rows()), rounds.are_steps)
