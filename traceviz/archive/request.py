"""Requests to a whole archive, each in one piece that can be sent to where the archive lies."""

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
        condition: Condition of SQL on the rows of its catalogue; empty for all.
        job: Job to report on; empty for all traces.
        top: Traces listed as the worst.
        per: What tells groups apart whose shares of CUDA functions are compared; empty for the framework.
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
    """The report that a request is for.

    Raises:
        UsageError: there is no archive, no such job, or the condition is none.
        OutputError: the archive cannot be reached.
        DamagedTraceError: a trace of the job, or the catalogue, is damaged.
    """
    rows = _rows(request.store, request.condition)
    if request.job:
        return report_on_job(request.store, rows, request.job, progress)
    return report_on_all(request.store, rows, request.top, request.per)


def trend_for(request: TrendRequest, progress: Progress = silent, runner: Runner | None = None) -> Trend:
    """The trend that a request is for.

    Args:
        request: The figure, and the runs.
        progress: Receives progress.
        runner: Where saved reports are read, of figures that the catalogue does not hold; by default here.

    Raises:
        UsageError: there is no archive, no such figure or tag, or the condition is none.
        OutputError: the archive cannot be reached.
        DamagedTraceError: the catalogue is damaged.
    """
    rows = _rows(request.store, request.condition)
    figure, rows = with_figure(request.store, rows, request.metric, progress, runner or SerialRunner())
    return trend(rows, figure, request.by, request.per, request.options)


def _rows(store: Store, condition: str) -> pl.DataFrame:
    layout.check(store)
    return where(catalogue.read(store), condition or None)
