"""Copies of two sides: time and bytes per step."""

from __future__ import annotations

from tests.compare.changes.sections import copy_section
from tests.compare.sections_of import run, side
from traceviz.compare.changes.calls_and_copies import compare_copies
from traceviz.compare.changes.events import Status


def test_copies_have_bytes_per_step():
    base = side("base", run(2, copy_section(("h2d", 2, 200, 4096), ("memset", 1, 10, 3))))
    new = side("new", run(1, copy_section(("h2d", 1, 40, 1024), ("d2h", 1, 5, 4))))
    compared = compare_copies(base, new)
    assert [
        (change.kind, change.times.status, change.times.base_ns, change.times.new_ns) for change in compared.changes
    ] == [
        ("h2d", Status.FASTER, 100, 40),
        ("memset", Status.GONE, 5, 0),
        ("d2h", Status.NEW, 0, 5),
    ]
    assert {change.kind: (change.base_bytes, change.new_bytes) for change in compared.changes} == {
        "h2d": (2048, 1024),
        "memset": (2, 0),  # 2049.5 bytes in all, rounded to even
        "d2h": (0, 4),
    }
