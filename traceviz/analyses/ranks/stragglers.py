"""Ranks that are slower than the others: step times side by side, and outliers by a robust score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.derived.steps.steps import INFERRED, Steps

LEAST_RANKS = 3
"""Of two ranks, neither is the exception."""


def modified_scores(values: Sequence[float], spread_floor: float) -> tuple[float, ...]:
    """Modified z-score of each value: ``0.6745 * (x - median) / MAD`` (Iglewicz and Hoaglin, 1993).

    Args:
        values: One value per rank.
        spread_floor: The median absolute deviation (MAD) counts as at least this share of the median, so that ranks
            which are all but equal have no outliers.

    Returns:
        The scores; zeros where there are fewer than :data:`LEAST_RANKS` values, or where all are 0.
    """
    samples = np.asarray(values, dtype=np.float64)
    if samples.size < LEAST_RANKS:
        return (0.0,) * samples.size
    median = float(np.median(samples))
    spread = max(float(np.median(np.abs(samples - median))), spread_floor * abs(median))
    return tuple((0.6745 * (samples - median) / spread).tolist()) if spread > 0 else (0.0,) * samples.size


@dataclass(frozen=True, slots=True)
class StepImbalance:
    """Steady steps that all ranks have, side by side.

    Args:
        steps: One row per step: ``step``, ``slowest`` (a ``process_id``), ``max_ns`` and ``mean_ns`` over the ranks.
        share: ``(max - median) / median`` of the ranks' median steps; ``None`` where fewer than two have steps.
    """

    steps: pl.DataFrame
    share: float | None

    @property
    def lost_ns(self) -> int:
        """Time that the steps would save if their work were spread evenly: the sum of (slowest - mean)."""
        return round(float((self.steps["max_ns"] - self.steps["mean_ns"]).sum()))

    def slowest(self, process_id: int) -> int:
        """Number of steps in which the rank is the slowest."""
        return int((self.steps["slowest"] == process_id).sum())


def step_imbalance(steps: Steps) -> StepImbalance:
    """Compare the steady steps of the ranks by their numbers.

    Steps that were inferred have no numbers of their own: they are compared where all ranks have as many.
    """
    columns = ("process_id", "step", (pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"))
    # A program may count from 0 again (epochs): the first, second ... step of a number are distinguished.
    # Warm-up is left out afterwards: it may differ from rank to rank.
    occurrence = pl.int_range(pl.len()).over("process_id", "step").alias("occurrence")
    times = steps.frame.with_columns(occurrence).filter(~pl.col("warmup")).select(*columns, "occurrence")
    ranks = times["process_id"].n_unique()
    medians = times.group_by("process_id").agg(pl.col("dur_ns").median())["dur_ns"]
    middle = float(medians.median() or 0)  # type: ignore[arg-type]
    share = (float(medians.max()) - middle) / middle if ranks > 1 and middle > 0 else None  # type: ignore[arg-type]
    comparable = steps.source not in INFERRED or times.group_by("process_id").len()["len"].n_unique() == 1
    common = times.filter(pl.len().over("step", "occurrence") == ranks) if ranks > 1 and comparable else times.clear()
    rows = common.group_by("step", "occurrence").agg(
        pl.col("process_id").sort_by("dur_ns", "process_id", descending=[True, False]).first().alias("slowest"),
        pl.col("dur_ns").max().alias("max_ns"),
        pl.col("dur_ns").mean().alias("mean_ns"),
    )
    return StepImbalance(rows.sort("occurrence", "step").drop("occurrence"), share)
