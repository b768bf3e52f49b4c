"""Results that are computed once, whichever thread asks first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.memo import Kept, held, kept_property
from traceviz.core.arrays.intervals import IntervalSet

THREADS = 4


class Trace:
    def __init__(self) -> None:
        self.kept = Kept()
        self.computed = 0

    @kept_property
    def slow(self) -> int:
        """Says how often it was computed."""
        self.computed += 1
        Event().wait(0.05)
        return self.computed


def test_threads_that_ask_at_once_get_one_result() -> None:
    trace, together = Trace(), Barrier(THREADS)

    def ask() -> int:
        together.wait()
        return trace.slow

    with ThreadPoolExecutor(THREADS) as pool:
        answers = [future.result() for future in [pool.submit(ask) for _ in range(THREADS)]]
    assert (answers, trace.computed) == ([1] * THREADS, 1)
    assert Trace.slow.__doc__ == "Says how often it was computed."


def test_a_result_that_failed_is_computed_anew_and_each_who_waited_hears_of_it() -> None:
    kept, answers = Kept(), iter([ValueError("first"), 7])

    def next_answer() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ValueError, match="first"):
        kept.get("answer", next_answer)
    assert [kept.get("answer", next_answer), kept.get("answer", next_answer)] == [7, 7]


def test_a_result_that_asks_for_itself_is_an_error_and_no_deadlock() -> None:
    kept = Kept()
    with pytest.raises(RecursionError, match="asks for itself"):
        kept.get("loop", lambda: kept.get("loop", lambda: 1))


def test_what_a_result_holds_counts_once_and_the_trace_that_it_is_of_does_not():
    column = np.zeros(100, np.int64)
    frame = pl.DataFrame({"a": [1, 2, 3]})
    busy = {0: IntervalSet(column, column), "again": [column], "frame": (frame, None, "text", 7)}
    assert (held(busy), held(busy, column)) == (824, 24)
    view = trace(kernels=[(0, 10, "k")])
    result = {"trace": view, "work": view.device_work}
    assert (held(result, view), held(result) > 8 + 8 + 2 + 4) == (8 + 8 + 2 + 4, True)


def test_large_results_are_forgotten_and_computed_again_when_somebody_asks():
    view = trace(kernels=[(0, 10, "k"), (30, 10, "k")])
    work, busy, ranks = view.device_work, view.device_busy, view.ranks
    view.evict(40)
    assert view.device_work is not work
    assert view.device_work.equals(work)
    assert view.device_busy is busy  # 32 bytes
    assert view.ranks is ranks
    view.evict(1)
    assert view.device_busy is not busy
    assert view.device_busy == busy


def test_results_that_are_needed_or_being_computed_stay() -> None:
    view = trace(kernels=[(0, 10, "k"), (30, 10, "k")])
    work, times = view.device_work, view.kernel_times
    view.evict(1, {"device_work"})
    assert (view.device_work is work, view.kernel_times is times) == (True, False)
    kept = Kept()
    assert kept.get("outer", lambda: len(kept.evict(0, None))) == 0
