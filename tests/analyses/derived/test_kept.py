"""Results that are computed once, whichever thread asks first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from traceviz.analyses.derived.kept import Kept, kept_property

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
