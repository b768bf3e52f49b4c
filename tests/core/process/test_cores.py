"""Cores of this process: those of its affinity, else those of the machine."""

import os

import pytest

from traceviz.core.process.cores import usable_core_numbers, usable_cores


@pytest.mark.parametrize(
    ("affinity", "count", "numbers", "usable"), [({5, 3}, 7, (3, 5), 2), (None, 7, (), 7), (None, None, (), 1)]
)
def test_the_affinity_counts_else_the_cores_of_the_machine_else_1(monkeypatch, affinity, count, numbers, usable):
    if affinity is None:
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    else:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: affinity, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert (usable_core_numbers(), usable_cores()) == (numbers, usable)
