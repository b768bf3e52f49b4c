"""Processes that launched the work of queues, if ids repeat between processes."""

from __future__ import annotations

import numpy as np

from traceviz.parsers.shared.launchers import Numbered, is_ambiguous, launchers, waits


def numbered(*rows: tuple[int, int, int]) -> Numbered:
    """Return rows of group, id and start."""
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return Numbered(*columns)


TWO = numbered((0, 1, 100), (0, 2, 200), (1, 1, 150), (1, 2, 250))
"""Calls of two processes, the second one 50 ns later."""
NOTHING = np.full(2, -1)


def test_ids_are_ambiguous_if_calls_of_two_processes_share_one() -> None:
    assert is_ambiguous(TWO)
    assert not is_ambiguous(numbered((0, 1, 100), (0, 1, 120), (1, 2, 150)))
    assert not is_ambiguous(numbered())


def test_wait_counts_from_the_last_call_before_the_work() -> None:
    calls = numbered((0, 1, 100), (0, 1, 300), (0, 2, 200), (0, 4, 50))
    work = numbered((0, 1, 299), (0, 1, 300), (0, 1, 99), (0, 2, 900), (0, 3, 900), (0, 4, 50))
    assert waits(calls, work).tolist() == [199, 0, -1, 700, -1, 0]


def test_a_queue_is_of_the_process_whose_calls_all_come_before_its_work() -> None:
    work = numbered((0, 1, 160), (0, 2, 249), (1, 1, 149), (1, 2, 900))
    assert launchers(TWO, work, 2, NOTHING).tolist() == [0, 0]


def test_of_equally_possible_processes_the_first_queue_is_of_the_first_caller() -> None:
    work = numbered((0, 1, 5_060), (0, 2, 5_100), (1, 1, 5_000), (1, 2, 5_050))
    assert launchers(TWO, work, 2, NOTHING).tolist() == [1, 0]


def test_what_is_assumed_holds_if_it_is_possible() -> None:
    work = numbered((0, 1, 5_060), (0, 2, 5_100), (1, 1, 5_000), (1, 2, 5_050))
    assert launchers(TWO, work, 2, np.array([0, 0])).tolist() == [0, 0]
    early = numbered((0, 1, 120), (0, 2, 220), (1, 1, 160), (1, 2, 260))
    assert launchers(TWO, early, 2, np.array([1, 0])).tolist() == [0, 0]


def test_a_little_work_that_seems_to_start_before_its_call_decides_nothing() -> None:
    """One of a thousand pieces starts 1 ns before its own call, since clocks differ."""
    calls = numbered(
        *((process, place, 1_000 * place + 400 * process) for process in (0, 1) for place in range(1, 1_001))
    )
    own = [(queue, place, 1_000 * place + 400 * queue + 100) for queue in (0, 1) for place in range(1, 1_001)]
    own[0] = (0, 1, 999)
    assert launchers(calls, numbered(*own), 2, NOTHING).tolist() == [0, 1]


def test_work_of_a_long_queue_is_sampled() -> None:
    places = range(1, 20_001)
    calls = numbered(*((process, place, 10 * place + 3 * process) for process in (0, 1) for place in places))
    work = numbered(*((queue, place, 10 * place + 3 * queue + 1) for queue in (0, 1) for place in places))
    assert launchers(calls, work, 2, NOTHING).tolist() == [0, 1]


def test_a_queue_without_any_known_call_goes_to_a_process_without_one() -> None:
    work = numbered((0, 1, 120), (0, 2, 220), (1, 77, 130))
    assert launchers(TWO, work, 2, NOTHING).tolist() == [0, 1]
