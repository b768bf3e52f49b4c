"""Traces of one job's ranks as one: the report that ``traceviz report`` gives on several traces."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pyarrow as pa

from traceviz.analyses.run import analyze, columns_for, tables_for
from traceviz.archive.population.observations import date, with_runs
from traceviz.archive.storage.layout import OWN_FILES, trace_parts
from traceviz.archive.storage.store import LAST, Store
from traceviz.errors import DamagedTraceError, UsageError
from traceviz.parsers.base import Progress, ReadOptions, silent
from traceviz.parsers.ranks.merge import merged
from traceviz.parsers.ranks.names import rank_in_name
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.report import Fact, Report
from traceviz.tables import TraceTables
from traceviz.units import counted


@dataclass(frozen=True, slots=True)
class Member:
    """A trace of a job.

    Args:
        trace_id: Its id.
        format: Format of its source, by which its folder is found.
        source: What people call it; it may state the rank.
        ranks: Ranks that it holds, as far as they are known.
        recorded_ns: When its recording began, Unix time.
        ended_ns: When it ended.
        run: Equal for traces that were recorded together.
    """

    trace_id: str
    format: str
    source: str
    ranks: tuple[int, ...]
    recorded_ns: int | None
    ended_ns: int | None
    run: str

    @property
    def dated(self) -> str:
        """Its source, id and date, for messages."""
        return f"{self.source} ({self.trace_id}, {date(self.recorded_ns) or 'no date'})"


def job_names(catalogue: pl.DataFrame) -> list[str]:
    """Names of all jobs that can be asked, in order."""
    usable = catalogue.filter(pl.col("state") == "ready")
    return sorted(usable["job"].drop_nulls().unique().to_list())


def members(catalogue: pl.DataFrame, job: str) -> tuple[Member, ...]:
    """Traces of a job, in the order of their ranks.

    Raises:
        UsageError: there is no such job, it has a single rank, a rank was captured twice, or the traces are of several
            runs.
    """
    rows = catalogue.filter((pl.col("state") == "ready") & (pl.col("job") == job))
    if not rows.height:
        known = job_names(catalogue)
        if not known:
            raise UsageError(f"There is no job {job!r}.", "No trace states one.", "Give it when adding: --job NAME.")
        raise UsageError.unknown("job", job, known)
    facts = ("format", "source", "recorded_ns", "run")
    traces = (
        with_runs(rows)
        .with_columns((pl.col("recorded_ns") + pl.col("span_ns").fill_null(0)).alias("ended_ns"))
        .group_by("trace_id")
        .agg(
            *(pl.col(name).first() for name in facts),
            pl.col("ended_ns").max(),
            pl.col("rank").drop_nulls().unique().sort().alias("ranks"),
        )
    )
    found = sorted(
        (Member(**{**row, "ranks": tuple(row["ranks"])}) for row in traces.iter_rows(named=True)),
        key=lambda one: (one.ranks or (1 << 62,), one.source, one.trace_id),
    )
    _check(job, found, rows.height)
    return tuple(found)


def _check(job: str, found: list[Member], rows: int) -> None:
    """Raise unless the traces are different ranks of one run."""
    if rows < 2:
        raise UsageError(
            f"Job {job!r} has a single rank: {found[0].source}.",
            "Imbalance and stragglers need two.",
            f"Report on it alone: traceviz archive show ARCHIVE {found[0].trace_id}",
        )
    seen: dict[int, Member] = {}
    for member in found:
        for rank in member.ranks:
            if rank in seen:
                raise _twice(job, rank, seen[rank], member, found)
            seen[rank] = member
    ended_ns = 0
    for before, after in pairwise(_in_time(found)):
        ended_ns = max(ended_ns, before.ended_ns or 0)
        if (after.recorded_ns or 0) - ended_ns > _APART_NS:
            raise UsageError(
                f"Job {job!r} is of several runs: {before.dated} and {after.dated} were not recorded together.",
                _ran(found),
                _choose(found),
            )


def _twice(job: str, rank: int, one: Member, other: Member, found: list[Member]) -> UsageError:
    """Two captures of a rank: name them, and the traces of one run that could be meant."""
    return UsageError(
        f"Job {job!r} has two captures of rank {rank}: {one.dated} and {other.dated}.", _ran(found), _choose(found)
    )


_APART_NS = 3_600_000_000_000
"""Recordings with a longer pause between them, an hour, are of different runs: no clocks of nodes differ by that."""


def _in_time(found: list[Member]) -> list[Member]:
    """Those whose time is known, in its order."""
    return sorted((one for one in found if one.recorded_ns is not None), key=lambda one: one.recorded_ns or 0)


def _runs(found: list[Member]) -> list[str]:
    """The runs of a job, the last one last."""
    return list(dict.fromkeys(one.run for one in _in_time(found) or found))


def _ran(found: list[Member]) -> str:
    runs = _runs(found)
    return f"It ran {counted(len(runs), 'time')}." if len(runs) > 1 else "They were recorded at the same time."


def _choose(found: list[Member]) -> str:
    """The last run by its ids, with one trace of each rank."""
    last, ranks, ids = _runs(found)[-1], set[int](), list[str]()
    for member in found:
        if member.run == last and ranks.isdisjoint(member.ranks):
            ranks.update(member.ranks)
            ids.append(f"'{member.trace_id}'")
    return f'Name one trace of each rank of one run: --where "trace_id in ({", ".join(ids)})".'


def report_on_job(store: Store, catalogue: pl.DataFrame, job: str, progress: Progress = silent) -> Report:
    """The report on all ranks of a job together: their tables on one clock, imbalance, stragglers, collective skew.

    Args:
        store: Where the archive is.
        catalogue: Its rows; filtered as one likes.
        job: Name of the job.
        progress: Receives progress.

    Raises:
        UsageError: as :func:`members`.
        DamagedTraceError: a trace is not in the archive as it was written.
        OutputError: the archive cannot be reached.
    """
    found = members(catalogue, job)
    wanted = ReadOptions(tables_for(None), columns_for(None), progress=progress)
    parts = [_tables(store, member, wanted) for member in found]
    report = analyze(TraceTables(dict(merged(parts, _names(found)))))
    return replace(report, run=(*_facts(job, found), *report.run))


def _names(found: tuple[Member, ...]) -> list[str]:
    """Names that tell the traces apart, and the rank of a trace that states none: it may be known from a path."""
    names = [member.source for member in found]
    if len(set(names)) != len(names):
        names = [f"{one.source} ({one.trace_id})" for one in found]
    ranks = [one.ranks[0] if len(one.ranks) == 1 else None for one in found]
    return [
        name if rank is None or rank_in_name(name) == rank else f"{name}, rank {rank}"
        for name, rank in zip(names, ranks, strict=True)
    ]


def _facts(job: str, found: tuple[Member, ...]) -> tuple[Fact, ...]:
    return (
        Fact("source", "job", f"job {job}: {counted(len(found), 'trace')}"),
        Fact("job", "job", job),
        Fact("traces", "traces", len(found), "count"),
        Fact("trace_ids", "ids", ", ".join(member.trace_id for member in found)),
    )


def _tables(store: Store, member: Member, options: ReadOptions) -> dict[str, pa.Table]:
    """Tables of a trace, in memory."""
    with local_folder(store, member.format, member.trace_id) as folder:
        return dict(TracevizFolderReader().read(folder, options))


@contextmanager
def local_folder(store: Store, format_name: str, trace_id: str) -> Iterator[Path]:
    """The folder of a trace on this machine: itself, or a copy of what lies elsewhere while the block runs.

    Raises:
        DamagedTraceError: it is not there.
    """
    parts = trace_parts(format_name, trace_id)
    if not store.exists(*parts, LAST):
        raise DamagedTraceError(
            f"Trace {trace_id} is in the catalogue, and not in the archive.",
            f"{store.url_of(*parts)} has no {LAST}.",
            f"See what is missing, and add it again: traceviz archive verify {store.called()}",
        )
    if store.is_local:
        yield Path(store.url_of(*parts))
        return
    with tempfile.TemporaryDirectory(prefix="traceviz-") as temporary:
        for name in store.sizes(*parts):
            if name not in OWN_FILES or name == LAST:
                target = Path(temporary, Path(name).name)  # names of a foreign store stay in the folder
                target.write_bytes(store.read(*parts, name))
        yield Path(temporary)
