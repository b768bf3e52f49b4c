"""From file to report on one screen: what the command line does, for notebooks and programs.

>>> tables = traceviz.open("trace.nsys-rep")
>>> tables.kernels.group_by("name").agg(pl.col("dur_ns").sum()).collect()
>>> report = traceviz.analyze(tables)
>>> print(traceviz.to_text(report, "terminal"))
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
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
from traceviz.report import Report
from traceviz.selection import Selection, select
from traceviz.sources import read_all, source_facts, trace_files
from traceviz.tables import TraceTables

__all__ = ["AnalysisOptions", "RenderOptions", "Selection", "analyze", "convert", "open_trace", "report_on", "to_text"]


def open_trace(
    *paths: str | Path,
    reader: str | None = None,
    tables: Collection[str] | None = None,
    keep_private: bool = False,
    run: str | None = None,
    max_size: int | None = None,
    progress: Progress = silent,
) -> TraceTables:
    """Read a trace of any known format, or the traces of several ranks of one job as one.

    Args:
        paths: Trace files, or folders that hold one. Several are put on one clock, each rank keeping its number
            (see :func:`traceviz.parsers.bundle.combine`).
        reader: Identifier of the format, instead of recognising it by its content.
        tables: Tables wanted; ``None`` for all.
        keep_private: Keep command line and host name.
        run: Run wanted, where a path is a folder of several; ``None`` for the newest.
        max_size: The longest JSON to read, unpacked, in bytes; ``None`` for what is plausible.
        progress: Receives progress.

    Raises:
        UnknownFormatError: nothing, or more than one reader, recognises a file.
        UsageError: there is no such reader, or no such run; a trace is named twice, or two are of the same rank.
        MissingToolError: a program that decodes the format is missing or too old.
        DamagedTraceError: a file breaks the rules of its format.
    """
    wanted = None if tables is None else frozenset(tables)
    options = ReadOptions(wanted, keep_private=keep_private, progress=progress, run=run, max_size=max_size)
    return TraceTables(dict(read_all(trace_files(paths), reader, options)))


def convert(
    paths: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    reader: str | None = None,
    keep_private: bool = False,
    force: bool = False,
    run: str | None = None,
    max_size: int | None = None,
    progress: Progress = silent,
) -> Path:
    """Write a trace, or those of several ranks, as one traceviz folder of Parquet tables.

    Of a single trace one table is in memory at a time.

    Raises:
        OutputExistsError: ``folder`` exists, and ``force`` is false or it is not a traceviz folder.
        OutputError: it cannot be written.
        TracevizError: as :func:`open_trace`.
    """
    target = Path(folder)
    sources = trace_files((paths,) if isinstance(paths, str | Path) else paths)
    for source in sources:
        check_not_source(source, target)
    check_folder_free(target, force=force, replaceable=storage.is_trace_folder)
    formats = [identify(source, reader).format for source in sources]
    options = ReadOptions(None, keep_private=keep_private, progress=progress, run=run, max_size=max_size)
    parts = read_all(sources, reader, options)
    with new_folder(target, force=force, replaceable=storage.is_trace_folder) as temporary:
        storage.write_tables(temporary, parts, _provenance(sources, formats, keep_private=keep_private))
    return target


def report_on(
    *paths: str | Path,
    sections: Collection[str] | None = None,
    options: AnalysisOptions | None = None,
    selection: Selection | None = None,
    reader: str | None = None,
    run: str | None = None,
    max_size: int | None = None,
    progress: Progress = silent,
) -> Report:
    """Read traces and analyse them: :func:`open_trace`, a :class:`Selection`, :func:`analyze`."""
    sources = trace_files(paths)
    wanted = ReadOptions(tables_for(sections), columns_for(sections), progress=progress, run=run, max_size=max_size)
    tables = TraceTables(dict(read_all(sources, reader, wanted)))
    found = analyze(select(tables, selection or Selection()), options, sections)
    return replace(found, run=(*source_facts(sources), *found.run))


def to_text(report: Report, name: str = "terminal", options: RenderOptions | None = None) -> str:
    """Text of a report in the format ``name`` (terminal, json, markdown)."""
    return renderer(name).render(report, options or RenderOptions())


def _provenance(sources: Sequence[Path], formats: Sequence[str], *, keep_private: bool) -> dict[str, object]:
    """What the manifest says of the source; of several, a list."""
    each = [_source(path, name) for path, name in zip(sources, formats, strict=True)]
    facts: dict[str, object] = dict(each[0]) if len(each) == 1 else {"sources": each}
    facts["left_out"] = [] if keep_private else ["command line", "host name", "environment", "captured output"]
    return facts


def _source(path: Path, format_name: str) -> dict[str, str]:
    facts = {"source": path.name, "format": format_name}
    if path.is_file():
        with path.open("rb") as handle:
            facts["source_sha256"] = hashlib.file_digest(handle, "sha256").hexdigest()
    return facts
