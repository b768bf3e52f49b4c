"""Cores of this process: those of its affinity, else those of the machine."""

import os

from traceviz.core.process.cores import usable_core_numbers, usable_cores


def test_2_of_the_cores_of_the_machine_are_usable(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 3}, raising=False)
    assert (usable_core_numbers(), usable_cores()) == ((3, 5), 2)


def test_without_an_affinity_the_7_cores_of_the_machine_count(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert (usable_core_numbers(), usable_cores()) == ((), 7)


def test_a_system_that_reports_nothing_has_1_core(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1
