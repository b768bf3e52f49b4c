"""From file to report on one screen: what the command line does, for notebooks and programs.

>>> tables = traceviz.open("trace.nsys-rep")
>>> tables.kernels.group_by("name").agg(pl.col("dur_ns").sum()).collect()
>>> report = traceviz.analyze(tables)
>>> print(traceviz.to_text(report, "terminal"))
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from traceviz import tables as storage
from traceviz.analyses.run import analyze, columns_for, tables_for
from traceviz.analyses.view import AnalysisOptions
from traceviz.files import check_folder_free, check_not_source, new_folder
from traceviz.parsers.base import Progress, ReadOptions, silent
from traceviz.parsers.registry import identify
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import Fact, Report
from traceviz.selection import Selection, select
from traceviz.tables import TraceTables

__all__ = ["AnalysisOptions", "RenderOptions", "Selection", "analyze", "convert", "open_trace", "report_on", "to_text"]


def open_trace(
    path: str | Path,
    *,
    reader: str | None = None,
    tables: Collection[str] | None = None,
    keep_private: bool = False,
    run: str | None = None,
    progress: Progress = silent,
) -> TraceTables:
    """Read a trace of any known format.

    Args:
        path: A trace file, or a folder that holds one.
        reader: Identifier of the format, instead of recognising it by its content.
        tables: Tables wanted; ``None`` for all.
        keep_private: Keep command line and host name.
        run: Run wanted, where ``path`` is a folder of several; ``None`` for the newest.
        progress: Receives progress.

    Raises:
        UnknownFormatError: nothing, or more than one reader, recognises the file.
        UsageError: there is no such reader, or no such run.
        MissingToolError: a program that decodes the format is missing or too old.
        DamagedTraceError: the file breaks the rules of its format.
    """
    source = Path(path)
    wanted = None if tables is None else frozenset(tables)
    options = ReadOptions(wanted, keep_private=keep_private, progress=progress, run=run)
    return TraceTables(dict(identify(source, reader).read(source, options)))


def convert(
    path: str | Path,
    folder: str | Path,
    *,
    reader: str | None = None,
    keep_private: bool = False,
    force: bool = False,
    run: str | None = None,
    progress: Progress = silent,
) -> Path:
    """Write a trace as a traceviz folder of Parquet tables; one table is in memory at a time.

    Raises:
        OutputExistsError: ``folder`` exists, and ``force`` is false or it is not a traceviz folder.
        OutputError: it cannot be written.
        TracevizError: as :func:`open_trace`.
    """
    source, target = Path(path), Path(folder)
    check_not_source(source, target)
    check_folder_free(target, force=force, replaceable=storage.is_trace_folder)
    chosen = identify(source, reader)
    parts = chosen.read(source, ReadOptions(None, keep_private=keep_private, progress=progress, run=run))
    with new_folder(target, force=force, replaceable=storage.is_trace_folder) as temporary:
        storage.write_tables(temporary, parts, _provenance(source, chosen.format, keep_private=keep_private))
    return target


def report_on(
    path: str | Path,
    *,
    sections: Collection[str] | None = None,
    options: AnalysisOptions | None = None,
    selection: Selection | None = None,
    reader: str | None = None,
    run: str | None = None,
    progress: Progress = silent,
) -> Report:
    """Read a trace and analyse it: :func:`open_trace`, a :class:`Selection`, :func:`analyze`."""
    source = Path(path)
    wanted = ReadOptions(tables_for(sections), columns_for(sections), progress=progress, run=run)
    tables = TraceTables(dict(identify(source, reader).read(source, wanted)))
    found = analyze(select(tables, selection or Selection()), options, sections)
    return replace(found, run=(Fact("source", "trace", source.name), *found.run))


def to_text(report: Report, name: str = "terminal", options: RenderOptions | None = None) -> str:
    """Text of a report in the format ``name`` (terminal, json, markdown)."""
    return renderer(name).render(report, options or RenderOptions())


def _provenance(source: Path, format_name: str, *, keep_private: bool) -> dict[str, object]:
    facts: dict[str, object] = {"source": source.name, "format": format_name}
    if source.is_file():
        with source.open("rb") as handle:
            facts["source_sha256"] = hashlib.file_digest(handle, "sha256").hexdigest()
    facts["left_out"] = [] if keep_private else ["command line", "host name", "environment", "captured output"]
    return facts
