"""Prefetched work is done once, in its order, by background threads or by the caller that waits."""

import threading
from contextlib import closing
from threading import Event, Timer, current_thread, get_ident, main_thread

import pytest

from traceviz.parsers.shared import prefetch
from traceviz.parsers.shared.prefetch import Prefetch, map_early, read_early, run_early


def give(queue: Prefetch, work, pieces: int) -> list:
    return [queue.submit(lambda number=number: work(number)) for number in range(pieces)]


def threads() -> int:
    return sum(thread.name == "traceviz-prefetch" for thread in threading.enumerate())


@pytest.fixture
def cores(request, monkeypatch) -> int:
    monkeypatch.setattr(prefetch, "usable_cores", lambda: request.param)
    return request.param


@pytest.fixture
def no_threads(monkeypatch):
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


one_core = pytest.mark.parametrize("cores", [1], indirect=True)
two_cores = pytest.mark.parametrize("cores", [2], indirect=True)
any_cores = pytest.mark.parametrize("cores", [1, 3], indirect=True)


class TestPrefetch:
    @any_cores
    def test_53_pieces_are_done_once_whichever_is_asked_for_first(self, cores):
        done = []
        with closing(Prefetch()) as queue:
            first = give(queue, lambda number: done.append(number) or number * number, 50)
            second = give(queue, lambda number: -number, 3)
            assert list(map(queue.result, second)) == [0, -1, -2]
            assert list(map(queue.result, first)) == [number * number for number in range(50)]
        assert sorted(done) == list(range(50))

    @one_core
    def test_on_one_core_the_caller_does_2_pieces_when_it_waits(self, cores):
        done = []
        with closing(Prefetch()) as queue:
            futures = give(queue, lambda _: done.append(get_ident()), 2)
            assert done == []
            queue.result(futures[1])
        assert done == [get_ident()] * 2

    def test_without_a_thread_the_caller_does_3_pieces(self, no_threads):
        with closing(Prefetch(2)) as queue:
            assert list(map(queue.result, give(queue, lambda number: number, 3))) == [0, 1, 2]

    @any_cores
    def test_an_error_is_that_of_its_piece(self, cores):
        def fail(number: int) -> int:
            if number == 2:
                raise ValueError("the third")
            return number

        with closing(Prefetch()) as queue:
            futures = give(queue, fail, 5)
            assert [queue.result(future) for future in futures[:2]] == [0, 1]
            with pytest.raises(ValueError, match="the third"):
                queue.result(futures[2])
            queue.cancel(futures)
            assert all(future.done() for future in futures)
            assert queue.result(queue.submit(lambda: 7)) == 7

    @one_core
    def test_none_of_4_pieces_is_started_once_it_is_closed(self, cores):
        done = []
        queue = Prefetch()
        give(queue, done.append, 4)
        queue.close()
        assert done == []

    @one_core
    def test_an_interrupt_of_the_first_piece_reaches_the_caller_that_waits_for_the_fourth(self, cores):
        done = []

        def end(number: int) -> None:
            done.append(number)
            if number == 0:
                raise KeyboardInterrupt

        with closing(Prefetch()) as queue:
            give(queue, end, 3)
            later = give(queue, done.append, 3)
            with pytest.raises(KeyboardInterrupt):
                queue.result(later[0])
            assert done == [0]

    @one_core
    def test_cancel_does_not_wait_for_1_piece_that_an_interrupt_stopped(self, cores):
        queue = Prefetch()
        futures = give(queue, lambda number: number, 3)
        futures[0].set_running_or_notify_cancel()
        queue.cancel(futures)
        assert [future.cancelled() for future in futures] == [False, True, True]

    @two_cores
    def test_cancel_waits_for_the_1_piece_of_50_that_a_thread_runs(self, cores):
        started, resumes, done = Event(), Event(), []

        def work(number: int) -> None:
            started.set()
            resumes.wait()
            done.append(number)

        with closing(Prefetch()) as queue:
            futures = give(queue, work, 50)
            started.wait()
            Timer(0.05, resumes.set).start()
            queue.cancel(futures)
            assert done == [0]


class TestRunEarly:
    @two_cores
    def test_two_calls_give_the_result_of_one_computation_in_another_thread(self, cores):
        by = []
        started = Event()
        result = run_early(lambda: (by.append(current_thread()), started.set()) and 7, in_background=True)
        started.wait()
        assert [result(), result()] == [7, 7]
        assert len(by) == 1
        assert by[0] is not main_thread()

    @pytest.mark.parametrize(("cores", "in_background"), [(1, True), (2, False)], indirect=["cores"])
    def test_on_1_core_or_in_the_foreground_the_first_caller_computes(self, cores, in_background):
        by = []
        result = run_early(lambda: by.append(current_thread()) or 7, in_background=in_background)
        assert by == []
        assert [result(), result()] == [7, 7]
        assert by == [main_thread()]

    @two_cores
    def test_without_a_thread_the_first_caller_computes_7(self, cores, no_threads):
        assert run_early(lambda: 7, in_background=True)() == 7

    @two_cores
    @pytest.mark.parametrize("in_background", [True, False])
    def test_an_error_is_raised_to_each_of_2_callers(self, cores, in_background):
        result = run_early(lambda: int("seven"), in_background=in_background)
        for _ in range(2):
            with pytest.raises(ValueError, match="seven"):
                result()


def broken(count: int):
    for number in range(count):
        yield b"%04d" % number
    raise OSError("the disk is gone")


class TestReadEarly:
    @pytest.mark.parametrize(
        "blocks", [[], [b"ab"], [b"abcd"], [b"abcd", b"ef"], [b"abcd"] * 50, [b"ab", b"abcd", b"c"]]
    )
    def test_up_to_50_blocks_come_in_their_order(self, blocks):
        assert list(read_early(iter(blocks), 4)) == blocks
        assert threads() == 0

    def test_an_error_after_3_blocks_comes_after_3_blocks(self):
        blocks = read_early(broken(3), 4)
        assert [next(blocks) for _ in range(3)] == [b"0000", b"0001", b"0002"]
        with pytest.raises(OSError, match="the disk is gone"):
            next(blocks)
        assert threads() == 0

    def test_a_second_block_is_read_before_the_caller_asks_and_no_third(self):
        taken, is_second = [], Event()

        def blocks():
            for number in range(1000):
                taken.append(number)
                if number == 1:
                    is_second.set()
                yield b"%04d" % number

        text = read_early(blocks(), 4)
        assert next(text) == b"0000"
        assert is_second.wait(timeout=60)
        text.close()
        assert (taken, threads()) == ([0, 1], 0)

    def test_without_a_thread_5_blocks_are_read(self, no_threads):
        assert list(read_early(iter([b"abcd"] * 5), 4)) == [b"abcd"] * 5


class TestMapEarly:
    @any_cores
    @pytest.mark.parametrize("count", [0, 1, 50])
    def test_results_come_in_the_order_of_the_items(self, cores, count):
        assert list(map_early(lambda item: 2 * item, range(count))) == [2 * item for item in range(count)]

    @any_cores
    def test_of_50_items_at_most_1_for_each_core_and_1_more_are_done_before_the_caller_takes_a_second(self, cores):
        done = []
        results = map_early(lambda item: done.append(item) or item, range(50))
        assert next(results) == 0
        results.close()
        assert len(done) <= cores + 1
        assert threads() == 0
