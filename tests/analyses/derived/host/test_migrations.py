"""Runs of migrations of managed memory."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.host.migrations import LEAST, migration_runs

US = 1_000


def copies(count, memory="managed", start=0, each=50 * US):
    """Return copies of 10 us to the host, ``each`` after the one before."""
    return [(start + each * n, 10 * US, "d2h", memory, memory, 4096) for n in range(count)]


@pytest.mark.parametrize(("count", "is_run"), [(LEAST - 1, False), (LEAST, True), (10 * LEAST, True)])
def test_100_migrations_in_a_row_are_a_run(count, is_run):
    runs = migration_runs(trace(memcpy=copies(count)))
    assert [part.total for part in runs.values()] == ([50 * US * (count - 1) + 10 * US] if is_run else [])


@pytest.mark.parametrize("memory", ["pageable", "pinned", "unknown"])
def test_other_copies_are_none(memory):
    assert migration_runs(trace(memcpy=copies(500, memory))) == {}


def test_a_long_pause_ends_a_run():
    runs = migration_runs(trace(memcpy=[*copies(200), *copies(200, start=1_000_000 * US)]))[0]
    assert len(runs) == 2
    assert runs.total == 2 * (50 * US * 199 + 10 * US)


def test_time_between_migrations_is_explained_by_them_unless_a_call_explains_it():
    """
    device   | kernel |m| |m| |m| ... |m|
    host                   |cudaMalloc|
    """
    moved = copies(200, start=100 * US)
    view = trace(
        kernels=[(0, 100 * US, "add")],
        memcpy=moved,
        cuda_api=[(0, 5 * US, "cudaLaunchKernel"), (110 * US, 40 * US, "cudaMalloc")],
    )
    times = dict(host_causes(view).group_by("kind").agg(pl.col("time_ns").sum()).iter_rows())
    assert times == {"migration": 198 * 40 * US, "allocation": 40 * US}
