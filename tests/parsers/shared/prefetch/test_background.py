"""Results that another thread computes: once, and what it raises is raised to whoever asks."""

from threading import current_thread, main_thread

import pytest

from traceviz.parsers.shared.prefetch import background
from traceviz.parsers.shared.prefetch.background import Meanwhile


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(background, "_cores", lambda: 2)


def test_two_questions_are_answered_by_one_computation_in_another_thread(two_cores):
    threads = []
    begun = Meanwhile(lambda: threads.append(current_thread()) or 7, beside=True)
    assert [begun.result(), begun.result()] == [7, 7]
    assert len(threads) == 1
    assert threads[0] is not main_thread()


@pytest.mark.parametrize(("cores", "beside"), [(1, True), (2, False)])
def test_with_one_core_or_little_to_do_nothing_is_computed_before_somebody_asks(monkeypatch, cores, beside):
    monkeypatch.setattr(background, "_cores", lambda: cores)
    threads = []
    begun = Meanwhile(lambda: threads.append(current_thread()) or 7, beside=beside)
    assert threads == []
    assert [begun.result(), begun.result()] == [7, 7]
    assert threads == [main_thread()]


def test_where_no_thread_can_be_started_the_first_who_asks_computes_7(two_cores, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(background.Thread, "start", refuse)
    assert Meanwhile(lambda: 7, beside=True).result() == 7


@pytest.mark.parametrize("beside", [True, False])
def test_what_is_raised_meanwhile_is_raised_to_each_of_2_who_ask(two_cores, beside):
    begun = Meanwhile(lambda: int("seven"), beside=beside)
    for _ in range(2):
        with pytest.raises(ValueError, match="seven"):
            begun.result()
