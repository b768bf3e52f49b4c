"""Python interface to an archive: the commands of the command line, for notebooks and programs.

>>> archive = traceviz.Archive("traces")
>>> archive.add("runs/", tags={"branch": "main"})
>>> archive.catalogue.filter(pl.col("input_share") > 0.2).collect()
>>> archive.scan("kernels").group_by("trace_id").agg(pl.col("dur_ns").sum()).collect()
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from traceviz.archive.catalogue import listing
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest.add import Added, add
from traceviz.archive.ingest.ingest import IngestOptions
from traceviz.archive.query import on_all as scanning
from traceviz.archive.query.engine import Engine, Parameters
from traceviz.archive.query.on_all import report_on_all
from traceviz.archive.query.where import full_id, select_ids, where
from traceviz.archive.runners.base import Runner
from traceviz.archive.runners.choose import runner_for
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.archive.upkeep import export, removal, verify
from traceviz.core.notebook_repr import Shown
from traceviz.parsers.base import Progress, silent
from traceviz.report import Report


class Archive(Shown):
    """A collection of many traces.

    Args:
        location: A folder, or a URL that fsspec knows (``s3://bucket/prefix``). It need not exist before :meth:`add`.
        options: Options of its file system (endpoint, credentials); by default from the environment.
    """

    shown_as: ClassVar[str] = "archive"

    def __init__(self, location: str | Path, options: Mapping[str, Any] | None = None) -> None:
        self.store = Store.at(location, options)

    def __repr__(self) -> str:
        return f"Archive({self.store.called()!r})"

    @property
    def catalogue(self) -> pl.LazyFrame:
        """The current catalogue, with a row for each trace and rank (:mod:`traceviz.archive.catalogue.columns`).

        Raises:
            UsageError: there is no archive.
        """
        return self.rows().lazy()

    def rows(self) -> pl.DataFrame:
        """Return the catalogue rows of ready and quarantined traces, sorted by trace and rank.

        Raises:
            UsageError: there is no archive.
            DamagedTraceError: the catalogue is damaged.
        """
        return catalogue.read_kept(self.store)

    def scan(self, table: str) -> pl.LazyFrame:
        """Scan a table over all traces that have it, with the columns ``format`` and ``trace_id``.

        Columns and types follow :data:`traceviz.trace.schema.TABLES`. Nothing is read before ``collect``.

        Raises:
            UsageError: no such table is declared, or there is no archive.
        """
        return scanning.scan(self.store, self.rows(), table)

    def add(
        self,
        *sources: str | Path,
        keep_private: bool = False,
        tags: Mapping[str, str] | None = None,
        job: str | None = None,
        workers: int | None = None,
        scheduler: str | None = None,
        runner: Runner | None = None,
        retry: bool = False,
        max_size: int | None = None,
        max_memory: int | None = None,
        progress: Progress = silent,
    ) -> Added:
        """Add traces: files, folders, patterns, zip and tar files, URLs. Skip traces that the archive already has.

        Args:
            sources: Sources of the traces.
            keep_private: Store private data, too.
            tags: Tags of the added traces.
            job: Job whose ranks the traces are.
            workers: Number of converting processes; by default one per core. A script must call this below
                ``if __name__ == "__main__":``.
            scheduler: Address of a Dask scheduler whose workers convert instead.
            runner: Runner to use instead of either.
            retry: Retry traces that could not be read before.
            max_size: Limit on the unpacked size of JSON, in bytes; ``None`` for a plausible default.
            max_memory: Memory limit of a worker while it reads, in bytes; ``None`` for all free memory.
            progress: Receives progress.

        Raises:
            UsageError: a source does not exist, or the location holds something other than an archive.
            OutputError: the archive cannot be written. Traces added before are kept.
        """
        named = [str(source) for source in sources]
        chosen_runner = runner or runner_for(workers, scheduler, self.store, named)
        options = IngestOptions(keep_private, dict(tags or {}), job, max_size=max_size, max_memory=max_memory)
        return add(self.store, named, options, chosen_runner, retry=retry, progress=progress)

    def query(self, sql: str, parameters: Parameters | None = None) -> pl.DataFrame:
        """Return the answer to an SQL query over the tables of all traces (with ``trace_id``) and ``catalogue``.

        Raises:
            UsageError: the statement is wrong, or there is no archive.
        """
        layout.check(self.store)
        with Engine(self.store) as engine:
            answer = pl.from_arrow(engine.sql(sql, parameters))
        assert isinstance(answer, pl.DataFrame)
        return answer

    def report(self, condition: str | None = None, top: int = 10, per: str = "") -> Report:
        """Report on all traces, or on those that meet an SQL condition.

        Shares of CUDA functions are compared by framework, or by ``per`` (a tag or a column such as ``gpu``).
        """
        return report_on_all(self.store, where(self.rows(), condition or None), top, per)

    def show(self, trace_id: str) -> Report:
        """Return the saved report of a trace, as written when it was added. The first digits of the id are enough.

        Raises:
            UsageError: no trace has such an id, or several have.
            DamagedTraceError: the trace could not be read when it was added.
        """
        rows = self.rows()
        found_id = full_id(rows, trace_id)
        return listing.saved_report(self.store, rows.filter(pl.col("trace_id") == found_id).row(0, named=True))

    def remove(self, *trace_ids: str, condition: str | None = None) -> int:
        """Remove traces by the first digits of their ids or by an SQL condition; return their number."""
        return removal.remove(self.store, select_ids(self.rows(), trace_ids, condition))

    def export(self, *trace_ids: str, folder: str | Path, force: bool = False) -> list[Path]:
        """Copy traces into ``folder`` as traceviz folders named after their ids."""
        rows = self.rows()
        return export.export_folders(self.store, rows, select_ids(rows, trace_ids, None), Path(folder), force=force)

    def verify(self, *, quick: bool = False) -> verify.Verified:
        """Compare all files with their manifests and the catalogue."""
        return verify.verify(self.store, quick=quick)
