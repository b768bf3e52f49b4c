"""Report of a trace, computed within one query of polars if the trace is small.

Polars hands filters, groups and joins to its thread pool and waits, unless it is already inside a query. Then it
computes them in the same thread. A small trace takes more than a thousand of them, and most finish sooner than a thread
on another core wakes up. This saves a quarter of the processor time in a worker that is not pinned to one core.
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
    """Return the report of a trace.

    Raises:
        DamagedTraceError, OutOfMemoryError: see :func:`traceviz.analyses.run.analyze`.
    """
    return within_query(lambda: analyze(tables)) if _is_small(tables) else analyze(tables)


def _is_small(tables: TraceTables) -> bool:
    """Return whether the trace is small enough to be analysed in one query: all tables are in memory, with few rows."""
    if any(isinstance(source, Path) for source in tables.sources.values()):
        return False
    return sum(tables.rows(name) for name in tables) < LARGE_ROWS


def within_query(function: Callable[[], Result]) -> Result:
    """Call ``function`` within a query of polars, and return or raise its result. It must not wait for threads."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def call(frame: pl.DataFrame) -> pl.DataFrame:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 (polars would wrap it; it is raised below)
            errors.append(error)
        return frame

    pl.LazyFrame({"row": [0]}).map_batches(call).collect()
    if errors:
        raise errors[0]
    return results[0]
