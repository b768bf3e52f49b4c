"""The sampler and Python's switch interval."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest


@pytest.fixture
def usual() -> Iterator[float]:
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def test_one_running_thread_gives_the_lock_after_a_tenth_of_a_millisecond_and_two_after_the_usual_time(
    inject, usual
) -> None:
    sampler = inject.sampler.Sampler(SimpleNamespace(is_broken=False), None, 100)
    sampler._switch_soon(alone=True)
    assert sys.getswitchinterval() == pytest.approx(0.0001)
    sampler._switch_soon(alone=False)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_program_that_sets_20_milliseconds_keeps_them(inject, usual) -> None:
    sampler = inject.sampler.Sampler(SimpleNamespace(is_broken=False), None, 100)
    sys.setswitchinterval(0.02)
    sampler._switch_soon(alone=True)
    assert sys.getswitchinterval() == pytest.approx(0.02) != usual
