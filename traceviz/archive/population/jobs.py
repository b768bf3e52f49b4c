"""Report on all ranks of a job: the report that ``traceviz report`` gives on several traces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pyarrow as pa

from traceviz.analyses.registry import columns_for, tables_for
from traceviz.analyses.run import analyze
from traceviz.archive.catalogue.segments import ready
from traceviz.archive.population.observations import date, with_runs
from traceviz.archive.storage.layout import OWN_FILES, trace_parts
from traceviz.archive.storage.store import LAST, Store
from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.core.process.temporary import temporary_folder
from traceviz.core.units import counted
from traceviz.parsers.base import Progress, ReadRequest, silent
from traceviz.parsers.ranks.merge import merged
from traceviz.parsers.ranks.names import rank_in_name
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.report import Fact, Report
from traceviz.trace.tables import TraceTables


@dataclass(frozen=True, slots=True)
class Member:
    """A trace of a job.

    Args:
        trace_id: Its id.
        format: Format of its source; part of the path of its folder.
        source: Its display name, which may state the rank.
        ranks: Its known ranks.
        recorded_ns: Start of its recording, Unix time.
        ended_ns: End of its recording, Unix time.
        run: Identifier of the run, equal for traces that were recorded together.
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


def members(catalogue: pl.DataFrame, job: str) -> tuple[Member, ...]:
    """Return the traces of a job, in the order of their ranks.

    Raises:
        UsageError: there is no such job, it has a single rank, a rank was captured twice, or the traces belong to
            several runs.
    """
    rows = ready(catalogue).filter(pl.col("job") == job)
    if not rows.height:
        known = sorted(ready(catalogue)["job"].drop_nulls().unique().to_list())
        if not known:
            raise UsageError(
                f"There is no job {job!r}.",
                "No trace belongs to a job.",
                "Name the job when adding traces: --job NAME.",
            )
        raise UsageError.unknown("job", job, known)
    facts = ("format", "source", "recorded_ns", "run")
    grouped = (
        with_runs(rows)
        .with_columns((pl.col("recorded_ns") + pl.col("span_ns").fill_null(0)).alias("ended_ns"))
        .group_by("trace_id")
        .agg(
            *(pl.col(name).first() for name in facts),
            pl.col("ended_ns").max(),
            pl.col("rank").drop_nulls().unique().sort().alias("ranks"),
        )
    )
    traces = sorted(
        (Member(**{**row, "ranks": tuple(row["ranks"])}) for row in grouped.iter_rows(named=True)),
        key=lambda member: (member.ranks or (1 << 62,), member.source, member.trace_id),
    )
    _check(job, traces, rows.height)
    return tuple(traces)


def _check(job: str, traces: list[Member], rows: int) -> None:
    """Raise unless the traces belong to different ranks of one run."""
    if rows < 2:
        raise UsageError(
            f"Job {job!r} has a single rank: {traces[0].source}.",
            "Imbalance and stragglers need two.",
            f"Report on it alone: traceviz archive show ARCHIVE {traces[0].trace_id}",
        )
    by_rank: dict[int, Member] = {}
    for member in traces:
        for rank in member.ranks:
            if rank in by_rank:
                raise UsageError(
                    f"Job {job!r} has two captures of rank {rank}: {by_rank[rank].dated} and {member.dated}.",
                    _ran(traces),
                    _choose(traces),
                )
            by_rank[rank] = member
    ended_ns = 0
    for before, after in pairwise(_in_time(traces)):
        ended_ns = max(ended_ns, before.ended_ns or 0)
        if (after.recorded_ns or 0) - ended_ns > _APART_NS:
            raise UsageError(
                f"Job {job!r} is of several runs: {before.dated} and {after.dated} were not recorded together.",
                _ran(traces),
                _choose(traces),
            )


_APART_NS = 3_600_000_000_000
"""Gap between recordings, one hour, above which they belong to different runs. Clocks of nodes differ by less."""


def _in_time(traces: list[Member]) -> list[Member]:
    """Return the traces with a known time, in order of time."""
    return sorted(
        (member for member in traces if member.recorded_ns is not None), key=lambda member: member.recorded_ns or 0
    )


def _runs(traces: list[Member]) -> list[str]:
    """Return the runs of a job, the last one last."""
    return list(dict.fromkeys(member.run for member in _in_time(traces) or traces))


def _ran(traces: list[Member]) -> str:
    runs = _runs(traces)
    return f"It ran {counted(len(runs), 'time')}." if len(runs) > 1 else "They were recorded at the same time."


def _choose(traces: list[Member]) -> str:
    """Return advice that names the last run by its ids, with one trace of each rank."""
    last, ranks, ids = _runs(traces)[-1], set[int](), list[str]()
    for member in traces:
        if member.run == last and ranks.isdisjoint(member.ranks):
            ranks.update(member.ranks)
            ids.append(f"'{member.trace_id}'")
    return f'Name one trace of each rank of one run: --where "trace_id in ({", ".join(ids)})".'


def report_on_job(store: Store, catalogue: pl.DataFrame, job: str, progress: Progress = silent) -> Report:
    """Report on all ranks of a job: their tables on one clock, imbalance, stragglers, collective skew.

    Args:
        store: The archive.
        catalogue: Its rows, possibly filtered.
        job: Name of the job.
        progress: Receives progress.

    Raises:
        UsageError: see :func:`members`.
        DamagedTraceError: a trace is missing or was changed.
        OutputError: the archive cannot be reached.
    """
    traces = members(catalogue, job)
    options = ReadRequest(tables_for(None), columns_for(None), progress=progress)
    parts: list[dict[str, pa.Table]] = []
    for member in traces:
        with local_folder(store, member.format, member.trace_id) as folder:
            parts.append(dict(TracevizFolderReader().tables(folder, options)))
    report = analyze(TraceTables(dict(merged(parts, _names(traces)))))
    facts = (
        Fact("source", "job", f"job {job}: {counted(len(traces), 'trace')}"),
        Fact("job", "job", job),
        Fact("traces", "traces", len(traces), "count"),
        Fact("trace_ids", "ids", ", ".join(member.trace_id for member in traces)),
    )
    return replace(report, run=(*facts, *report.run))


def _names(traces: tuple[Member, ...]) -> list[str]:
    """Return distinct names of the traces. A name gets the rank if it does not state it."""
    names = [member.source for member in traces]
    if len(set(names)) != len(names):
        names = [f"{member.source} ({member.trace_id})" for member in traces]
    ranks = [member.ranks[0] if len(member.ranks) == 1 else None for member in traces]
    return [
        name if rank is None or rank_in_name(name) == rank else f"{name}, rank {rank}"
        for name, rank in zip(names, ranks, strict=True)
    ]


@contextmanager
def local_folder(store: Store, format_name: str, trace_id: str) -> Iterator[Path]:
    """Yield a local folder of a trace: its own, or a temporary copy of a remote one.

    Raises:
        DamagedTraceError: the folder does not exist.
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
    with temporary_folder() as temporary:
        for name in store.sizes(*parts):
            if name not in OWN_FILES or name == LAST:
                target = temporary / Path(name).name  # names from a remote store cannot leave the folder
                target.write_bytes(store.read(*parts, name))
        yield temporary
