"""From file to report on one screen: what the command line does, for notebooks and programs.

>>> report = traceviz.analyze("trace.nsys-rep")
>>> print(traceviz.to_text(report, "terminal"))
>>> tables = traceviz.open("trace.nsys-rep")
>>> tables.kernels.group_by("name").agg(pl.col("dur_ns").sum()).collect()
>>> report = traceviz.analyze(tables)

Slow imports are left to the functions that need them, and come after the checks: that a file does not exist is reported
at once.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from traceviz.analyses.options import AnalysisOptions, StepTime
from traceviz.compare.options import CompareOptions, Tables
from traceviz.core.errors import UsageError
from traceviz.core.files import check_folder_free, check_not_source, new_folder
from traceviz.parsers.base import Progress, Reader, ReadOptions, nothing, silent
from traceviz.parsers.sources import named, read_all, readers_of, source_facts, trace_files
from traceviz.render.options import RenderOptions
from traceviz.report import Report
from traceviz.trace.selection import Selection
from traceviz.trace.trace_folder import is_trace_folder
from traceviz.untrusted.errors import foreign_errors_in_words

if TYPE_CHECKING:
    from traceviz.compare.compare import Comparison
    from traceviz.compare.report.document import document
    from traceviz.report.pictures.flame import Flame
    from traceviz.report.pictures.pictures import Pictures
    from traceviz.trace.tables import TraceTables

__all__ = [
    "AnalysisOptions",
    "CompareOptions",
    "Comparison",
    "RenderOptions",
    "Selection",
    "Tables",
    "analyze",
    "compare",
    "convert",
    "document",
    "flame_differences",
    "open_trace",
    "pictured",
    "report_on",
    "to_text",
    "why",
]


def open_trace(
    *paths: str | Path,
    reader: str | None = None,
    tables: Collection[str] | None = None,
    keep_private: bool = False,
    run: str | None = None,
    max_size: int | None = None,
    max_memory: int | None = None,
    cache: bool = True,
    progress: Progress = silent,
) -> TraceTables:
    """Read a trace of any known format, or the traces of several ranks of one job as one.

    Args:
        paths: Trace files, or folders that hold one. Several are put on one clock, each rank keeping its number
            (see :func:`traceviz.parsers.ranks.merge.combine`).
        reader: Identifier of the format, instead of recognising it by its content.
        tables: Tables to read; ``None`` for all.
        keep_private: Keep command line and host name.
        run: Run to read, where a path is a folder of several; ``None`` for the newest.
        max_size: The longest JSON to read, unpacked, in bytes; ``None`` for what is plausible.
        max_memory: Most memory that this process may take while it reads, in bytes; ``None`` for what there is.
        cache: Keep what nsys exports, and use what was kept (see ``docs/commands.md``); not with ``keep_private``.
        progress: Receives progress.

    Raises:
        UnknownFormatError: nothing, or more than one reader, recognises a file.
        UsageError: there is no such reader, or no such run; a trace is named twice, or two are of the same rank.
        MissingToolError: a program that decodes the format is missing or too old.
        DamagedTraceError: a file breaks the rules of its format.
        UnreadableError: the system does not let a file be read.
        OutOfMemoryError: it needs more memory than there is.
    """
    names = None if tables is None else frozenset(tables)
    files = trace_files(paths)
    readers = readers_of(files, reader)
    from traceviz.trace.spill import collected, spill_beyond

    options = ReadOptions(
        names,
        keep_private=keep_private,
        progress=progress,
        run=run,
        max_size=max_size,
        max_memory=max_memory,
        cache=cache,
        spill=spill_beyond(max_memory),
    )
    with foreign_errors_in_words(f"{named(files)} cannot be read."):
        return collected(read_all(files, readers, options), options.spill)


def convert(
    paths: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    reader: str | None = None,
    keep_private: bool = False,
    force: bool = False,
    run: str | None = None,
    max_size: int | None = None,
    max_memory: int | None = None,
    cache: bool = True,
    progress: Progress = silent,
) -> Path:
    """Write a trace, or those of several ranks, as one traceviz folder of Parquet tables.

    While a single trace is converted, one table at a time is in memory.

    Raises:
        OutputExistsError: ``folder`` exists, and ``force`` is false or it is not a traceviz folder.
        OutputError: it cannot be written.
        TracevizError: as :func:`open_trace`.
    """
    target = Path(folder)
    sources = trace_files((paths,) if isinstance(paths, str | Path) else paths)
    for source in sources:
        check_not_source(source, target)
    check_folder_free(target, force=force, replaceable=is_trace_folder)
    readers = readers_of(sources, reader)
    from traceviz.trace.tables import write_tables

    options = ReadOptions(
        None,
        keep_private=keep_private,
        progress=progress,
        run=run,
        max_size=max_size,
        max_memory=max_memory,
        cache=cache,
    )
    parts = read_all(sources, readers, options)
    with (
        foreign_errors_in_words(f"{named(sources)} cannot be converted."),
        new_folder(target, force=force, replaceable=is_trace_folder) as temporary,
    ):
        write_tables(temporary, parts, _provenance(sources, readers, keep_private=keep_private))
    return target


def report_on(
    *paths: str | Path,
    sections: Collection[str] | None = None,
    options: AnalysisOptions | None = None,
    selection: Selection | None = None,
    reader: str | None = None,
    run: str | None = None,
    max_size: int | None = None,
    max_memory: int | None = None,
    cache: bool = True,
    progress: Progress = silent,
) -> Report:
    """Read traces and analyse them: :func:`open_trace`, a :class:`Selection`, :func:`analyze`."""
    sources = trace_files(paths)
    reading = _Reading(reader, run, max_size, max_memory, cache, progress)
    tables = _part(sources, reading, sections, selection)
    from traceviz.analyses.run import analyze

    report = analyze(tables, options, sections)
    return replace(report, run=(*source_facts(sources), *report.run))


def pictured(
    *paths: str | Path,
    events: int | None = None,
    sections: Collection[str] | None = None,
    options: AnalysisOptions | None = None,
    selection: Selection | None = None,
    reader: str | None = None,
    run: str | None = None,
    max_size: int | None = None,
    max_memory: int | None = None,
    cache: bool = True,
    progress: Progress = silent,
) -> tuple[Report, Pictures]:
    """As :func:`report_on`, and what a page shows beside the report: timeline, flame graphs, places of findings.

    >>> report, pictures = pictured("trace.nsys-rep")
    >>> to_text(report, "html", pictures=pictures)

    Args:
        paths: As for :func:`report_on`.
        events: Events that the timeline may have: beyond, they are all there in some stretches of time only. ``None``
            for as many as a page of 8 MB holds, 0 for no timeline.
        sections: Sections of the report; pictures show the same without.
        options: As for :func:`report_on`.
        selection: As for :func:`report_on`; times of pictures are those of the whole trace.
        reader: As for :func:`open_trace`.
        run: As for :func:`open_trace`.
        max_size: As for :func:`open_trace`.
        max_memory: As for :func:`open_trace`.
        cache: As for :func:`open_trace`.
        progress: Receives progress.
    """
    sources = trace_files(paths)
    reading = _Reading(reader, run, max_size, max_memory, cache, progress)
    tables = _part(sources, reading, None, selection)
    from traceviz.analyses.run import analyze_view, view
    from traceviz.pictures.flame.flames import flames
    from traceviz.pictures.timeline.pictures import timeline_and_places
    from traceviz.report.pictures.pictures import Pictures

    trace = view(tables, options)
    report = analyze_view(trace, sections)
    progress("drawing", 0, None)
    with foreign_errors_in_words("The trace cannot be drawn."):
        start = selection.start_ns or 0 if selection else 0
        shown, places = timeline_and_places(trace, report.findings, events, start)
        pictures = Pictures(shown, flames(trace), places)
    return replace(report, run=(*source_facts(sources), *report.run)), pictures


def flame_differences(
    base: str | Path,
    new: str | Path,
    *,
    options: AnalysisOptions | None = None,
    selection: Selection | None = None,
    reader: str | None = None,
    run: str | None = None,
    max_size: int | None = None,
    max_memory: int | None = None,
    cache: bool = True,
    progress: Progress = silent,
) -> tuple[Flame, ...]:
    """Flame graphs of two traces as differences, per step where both have steps: for the page of a comparison.

    The traces are read one after the other, so that the tables of one at a time are in memory.

    >>> pictures = Pictures(flames=flame_differences("slow.nsys-rep", "repaired.nsys-rep"))
    >>> to_text(compare("slow.nsys-rep", "repaired.nsys-rep"), "html", pictures=pictures)

    Args:
        base: The trace to compare with, or a folder that holds one.
        new: The other one.
        options: As for :func:`report_on`.
        selection: As for :func:`report_on`.
        reader: As for :func:`open_trace`.
        run: As for :func:`open_trace`.
        max_size: As for :func:`open_trace`.
        max_memory: As for :func:`open_trace`.
        cache: As for :func:`open_trace`.
        progress: Receives progress.
    """

    def drawn(path: str | Path) -> tuple[Flame, ...]:
        from traceviz.analyses.run import view
        from traceviz.pictures.flame.difference import FINE
        from traceviz.pictures.flame.flames import flames

        gc.collect()  # tables of the other side hang in cycles
        sources = trace_files((path,))
        named_progress = _named_progress(Path(path).name, progress)
        tables = _part(sources, _Reading(reader, run, max_size, max_memory, cache, named_progress), None, selection)
        with foreign_errors_in_words(f"{named(sources)} cannot be drawn."):
            return flames(view(tables, options), FINE)

    before, after = drawn(base), drawn(new)
    from traceviz.pictures.flame.difference import differences

    return differences(before, after)


@dataclass(frozen=True, slots=True)
class _Reading:
    """How traces are read: see :func:`open_trace`."""

    reader: str | None
    run: str | None
    max_size: int | None
    max_memory: int | None
    cache: bool
    progress: Progress


def _part(
    sources: Sequence[Path], reading: _Reading, sections: Collection[str] | None, selection: Selection | None
) -> TraceTables:
    """What ``sections`` need of the selected part of a trace."""
    readers = readers_of(sources, reading.reader)
    is_large = sum(map(_size, sources)) >= _LARGE
    if is_large and len(sources) == 1 and reading.max_memory is None:
        readers = [readers[0].reading_ahead(sources[0])]
    from traceviz.analyses.needs import columns_for, tables_for
    from traceviz.analyses.registry import PROPERTIES
    from traceviz.trace.spill import collected, spill_beyond

    needs = ReadOptions(
        tables_for(sections),
        columns_for(sections),
        PROPERTIES,
        progress=reading.progress,
        run=reading.run,
        max_size=reading.max_size,
        max_memory=reading.max_memory,
        cache=reading.cache,
        window=selection.window if selection else None,
        spill=spill_beyond(reading.max_memory),
        begun=_loader(sections) if is_large else nothing,
    )
    with foreign_errors_in_words(f"{named(sources)} cannot be read."):
        tables = collected(read_all(sources, readers, needs), needs.spill)
        if selection and not selection.is_everything:
            from traceviz.trace.slicing import select

            return select(tables, selection)
        return tables


def analyze(
    trace: TraceTables | str | Path | Sequence[str | Path],
    options: AnalysisOptions | None = None,
    sections: Collection[str] | None = None,
) -> Report:
    """Analyse a trace: one that was read, or a file or folder, or a list of those of one job's ranks.

    >>> traceviz.analyze("trace.nsys-rep").verdict.sentence
    >>> traceviz.analyze(["rank0.json.gz", "rank1.json.gz"], sections=["collectives"])

    Of a path, only what the sections need is read; see :func:`report_on` for how it can be read.

    Args:
        trace: What :func:`open_trace` returned, or what it would take.
        options: What the user tells about the program.
        sections: Slugs of the sections to make; ``None`` for all.

    Raises:
        UsageError: a section does not exist, or ``trace`` is neither.
        TracevizError: as :func:`open_trace`, and as :func:`traceviz.analyses.run.analyze`.
    """
    if isinstance(trace, str | Path):
        return report_on(trace, sections=sections, options=options)
    if isinstance(trace, list | tuple):
        return report_on(*trace, sections=sections, options=options)
    from traceviz.analyses.run import analyze as analyze_tables
    from traceviz.trace.tables import TraceTables

    if not isinstance(trace, TraceTables):
        raise UsageError(
            f"A trace of type {type(trace).__name__} cannot be analysed.",
            fix="Give a path, a list of paths, or the tables that traceviz.open returned.",
        )
    return analyze_tables(trace, options, sections)


def _size(source: Path) -> int:
    """Bytes of a file, or of the files that lie in a folder; 0 where the system does not say."""
    with suppress(OSError):  # a link that leads nowhere: who reads says so, if it matters
        files = source.iterdir() if source.is_dir() else [source]
        return sum(file.stat().st_size for file in files)
    return 0


def _loader(sections: Collection[str] | None) -> Callable[[], None]:
    """What has polars and the analyses imported: while what is compiled reads, it lets other threads run."""

    def load() -> None:
        from traceviz.analyses.run import load_analyses

        load_analyses(sections)

    return cache(Thread(target=load, name="traceviz-loading", daemon=True).start)


def compare(
    *paths: str | Path,
    groups: Mapping[str, Sequence[str | Path]] | None = None,
    by: Sequence[str] = (),
    base: str = "",
    options: CompareOptions | None = None,
    analysis: AnalysisOptions | None = None,
    selection: Selection | None = None,
    reader: str | None = None,
    run: str | None = None,
    max_size: int | None = None,
    max_memory: int | None = None,
    cache: bool = True,
    progress: Progress = silent,
) -> Comparison:
    """Compare traces, run folders and saved JSON reports of any formats: each goes through :func:`report_on` in turn.

    >>> comparison = compare("slow.pt.trace.json.gz", "repaired.pt.trace.json.gz")
    >>> comparison.shown.judgement.speedup
    2.787...
    >>> print(to_text(comparison))

    Args:
        paths: One side each, the base first.
        groups: Sides of several runs, by name.
        by: Tags of runs. With them ``paths`` are runs, or folders of runs, and every combination of values is a side.
        base: Name of the side to compare the others with; its values, where ``by`` is given.
        options: How to compare.
        analysis: What the user says about the programs, as for :func:`analyze`.
        selection: Which part of every trace is compared.
        reader: As for :func:`open_trace`.
        run: As for :func:`open_trace`.
        max_size: As for :func:`open_trace`.
        max_memory: As for :func:`open_trace`.
        cache: As for :func:`open_trace`.
        progress: Receives progress.

    Raises:
        UsageError: there are fewer than two sides, or no side has the name of the base.
        TracevizError: a side cannot be read; the message names it.
    """
    from traceviz.compare.compare import compare as compare_sides
    from traceviz.compare.sides.align_step_time import timed_alike
    from traceviz.compare.sides.load_sides import Read, Sides, named_sides, tagged_sides
    from traceviz.compare.tables.sections import completed, tables_by

    is_partial = selection is not None and selection != Selection()
    is_special = analysis is not None and analysis != AnalysisOptions()

    def read(path: Path, step_time: StepTime) -> Report:
        gc.collect()  # tables of the previous side hang in cycles, and would stay in memory beside those of this one
        return report_on(
            path,
            options=replace(analysis or AnalysisOptions(), step_time=step_time),
            selection=selection,
            reader=reader,
            run=run,
            max_size=max_size,
            max_memory=max_memory,
            cache=cache,
            progress=_named_progress(path.name, progress),
        )

    sources = [Path(path) for path in paths]
    members = {label: [Path(path) for path in runs] for label, runs in (groups or {}).items()}
    if is_partial or is_special:
        _check_none_is_saved([*sources, *(path for runs in members.values() for path in runs)])
    if isinstance(by, str):
        raise UsageError(f"by={by!r} should be a list of tags.", fix=f"Write by=[{by!r}].")
    by, tables = tables_by(by, options or CompareOptions()), (options or CompareOptions()).tables
    if by and members:
        raise UsageError("Sides are either groups or values of tags.", fix="Leave out the groups, or the tags.")

    def recognise(path: Path) -> None:
        readers_of(trace_files((path,)), reader)

    def sided(analyse: Read) -> Sides:
        if by:
            return tagged_sides(sources, by, base, analyse, recognise, by_size=bool(tables.curve or tables.scaling))
        return named_sides(sources, members, base, analyse, recognise)

    sides, left_out = timed_alike(sided, read)
    with foreign_errors_in_words("The sides cannot be compared."):
        return compare_sides(sides, completed(sides, options or CompareOptions()), by=by, left_out=left_out)


def _named_progress(name: str, progress: Progress) -> Progress:
    def report(stage: str, done: int, total: int | None) -> None:
        progress(f"{name}: {stage}", done, total)

    return report


def _check_none_is_saved(paths: Sequence[Path]) -> None:
    """A saved report fixes which part of its trace was analysed, and how: refuse options that would change that."""
    from traceviz.compare.sides.load_sides import is_saved_report

    for path in paths:
        if is_saved_report(path):
            raise UsageError(
                f"{path} is a saved report: the part of the trace and the options of its analysis are fixed.",
                fix="Name the trace, or save the report again with these options.",
            )


def to_text(
    report: Report | Comparison,
    name: str = "terminal",
    options: RenderOptions | None = None,
    pictures: Pictures | None = None,
) -> str:
    """Text of a report or comparison in the format ``name`` (terminal, json, markdown, csv, html ...).

    Only pages (``html``) draw ``pictures``.
    """
    from traceviz.render.registry import renderer

    if not isinstance(report, Report):
        from traceviz.compare.report.document import document

        report = document(report)
    if name == "html" and pictures is not None:
        from traceviz.render.html.page import page

        return page(report, options or RenderOptions(), pictures)
    return renderer(name).render(report, options or RenderOptions())


def why(report: Report) -> Report:
    """The report reduced to its first sentence, what may take the time, and why one of that leads."""
    from traceviz.render.why import why as reduced

    return reduced(report)


_LARGE = 1 << 24
"""Bytes of files that are read so long that analyses are imported meanwhile."""
_HOMES = {
    "Comparison": "traceviz.compare.compare",
    "document": "traceviz.compare.report.document",
}


def __getattr__(name: str) -> Any:
    """What is defined elsewhere, on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'traceviz.api' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def _provenance(sources: Sequence[Path], readers: Sequence[Reader], *, keep_private: bool) -> dict[str, object]:
    """What the manifest says of the source, or of several sources in a list."""
    described = [_source(path, reader.format) for path, reader in zip(sources, readers, strict=True)]
    facts: dict[str, object] = dict(described[0]) if len(described) == 1 else {"sources": described}
    facts["left_out"] = [] if keep_private else ["command line", "host name", "environment", "captured output"]
    return facts


def _source(path: Path, format_name: str) -> dict[str, str]:
    facts = {"source": path.name, "format": format_name}
    if path.is_file():
        with path.open("rb") as handle:
            facts["source_sha256"] = hashlib.file_digest(handle, "sha256").hexdigest()
    return facts
