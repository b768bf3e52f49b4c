"""Requests to a whole archive, each one a value that can be sent to a worker near the archive."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.population.jobs import report_on_job
from traceviz.archive.population.observations import DATE
from traceviz.archive.query.on_all import report_on_all
from traceviz.archive.query.where import where
from traceviz.archive.runners.base import Runner
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.archive.trends.saved_figures import with_figure
from traceviz.archive.trends.trend import Trend, TrendOptions, trend
from traceviz.parsers.base import Progress, silent
from traceviz.report import Report


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A request for the report on all traces, or on one job.

    Args:
        store: The archive.
        condition: SQL condition on the rows of its catalogue; empty for all.
        job: Job to report on; empty for all traces.
        top: Number of worst traces listed.
        per: Tag or column that defines the groups for comparing CUDA functions; empty for the framework.
    """

    store: Store
    condition: str = ""
    job: str = ""
    top: int = 10
    per: str = ""


@dataclass(frozen=True, slots=True)
class TrendRequest:
    """A request for the trend of a figure.

    The fields are those of :func:`traceviz.archive.trends.trend.trend` and of :class:`ReportRequest`.
    """

    store: Store
    metric: str
    condition: str = ""
    by: str = DATE
    per: str = ""
    options: TrendOptions = field(default_factory=TrendOptions)


def report_for(request: ReportRequest, progress: Progress = silent) -> Report:
    """Return the requested report.

    Raises:
        UsageError: there is no archive, no such job, or the condition is not valid.
        OutputError: the archive cannot be reached.
        DamagedTraceError: a trace of the job, or the catalogue, is damaged.
    """
    rows = _rows(request.store, request.condition)
    if request.job:
        return report_on_job(request.store, rows, request.job, progress)
    return report_on_all(request.store, rows, request.top, request.per)


def trend_for(request: TrendRequest, progress: Progress = silent, runner: Runner | None = None) -> Trend:
    """Return the requested trend.

    Args:
        request: The request.
        progress: Receives progress.
        runner: Runner that reads saved reports, for figures that are not in the catalogue; by default this process.

    Raises:
        UsageError: there is no archive, no such figure or tag, or the condition is not valid.
        OutputError: the archive cannot be reached.
        DamagedTraceError: the catalogue is damaged.
    """
    rows = _rows(request.store, request.condition)
    figure, rows = with_figure(request.store, rows, request.metric, progress, runner or SerialRunner())
    return trend(rows, figure, request.by, request.per, request.options)


def _rows(store: Store, condition: str) -> pl.DataFrame:
    layout.check(store)
    return where(catalogue.read(store), condition or None)
