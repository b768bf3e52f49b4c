"""Outliers among similar traces: modified z-scores, from medians and median absolute deviations."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from traceviz.archive.population.observations import FIGURES, tags_of

LEAST = 8
"""Minimum number of similar traces for detecting an outlier."""
SCORE = 3.5
"""Modified z-score above which a value is an outlier (Iglewicz and Hoaglin 1993, How to Detect and Handle Outliers)."""
_SPREAD = 0.01
"""Lower bound of the median absolute deviation, as a share of the median; for shares, as a value. Otherwise all or
none of the traces that are almost equal or mostly zero would be outliers.
"""
_OF_MEAN = 1.2533 * 0.6745
"""Factor of the mean absolute deviation. It is used if median and median deviation are zero (mostly zeros)."""
_NOT_COMPARED = frozenset(
    {
        *("steps", "devices", "span_ns", "exposed_api_ns", "findings_warning", "findings_error"),
        *("device_idle", "input_wait", "step_mean", "training_time", "latency_p95", "energy", "energy_per_step"),
    }
)
"""Excluded figures: the recording's length, figures that grow with it, and figures that repeat others."""
_COMPARED = tuple(figure for figure in FIGURES if figure.name not in _NOT_COMPARED)
_SHARES = [figure.name for figure in _COMPARED if figure.unit == "ratio"]
_LIKE = ("job and tags", "framework, GPU", "all traces")


def outliers(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the outliers: those among the most similar traces first, then by distance.

    Each figure is compared with traces of the same job and tags. If these are fewer than :data:`LEAST`, shares are
    compared with traces of the same framework and GPU, or else with all. Times, bytes and counts are not comparable
    between programs.

    Args:
        rows: Rows of the catalogue of ready traces.

    Returns:
        Columns ``trace_id``, ``rank``, ``source``, ``figure``, ``value``, ``median``, ``score`` (0.6745 times the
        distance from the median, in median absolute deviations), ``among`` (the comparison group), ``like`` (its size).
    """
    values = _values(rows)
    levels = range(len(_LIKE))
    values = values.with_columns(pl.len().over("figure", f"like{at}").alias(f"count{at}") for at in levels)
    level = pl.coalesce(*(pl.when(_has_enough(at)).then(pl.lit(at)) for at in levels))
    placed = values.with_columns(level.alias("level")).drop_nulls("level")
    scores = pl.concat([_score_among(values, placed, at) for at in levels]).filter(pl.col("score").abs() > SCORE)
    near = pl.col("among").replace_strict({name: at for at, name in enumerate(_LIKE)})
    order = ("figure", "trace_id", "rank")
    down = [False, True, *(False for _ in order)]
    return scores.sort(near, pl.col("score").abs(), *order, descending=down, nulls_last=True)


def _has_enough(level: int) -> pl.Expr:
    """Return whether a value has enough similar traces at a level."""
    enough = (pl.col(f"count{level}") >= LEAST) & pl.col(f"like{level}").is_not_null()
    return enough if level == 0 else enough & pl.col("figure").is_in(_SHARES)


def _score_among(values: pl.DataFrame, placed: pl.DataFrame, level: int) -> pl.DataFrame:
    """Return scores of the values that are compared at a level, against all values there."""
    column, keys = f"like{level}", ["figure", f"like{level}"]
    middle = pl.col("value").median().alias("median")
    centres = values.drop_nulls(column).group_by(keys).agg(middle, pl.len().cast(pl.Int64).alias("members"))
    away = values.join(centres, on=keys).with_columns((pl.col("value") - pl.col("median")).abs().alias("away"))
    spreads = away.group_by(keys).agg(
        pl.col("away").median().alias("spread"), (pl.col("away").mean() * _OF_MEAN).alias("mean_spread")
    )
    floor = pl.when(pl.col("figure").is_in(_SHARES)).then(_SPREAD).otherwise(pl.col("median").abs() * _SPREAD)
    least = pl.max_horizontal("spread", floor)
    spread = pl.when(least > 0).then(least).otherwise("mean_spread")
    score = pl.when(spread > 0).then(0.6745 * (pl.col("value") - pl.col("median")) / spread).otherwise(0.0)
    compared = placed.filter(pl.col("level") == level).join(centres, on=keys).join(spreads, on=keys)
    return compared.select(
        *("trace_id", "rank", "source", "figure", "value", "median"),
        score.alias("score"),
        pl.lit(_LIKE[level]).alias("among"),
        pl.col("members").alias("like"),
    )


def _values(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for every measured figure, with its groups of similar traces, from the nearest to all."""
    names = [figure.name for figure in _COMPARED]
    wide = rows.select(
        *("trace_id", "rank", "source"),
        pl.Series("like0", same_program(rows), dtype=pl.String),
        pl.concat_str(pl.col("framework").fill_null(""), "gpu", separator="\0", ignore_nulls=False).alias("like1"),
        pl.lit("").alias("like2"),
        *(pl.col(name).cast(pl.Float64) for name in names),
    )
    index = ["trace_id", "rank", "source", "like0", "like1", "like2"]
    long = wide.unpivot(names, index=index, variable_name="figure", value_name="value")
    return long.filter(pl.col("value").is_finite())


def same_program(rows: pl.DataFrame) -> Sequence[str | None]:
    """Return a text for each row that is equal for traces of the same job and tags; ``None`` if neither is known."""
    return [
        "\0".join((job or "", *(f"{name}={value}" for name, value in sorted(tags)))) if job or tags else None
        for job, tags in zip(rows["job"].to_list(), tags_of(rows), strict=True)
    ]
