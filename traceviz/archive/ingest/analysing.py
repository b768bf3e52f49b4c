"""The report of a trace, computed within one query of polars where the trace is small.

Polars hands filters, groups and joins to threads of its pool and waits, unless they are asked within another query:
those are computed where they are asked. A small trace takes more than a thousand of them, and most are done sooner than
a thread on another core wakes: a worker that is not kept on one core takes a quarter less processor time this way.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import polars as pl

from traceviz.analyses.run import LARGE_ROWS, analyze
from traceviz.report import Report
from traceviz.trace.tables import TraceTables

Result = TypeVar("Result")


def report_on(tables: TraceTables) -> Report:
    """The report of a trace.

    Raises:
        DamagedTraceError, OutOfMemoryError: as :func:`traceviz.analyses.run.analyze`.
    """
    return within_query(lambda: analyze(tables)) if _is_small(tables) else analyze(tables)


def _is_small(tables: TraceTables) -> bool:
    """Whether its analyses run one after the other, on tables in memory."""
    if any(isinstance(source, Path) for source in tables.sources.values()):
        return False
    return sum(tables.rows(name) for name in tables) < LARGE_ROWS


def within_query(function: Callable[[], Result]) -> Result:
    """What ``function`` returns or raises, called within a query of polars; it must not wait for another thread."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def call(frame: pl.DataFrame) -> pl.DataFrame:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 (polars would make another error of it; it is raised below)
            errors.append(error)
        return frame

    pl.LazyFrame({"row": [0]}).map_batches(call).collect()
    if errors:
        raise errors[0]
    return results[0]
