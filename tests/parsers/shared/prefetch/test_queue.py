"""Pieces of work are done once each, in their order, by threads or by whoever waits."""

import os
from contextlib import closing
from threading import Event, Timer, get_ident

import pytest

from traceviz.parsers.shared.prefetch.queue import Ahead


@pytest.fixture(params=[1, 3])
def cores(request, monkeypatch) -> int:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(request.param)))
    return request.param


def test_results_come_in_order(cores):
    done = []
    with closing(Ahead()) as ahead:
        first = ahead.give(lambda number: done.append(number) or number * number, 50)
        second = ahead.give(lambda number: -number, 3)
        assert list(ahead.results(second)) == [0, -1, -2]
        assert list(ahead.results(first)) == [number * number for number in range(50)]
    assert sorted(done) == list(range(50))


def test_one_core_does_the_work_when_somebody_waits(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    done = []
    with closing(Ahead()) as ahead:
        futures = ahead.give(lambda number: done.append(get_ident()), 2)
        assert done == []
        list(ahead.results(futures))
    assert done == [get_ident()] * 2


def test_an_error_is_that_of_its_piece(cores):
    def fail(number: int) -> int:
        if number == 2:
            raise ValueError("the third")
        return number

    with closing(Ahead()) as ahead:
        futures = ahead.give(fail, 5)
        results = ahead.results(futures)
        assert [next(results), next(results)] == [0, 1]
        with pytest.raises(ValueError, match="the third"):
            next(results)
        ahead.forget(futures)
        assert all(future.done() for future in futures)
        assert list(ahead.results(ahead.give(lambda number: number, 1))) == [0]


def test_nothing_is_begun_once_it_is_closed(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    done = []
    ahead = Ahead()
    ahead.give(done.append, 4)
    ahead.close()
    assert done == []


def test_a_request_to_end_reaches_whoever_helps_at_once(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    done = []

    def end(number: int) -> None:
        done.append(number)
        if number == 0:
            raise KeyboardInterrupt

    with closing(Ahead()) as ahead:
        ahead.give(end, 3)
        later = ahead.give(done.append, 3)
        with pytest.raises(KeyboardInterrupt):
            list(ahead.results(later))
        assert done == [0]


def test_what_a_request_to_end_interrupted_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    ahead = Ahead()
    futures = ahead.give(lambda number: number, 3)
    futures[0].set_running_or_notify_cancel()
    ahead.forget(futures)
    assert [future.cancelled() for future in futures] == [False, True, True]


def test_only_the_piece_that_a_thread_is_at_is_waited_for(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    begun, goes_on, done = Event(), Event(), []

    def work(number: int) -> None:
        begun.set()
        goes_on.wait()
        done.append(number)

    with closing(Ahead()) as ahead:
        futures = ahead.give(work, 50)
        begun.wait()
        Timer(0.05, goes_on.set).start()
        ahead.forget(futures)
        assert done == [0]
