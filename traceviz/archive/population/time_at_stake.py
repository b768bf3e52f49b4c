"""Cost of findings over many traces, as upper bounds in recorded time."""

from __future__ import annotations

import polars as pl

from traceviz.archive.population.observations import with_runs
from traceviz.report.findings.registry import records

_LARGEST = ("gpu_stake_ns", "stake_ns")
"""Columns that order findings. Without a device, only the second decides."""


def with_times(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``span_ns`` (0 if unknown), ``gpu_ns`` (``span_ns`` times the number of devices), and ``run``.

    A row is a rank with its own devices, so each rank of a job counts once.
    """
    span, devices = pl.col("span_ns").fill_null(0), pl.col("devices").fill_null(0)
    return with_runs(rows.with_columns(span.alias("span_ns"), (span * devices).alias("gpu_ns")))


def at_stake(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the findings of all rows by code, the most expensive first.

    The stake of a finding in a row is at most its share of the recorded time, or that time if it has no share. The
    bound is needed for processes with several devices: reports may sum the losses of all devices, but the share is per
    device. If the ranks of a run communicate, they wait for the rank with the largest stake. Its stake then counts for
    every rank, except for findings on the waiting itself. Stakes of different findings may overlap, so they are never
    summed.

    Args:
        rows: The result of :func:`with_times`.

    Returns:
        Columns ``code``, ``name``, ``traces``, ``ranks``, ``errors`` (rows in which the finding is an error),
        ``stake_ns``, ``gpu_stake_ns`` (of all devices that were in use), ``worst`` (id of the trace with the largest
        stake).
    """
    findings = (
        rows.select("run", "trace_id", "rank", "span_ns", "devices", "findings")
        .explode("findings", empty_as_null=True, keep_nulls=False)
        .drop_nulls("findings")
        .unnest("findings")
    )
    share = pl.col("share").fill_null(1.0).sum().clip(0.0, 1.0)
    of_row = (
        findings.group_by("run", "trace_id", "rank", "code", "name", "span_ns", "devices")
        .agg(share, pl.col("stake_ns").fill_null(0).sum(), (pl.col("severity") == "error").any().alias("error"))
        .with_columns(pl.min_horizontal("stake_ns", _part("share", "span_ns")).alias("stake_ns"))
        .with_columns((pl.col("stake_ns") * pl.col("devices").fill_null(0)).alias("gpu_stake_ns"))
    )
    summed = (
        _of_runs(of_row, rows)
        .group_by("code", "name")
        .agg(
            *(pl.col(name).sum() for name in ("traces", "ranks", "errors", *reversed(_LARGEST))),
            pl.col("worst").sort_by(*_LARGEST, "worst", descending=[True, True, False]).first(),
        )
    )
    return summed.sort(*_LARGEST, "code", descending=[True, True, False])


def _part(share: str, time: str) -> pl.Expr:
    """Return a share of a time."""
    return (pl.col(share) * pl.col(time)).round().cast(pl.Int64)


def _of_runs(of_row: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the stake of a finding in each run, from the stakes in its ranks."""
    devices = pl.col("devices").fill_null(0)
    runs = rows.group_by("run").agg(
        (pl.col("communication") > 0).any().alias("waits"),
        pl.len().cast(pl.Int64).alias("run_ranks"),
        devices.sum().alias("run_devices"),
        pl.col("span_ns").sum().alias("run_ns"),
        pl.col("gpu_ns").sum().alias("run_gpu_ns"),
    )
    stakes = of_row.group_by("run", "code", "name").agg(
        pl.col("trace_id").n_unique().cast(pl.Int64).alias("traces"),
        pl.len().cast(pl.Int64).alias("ranks"),
        pl.col("error").sum().cast(pl.Int64).alias("errors"),
        pl.col("trace_id").sort_by("stake_ns", "trace_id", descending=[True, False]).first().alias("worst"),
        *(pl.col(name).sum() for name in _LARGEST),
        pl.col("stake_ns").max().alias("longest"),
        pl.col("share").max(),
    )
    of_ranks = [record.code for record in records() if record.is_of_ranks]
    others_wait = pl.col("waits") & ~pl.col("code").is_in(of_ranks)
    of_all = (("stake_ns", "run_ranks", "run_ns"), ("gpu_stake_ns", "run_devices", "run_gpu_ns"))
    return stakes.join(runs, on="run").with_columns(
        pl.when(others_wait)
        .then(pl.min_horizontal(pl.col("longest") * pl.col(count), _part("share", time)))
        .otherwise(pl.col(name))
        .alias(name)
        for name, count, time in of_all
    )
