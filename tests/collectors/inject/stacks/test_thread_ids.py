"""Thread ids of the system, and processor times by them: of threads that are there, and of those that have ended."""

from __future__ import annotations

import threading
import time
from _thread import get_ident, get_native_id, start_new_thread
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def ids(hook: Any) -> Any:
    return hook("stacks.threads")


@pytest.fixture
def foreign() -> Iterator[tuple[int, int]]:
    """The numbers of a thread that ``threading`` does not know, as compiled code starts them."""
    numbers: list[tuple[int, int]] = []
    ends = threading.Event()

    def run() -> None:
        numbers.append((get_ident(), get_native_id()))
        ends.wait()

    start_new_thread(run, ())
    while not numbers:
        time.sleep(0.001)
    yield numbers[0]
    ends.set()


def _ended() -> tuple[int, int]:
    """Return the numbers of a thread that has ended."""
    numbers: list[tuple[int, int]] = []
    thread = threading.Thread(target=lambda: numbers.append((get_ident(), get_native_id())))
    thread.start()
    thread.join()
    while Path(f"/proc/self/task/{numbers[0][1]}").exists():
        time.sleep(0.001)
    return numbers[0]


def test_the_time_of_a_thread_is_the_first_number_of_its_schedstat(ids: Any) -> None:
    native = get_native_id()
    sum(range(300_000))
    before = ids.cpu_ns(native)
    counted = int(Path(f"/proc/self/task/{native}/schedstat").read_text().split()[0])
    assert 0 < before <= ids.cpu_ns(native)
    assert abs(counted - before) < 50_000_000
    assert ids.cpu_ns(native) <= time.thread_time_ns()


def test_a_thread_that_has_ended_has_no_time_and_that_is_no_error(ids: Any) -> None:
    assert [ids.cpu_ns(_ended()[1]) for _ in range(20)] == [None] * 20
    assert ids.cpu_ns(None) is None


def test_python_knows_its_own_threads(ids: Any) -> None:
    assert ids.ThreadIds().stated([get_ident(), 5]) == {get_ident(): get_native_id(), 5: None}


def test_a_thread_of_compiled_code_is_found_by_its_address(ids: Any, foreign: tuple[int, int]) -> None:
    finder, found = ids.ThreadIds(), []
    thread = threading.Thread(target=lambda: found.append(finder.found(foreign[0])))  # as the sampler's own
    thread.start()
    thread.join()
    assert (finder.stated([foreign[0]]), found) == ({foreign[0]: None, get_ident(): get_native_id()}, [foreign[1]])


def test_an_address_of_an_ended_thread_or_of_none_is_nothing(ids: Any) -> None:
    finder, found = ids.ThreadIds(), []
    thread = threading.Thread(target=lambda: found.extend(map(finder.found, [_ended()[0], 0, 8, 1 << 62, -5])))
    thread.start()
    thread.join()
    assert found == [None] * 5
