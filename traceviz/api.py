"""From file to report: the functions of the command line, for notebooks and programs.

>>> report = traceviz.analyze("trace.nsys-rep")
>>> print(traceviz.to_text(report, "terminal"))
>>> tables = traceviz.open("trace.nsys-rep")
>>> tables.kernels.group_by("name").agg(pl.col("dur_ns").sum()).collect()
>>> report = traceviz.analyze(tables)

Functions import slow modules when they need them, after the checks, so that a missing file is reported at once.
"""

from __future__ import annotations

import gc
import hashlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from traceviz.analyses.options import AnalysisOptions, StepTime
from traceviz.compare.options import CompareOptions, Tables
from traceviz.core.errors import UsageError
from traceviz.core.files import check_folder_free, check_not_source, new_folder
from traceviz.parsers.base import Progress, Reader, ReadOptions, ReadRequest, nothing, prefixed
from traceviz.parsers.sources import describe_traces, read_all, readers_of, source_facts, trace_files
from traceviz.render.options import RenderOptions
from traceviz.report import Report
from traceviz.trace.selection import Selection
from traceviz.trace.trace_folder import is_trace_folder
from traceviz.untrusted.errors import foreign_errors_in_words

if TYPE_CHECKING:
    from traceviz.compare.compare import Comparison
    from traceviz.compare.report.document import document
    from traceviz.report.pictures.values import Flame, Pictures
    from traceviz.trace.tables import TraceTables

__all__ = [
    "AnalysisOptions",
    "CompareOptions",
    "Comparison",
    "ReadOptions",
    "RenderOptions",
    "Selection",
    "Tables",
    "analyze",
    "compare",
    "convert",
    "document",
    "every_section",
    "flame_differences",
    "open_trace",
    "pictured",
    "report_on",
    "to_text",
    "what_if",
    "why",
]


def open_trace(
    *paths: str | Path,
    tables: Collection[str] | None = None,
    read: ReadOptions | None = None,
    **old: Unpack[_OldKeywords],
) -> TraceTables:
    """Read a trace of any known format, or the traces of several ranks of one job as one.

    Args:
        paths: Trace files, or folders that hold one. Several are put on one clock, and each rank keeps its number
            (see :func:`traceviz.parsers.ranks.merge.combine`).
        tables: Tables to read; ``None`` for all.
        read: Options for reading.
        old: Fields of ``read`` as keywords, which are deprecated.

    Raises:
        UnknownFormatError: no reader, or more than one, recognises a file.
        UsageError: there is no such reader, or no such run; a trace is named twice, or two are of the same rank.
        MissingToolError: a program that decodes the format is missing or too old.
        DamagedTraceError: a file breaks the rules of its format.
        UnreadableError: the system does not let a file be read.
        OutOfMemoryError: it needs more memory than is available.
    """
    read = _read_options(read, old)
    files = trace_files(paths)
    readers = readers_of(files, read.reader)
    from traceviz.trace.spill import collected, spill_beyond

    names = None if tables is None else frozenset(tables)
    request = ReadRequest(names, spill=spill_beyond(read.max_memory), **_fields(read))
    with foreign_errors_in_words(f"{describe_traces(files)} cannot be read."):
        return collected(read_all(files, readers, request), request.spill)


def convert(
    paths: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    force: bool = False,
    read: ReadOptions | None = None,
    **old: Unpack[_OldKeywords],
) -> Path:
    """Write a trace, or those of several ranks, as one traceviz folder of Parquet tables.

    Conversion of a single trace keeps one table at a time in memory.

    Raises:
        OutputExistsError: ``folder`` exists, and ``force`` is false or it is not a traceviz folder.
        OutputError: it cannot be written.
        TracevizError: as :func:`open_trace`.
    """
    read = _read_options(read, old)
    target = Path(folder)
    sources = trace_files((paths,) if isinstance(paths, str | Path) else paths)
    for source in sources:
        check_not_source(source, target)
    check_folder_free(target, force=force, replaceable=is_trace_folder)
    readers = readers_of(sources, read.reader)
    from traceviz.trace.tables import write_tables

    parts = read_all(sources, readers, ReadRequest(**_fields(read)))
    with (
        foreign_errors_in_words(f"{describe_traces(sources)} cannot be converted."),
        new_folder(target, force=force, replaceable=is_trace_folder) as temporary,
    ):
        write_tables(temporary, parts, _provenance(sources, readers, keep_private=read.keep_private))
    return target


def report_on(
    *paths: str | Path,
    sections: Collection[str] | None = None,
    options: AnalysisOptions | None = None,
    selection: Selection | None = None,
    read: ReadOptions | None = None,
    **old: Unpack[_OldKeywords],
) -> Report:
    """Read traces and analyse them: :func:`open_trace`, a :class:`Selection`, :func:`analyze`."""
    read = _read_options(read, old)
    sources = trace_files(paths)
    tables = _part(sources, read, sections, selection)
    from traceviz.analyses.run import analyze

    report = analyze(tables, options, sections)
    return replace(report, run=(*source_facts(sources), *report.run))


def pictured(
    *paths: str | Path,
    events: int | None = None,
    sections: Collection[str] | None = None,
    options: AnalysisOptions | None = None,
    selection: Selection | None = None,
    read: ReadOptions | None = None,
    **old: Unpack[_OldKeywords],
) -> tuple[Report, Pictures]:
    """Return the report of :func:`report_on` and its pictures on a page: timeline, flame graphs, places of findings.

    >>> report, pictures = pictured("trace.nsys-rep")
    >>> to_text(report, "html", pictures=pictures)

    Args:
        paths: As for :func:`report_on`.
        events: Most events of the timeline. With more events, only some time intervals show them all. ``None`` for as
            many as fit into a page of 8 MB, 0 for no timeline.
        sections: Sections of the report; they do not change the pictures.
        options: As for :func:`report_on`.
        selection: As for :func:`report_on`; times of pictures are those of the whole trace.
        read: Options for reading.
        old: Fields of ``read`` as keywords, which are deprecated.
    """
    read = _read_options(read, old)
    sources = trace_files(paths)
    tables = _part(sources, read, None, selection)
    from traceviz.analyses.run import analyze_view, view
    from traceviz.pictures.flame.flames import flames
    from traceviz.pictures.timeline.places import timeline_and_places
    from traceviz.report.pictures.values import Pictures

    trace = view(tables, options)
    report = analyze_view(trace, sections)
    read.progress("drawing", 0, None)
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
    read: ReadOptions | None = None,
    **old: Unpack[_OldKeywords],
) -> tuple[Flame, ...]:
    """Return flame graphs of two traces as differences, per step if both have steps: for the page of a comparison.

    The traces are read one after the other, so that the tables of one at a time are in memory.

    >>> pictures = Pictures(flames=flame_differences("slow.nsys-rep", "repaired.nsys-rep"))
    >>> to_text(compare("slow.nsys-rep", "repaired.nsys-rep"), "html", pictures=pictures)

    Args:
        base: The trace to compare with, or a folder that holds one.
        new: The other one.
        options: As for :func:`report_on`.
        selection: As for :func:`report_on`.
        read: Options for reading.
        old: Fields of ``read`` as keywords, which are deprecated.
    """
    asked = _read_options(read, old)

    def drawn(path: str | Path) -> tuple[Flame, ...]:
        from traceviz.analyses.run import view
        from traceviz.pictures.flame.difference import FINE
        from traceviz.pictures.flame.flames import flames

        gc.collect()  # tables of the other side are in reference cycles
        sources = trace_files((path,))
        tables = _part(sources, _with_name(asked, Path(path).name), None, selection)
        with foreign_errors_in_words(f"{describe_traces(sources)} cannot be drawn."):
            return flames(view(tables, options), FINE)

    before, after = drawn(base), drawn(new)
    from traceviz.pictures.flame.difference import differences

    return differences(before, after)


class _OldKeywords(TypedDict, total=False):
    """Fields of :class:`ReadOptions` as keywords of each function, from before ``read`` existed."""

    reader: str | None
    run: str | None
    max_size: int | None
    max_memory: int | None
    cache: bool
    keep_private: bool
    progress: Progress


def _read_options(read: ReadOptions | None, old: _OldKeywords) -> ReadOptions:
    """Return ``read`` with the fields that a caller gave as keywords.

    Raises:
        TypeError: a keyword is not a field of :class:`ReadOptions`.
    """
    if not old:
        return read or ReadOptions()
    if unknown := old.keys() - _OldKeywords.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    given = ", ".join(f"{name}=..." for name in old)
    # Level 3: the caller of the public function.
    warnings.warn(f"Give {given} as read=traceviz.ReadOptions({given}).", DeprecationWarning, stacklevel=3)
    return replace(read or ReadOptions(), **old)


def _fields(read: ReadOptions) -> dict[str, Any]:
    """Return the fields of ``read``, for a :class:`ReadRequest`."""
    return {field.name: getattr(read, field.name) for field in fields(ReadOptions)}


def _part(
    sources: Sequence[Path], read: ReadOptions, sections: Collection[str] | None, selection: Selection | None
) -> TraceTables:
    """Read what ``sections`` need of the selected part of a trace."""
    readers = readers_of(sources, read.reader)
    is_large = sum(map(_size, sources)) >= _LARGE
    if is_large and len(sources) == 1 and read.max_memory is None:
        readers = [readers[0].reading_ahead(sources[0])]
    from traceviz.analyses.registry import columns_for, properties_for, tables_for
    from traceviz.trace.spill import collected, spill_beyond

    request = ReadRequest(
        tables_for(sections),
        columns_for(sections),
        properties_for(sections),
        window=selection.window if selection else None,
        spill=spill_beyond(read.max_memory),
        begun=_loader(sections) if is_large else nothing,
        **_fields(read),
    )
    with foreign_errors_in_words(f"{describe_traces(sources)} cannot be read."):
        tables = collected(read_all(sources, readers, request), request.spill)
        if selection and not selection.is_everything:
            from traceviz.trace.slicing import select

            return select(tables, selection)
        return tables


def analyze(
    trace: TraceTables | str | Path | Sequence[str | Path],
    options: AnalysisOptions | None = None,
    sections: Collection[str] | None = None,
    *,
    read: ReadOptions | None = None,
) -> Report:
    """Analyse a trace and return its report: verdict, findings, and sections with tables.

    >>> report = traceviz.analyze("trace.nsys-rep")
    >>> report.verdict.sentence
    >>> report.rows("kernels")[0]["name"]
    >>> traceviz.analyze(["rank0.json.gz", "rank1.json.gz"], sections=["communication"])

    Of files, only the parts that the sections need are read. To analyse one device, one rank or an interval, use
    :func:`report_on`.

    Args:
        trace: A file or folder that ``traceviz report`` reads; a list of those of one job's ranks; or the tables that
            :func:`traceviz.open` returned.
        options: Facts about the program that the trace does not state, such as the ranges that are steps.
        sections: Slugs of the sections to make, such as ``kernels``; ``None`` for all.
        read: Options for reading, if ``trace`` is a path or a list of paths.

    Returns:
        The report. It shows itself in notebooks; :func:`to_text` renders it in any format.

    Raises:
        UsageError: a section does not exist; ``trace`` has another type; or ``read`` is given for tables.
        UnknownFormatError: there is no such file, or no reader recognises it.
        TracevizError: the trace is damaged, cannot be read, or needs more memory than is available.
    """
    if isinstance(trace, str | Path):
        return report_on(trace, sections=sections, options=options, read=read)
    if isinstance(trace, list | tuple):
        return report_on(*trace, sections=sections, options=options, read=read)
    from traceviz.analyses.run import analyze as analyze_tables
    from traceviz.trace.tables import TraceTables

    if not isinstance(trace, TraceTables):
        raise UsageError(
            f"A trace of type {type(trace).__name__} cannot be analysed.",
            fix="Give a path, a list of paths, or the tables that traceviz.open returned.",
        )
    if read is not None:
        raise UsageError("read=... is for a path, and this trace has been read.", fix="Give it to traceviz.open.")
    return analyze_tables(trace, options, sections)


def _size(source: Path) -> int:
    """Return the bytes of a file, or of the files in a folder; 0 if the system does not report it."""
    with suppress(OSError):  # a link that leads nowhere: the reader reports it, if it matters
        files = source.iterdir() if source.is_dir() else [source]
        return sum(file.stat().st_size for file in files)
    return 0


def _loader(sections: Collection[str] | None) -> Callable[[], None]:
    """Return a function that imports polars and the analyses in a thread, which runs while compiled code reads."""

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
    read: ReadOptions | None = None,
    **old: Unpack[_OldKeywords],
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
        base: Name of the side to compare the others with; with ``by``, its values.
        options: Options of the comparison.
        analysis: Facts about the programs from the user, as for :func:`analyze`.
        selection: Part of every trace to compare.
        read: Options for reading.
        old: Fields of ``read`` as keywords, which are deprecated.

    Raises:
        UsageError: there are fewer than two sides, or no side has the name of the base.
        TracevizError: a side cannot be read; the message names it.
    """
    asked = _read_options(read, old)
    from traceviz.compare.compare import compare as compare_sides
    from traceviz.compare.sides.load_sides import (
        Read,
        Sides,
        align_step_time,
        is_saved_report,
        named_sides,
        tagged_sides,
    )
    from traceviz.compare.tables.sections import complete_options, tables_by

    options, analysis = options or CompareOptions(), analysis or AnalysisOptions()
    sources = [Path(path) for path in paths]
    members = {label: [Path(path) for path in runs] for label, runs in (groups or {}).items()}
    if analysis != AnalysisOptions() or selection not in {None, Selection()}:
        for path in filter(is_saved_report, (*sources, *(path for runs in members.values() for path in runs))):
            raise UsageError(
                f"{path} is a saved report: the part of the trace and the options of its analysis are fixed.",
                fix="Name the trace, or save the report again with these options.",
            )
    if isinstance(by, str):
        raise UsageError(f"by={by!r} should be a list of tags.", fix=f"Write by=[{by!r}].")
    by, tables = tables_by(by, options), options.tables
    if by and members:
        raise UsageError("Sides are either groups or values of tags.", fix="Leave out the groups, or the tags.")

    def recognise(path: Path) -> None:
        readers_of(trace_files((path,)), asked.reader)

    def analyse(path: Path, step_time: StepTime) -> Report:
        gc.collect()  # tables of the previous side are in reference cycles, and would stay in memory
        timed = replace(analysis, step_time=step_time)
        return report_on(path, options=timed, selection=selection, read=_with_name(asked, path.name))

    def sided(analyse: Read) -> Sides:
        if by:
            return tagged_sides(sources, by, base, analyse, recognise, by_size=bool(tables.curve or tables.scaling))
        return named_sides(sources, members, base, analyse, recognise)

    sides, left_out = align_step_time(sided, analyse)
    with foreign_errors_in_words("The sides cannot be compared."):
        return compare_sides(sides, complete_options(sides, options), by=by, left_out=left_out)


def _with_name(read: ReadOptions, name: str) -> ReadOptions:
    """Return ``read`` with ``name`` before the stages of its progress."""
    return replace(read, progress=prefixed(read.progress, name))


def to_text(
    report: Report | Comparison,
    name: str = "terminal",
    options: RenderOptions | None = None,
    pictures: Pictures | None = None,
) -> str:
    """Render a report or comparison as text in the format ``name`` (terminal, json, markdown, csv, html ...).

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
    """Return the report reduced to its headline, the candidate causes, and why the first of them leads."""
    from traceviz.render.why import why as reduced

    return reduced(report)


def every_section() -> tuple[str, ...]:
    """Return the names of all sections, also of those that a report has on request only (``what_if``)."""
    from traceviz.analyses.registry import ANALYSES

    return tuple(ANALYSES.names())


def what_if(report: Report) -> Report:
    """Return the report reduced to its headline and to the steps without each of their largest causes."""
    from traceviz.render.why import what_if as reduced

    return reduced(report)


_LARGE = 1 << 24
"""Bytes of files from which analyses are imported during the read."""
_HOMES = {
    "Comparison": "traceviz.compare.compare",
    "document": "traceviz.compare.report.document",
}


def __getattr__(name: str) -> Any:
    """Import names that are defined elsewhere, on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'traceviz.api' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def _provenance(sources: Sequence[Path], readers: Sequence[Reader], *, keep_private: bool) -> dict[str, object]:
    """Return the manifest's facts about the source, or about several sources in a list."""
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
