"""Prefetched tables are the same as those that are read when a caller asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.nsys.database import ERAS, build, call, kernel, thread
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.readers import NsysSqliteReader
from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.sqlite import whole_tables as sqlite_whole
from traceviz.trace.tables import TraceTables

pytestmark = pytest.mark.skipif(decoder() is None, reason="the package was built without a C compiler")

BOUNDED = 1 << 50
"""A memory limit; with a limit, nothing is prefetched."""


def read(path: Path, **options) -> TraceTables:
    return TraceTables(dict(NsysSqliteReader().tables(path, ReadRequest(**options))))


@pytest.fixture
def prefetched(monkeypatch) -> list[int]:
    """Bytes of each table that is prefetched."""
    sizes: list[int] = []
    prefetch = sqlite_whole.SqliteTable.prefetch

    def noted(*given) -> int:
        sizes.append(prefetch(*given))
        return sizes[-1]

    monkeypatch.setattr(sqlite_whole, "RANGE_BYTES", 4096)
    monkeypatch.setattr(sqlite_whole.SqliteTable, "prefetch", noted)
    return sizes


@pytest.mark.parametrize("era", ERAS)
def test_tables_are_the_same(tmp_path, prefetched, era):
    late = [0, 40, 80, 15, 55, 95]  # two threads, by turns
    calls = [
        call(100 * row + late[row % 6], 100 * row + 300, row % 3, globalTid=thread(1, row % 2)) for row in range(900)
    ]
    kernels = [kernel(100 * row + 90, 100 * row + 95, row % 2 + 1) for row in range(900)]
    tables = {"CUPTI_ACTIVITY_KIND_RUNTIME": calls, "CUPTI_ACTIVITY_KIND_KERNEL": kernels}
    path = build(tmp_path / "x.sqlite", tables, era, ["a", "b", "c"])
    early = read(path)
    assert sum(size > 0 for size in prefetched) == 2
    assert sum(size // 8 % 900 == 0 for size in prefetched) == len(prefetched)
    later = read(path, max_memory=BOUNDED)
    assert {name: early.arrow(name).to_pydict() for name in early} == {
        name: later.arrow(name).to_pydict() for name in later
    }
    assert early.rows("cuda_api") == 900


def test_only_what_is_asked_for_is_prefetched(tmp_path, prefetched):
    kernels = [kernel(100 * row, 100 * row + 5) for row in range(900)]
    calls = [call(row, row + 1) for row in range(900)]
    tables = {"CUPTI_ACTIVITY_KIND_RUNTIME": calls, "CUPTI_ACTIVITY_KIND_KERNEL": kernels}
    path = build(tmp_path / "x.sqlite", tables, names=["a"])
    assert read(path, tables=frozenset({"kernels"})).rows("kernels") == 900
    assert [size > 0 for size in prefetched] == [True]


def test_times_beyond_all_captures_are_left_out_as_ever(tmp_path, prefetched):
    kernels = [kernel(100 * row, 100 * row + 5) for row in range(900)] + [kernel(2**62, 2**62 + 5)]
    path = build(tmp_path / "x.sqlite", {"CUPTI_ACTIVITY_KIND_KERNEL": kernels}, names=["a"])
    early, later = read(path), read(path, max_memory=BOUNDED)
    assert early.rows("kernels") == 900
    assert early.arrow("kernels").equals(later.arrow("kernels"))
    assert prefetched[0] > 0
