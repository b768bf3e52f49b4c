"""What is asked of a whole archive, in one piece that can be sent to where the archive lies."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest.jobs import report_on_job
from traceviz.archive.population.observations import DATE
from traceviz.archive.population.population import population
from traceviz.archive.query.where import where
from traceviz.archive.runners.local import Runner, SerialRunner
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.archive.trends.saved_figures import with_figure
from traceviz.archive.trends.trend import Trend, TrendOptions, trend
from traceviz.parsers.base import Progress, silent
from traceviz.report import Report


@dataclass(frozen=True, slots=True)
class AskedReport:
    """A report on all traces, or on one job.

    Args:
        store: The archive.
        condition: Condition of SQL on the rows of its catalogue; empty for all.
        job: Job to report on; empty for all traces.
        top: Traces listed as the worst.
    """

    store: Store
    condition: str = ""
    job: str = ""
    top: int = 10


@dataclass(frozen=True, slots=True)
class AskedTrend:
    """How a figure went; see :func:`traceviz.archive.trends.trend.trend` and, for the others, :class:`AskedReport`."""

    store: Store
    metric: str
    condition: str = ""
    by: str = DATE
    per: str = ""
    options: TrendOptions = field(default_factory=TrendOptions)


def report_for(asked: AskedReport, progress: Progress = silent) -> Report:
    """The report that is asked for.

    Raises:
        UsageError: there is no archive, no such job, or the condition is none.
        OutputError: the archive cannot be reached.
        DamagedTraceError: a trace of the job, or the catalogue, is damaged.
    """
    rows = _rows(asked.store, asked.condition)
    if asked.job:
        return report_on_job(asked.store, rows, asked.job, progress)
    return population(rows, asked.top)


def trend_for(asked: AskedTrend, progress: Progress = silent, runner: Runner | None = None) -> Trend:
    """The trend that is asked for.

    Args:
        asked: What is asked.
        progress: Receives progress.
        runner: Where saved reports are read, of figures that the catalogue does not hold; by default here.

    Raises:
        UsageError: there is no archive, no such figure or tag, or the condition is none.
        OutputError: the archive cannot be reached.
        DamagedTraceError: the catalogue is damaged.
    """
    rows = _rows(asked.store, asked.condition)
    known, rows = with_figure(asked.store, rows, asked.metric, progress, runner or SerialRunner())
    return trend(rows, known, asked.by, asked.per, asked.options)


def _rows(store: Store, condition: str) -> pl.DataFrame:
    layout.check(store)
    rows = catalogue.read(store)
    return where(rows, condition) if condition else rows
