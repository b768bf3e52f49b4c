"""The report of a trace within a query of polars: the same report, the same errors."""

from __future__ import annotations

import threading
from pathlib import Path

import polars as pl
import pytest

from traceviz.analyses.run import analyze
from traceviz.archive.ingest.ingest import report_on, within_query
from traceviz.core.errors import DamagedTraceError
from traceviz.core.process.interrupts import Stopped
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.registry import identify
from traceviz.trace.tables import TraceTables

SAMPLE = Path(__file__).parents[3] / "sample_traces" / "synthetic" / "input_bound.sqlite"


def test_a_function_is_called_once_and_may_ask_polars_for_a_sum_of_6() -> None:
    calls: list[int] = []

    def add_up() -> int:
        calls.append(threading.get_ident())
        return int(pl.DataFrame({"x": [1, 2, 3]}).select(pl.col("x").sum()).item())

    assert within_query(add_up) == 6
    assert calls == [threading.get_ident()]  # signals are raised in the main thread only


@pytest.mark.parametrize("error", [DamagedTraceError("What happened 7 times."), KeyError(7), Stopped(15)])
def test_an_error_is_raised_as_the_1_that_it_was(error: BaseException) -> None:
    def fail() -> int:
        raise error

    with pytest.raises(type(error)) as raised:
        within_query(fail)
    assert raised.value is error


def test_the_report_of_a_small_trace_is_that_of_1_thread() -> None:
    tables = TraceTables(dict(identify(SAMPLE).tables(SAMPLE, ReadRequest())))
    report = report_on(tables)
    assert report == analyze(tables)
    assert report.verdict is not None
