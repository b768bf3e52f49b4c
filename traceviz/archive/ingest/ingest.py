"""Adding one trace to an archive: identify it by its content, convert, scrub, analyse, and write it atomically.

This runs in a process or machine that the runner chooses. It receives all its inputs as arguments, and returns little.
"""

from __future__ import annotations

import gc
import hashlib
import json
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from traceviz import scrub
from traceviz.analyses.run import LARGE_ROWS, analyze
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.catalogue.rows import Origin, quarantined_rows, ready_rows, stated_tags
from traceviz.archive.catalogue.segments import stored_rows
from traceviz.archive.sources.discover import fetch
from traceviz.archive.sources.exported_reports import companions, with_report_advice
from traceviz.archive.sources.hashes import Item, Limits, Refused, source_sha256
from traceviz.archive.sources.names import (
    below_users,
    folder_below_users,
    mark_of_user,
    number_placeholders,
    plain_path,
    users_of,
    without_user,
)
from traceviz.archive.sources.packed.index import code_of
from traceviz.archive.storage.addresses import printable
from traceviz.archive.storage.layout import REPORT, ROWS, trace_parts
from traceviz.archive.storage.spool import SPOOL, NoRoomError
from traceviz.archive.storage.store import LAST, Store
from traceviz.core.errors import (
    DamagedTraceError,
    MissingToolError,
    OutOfMemoryError,
    OutputError,
    TracevizError,
    UnknownFormatError,
    UnreadableError,
    UsageError,
)
from traceviz.core.sanitize import one_line
from traceviz.parsers.base import Reader, ReadRequest
from traceviz.parsers.registry import READERS, identify
from traceviz.parsers.sources import source_facts
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.render import json as saved
from traceviz.report import Report
from traceviz.scrub.secrets.properties import is_private
from traceviz.trace.tables import TraceTables, load, write_tables
from traceviz.untrusted.errors import NO_ROOM, defect, in_our_words
from traceviz.untrusted.json_documents import read_document
from traceviz.version import __version__

Result = TypeVar("Result")


def report_on(tables: TraceTables) -> Report:
    """Return the report of a trace.

    Raises:
        DamagedTraceError, OutOfMemoryError: see :func:`traceviz.analyses.run.analyze`.
    """
    return within_query(lambda: analyze(tables)) if _is_small(tables) else analyze(tables)


def _is_small(tables: TraceTables) -> bool:
    """Return whether the trace is small enough to be analysed in one query: all tables are in memory, with few rows."""
    if any(isinstance(source, Path) for source in tables.sources.values()):
        return False
    return sum(tables.rows(name) for name in tables) < LARGE_ROWS


def within_query(function: Callable[[], Result]) -> Result:
    """Call ``function`` within a query of polars, and return or raise its result. It must not wait for threads."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def call(frame: pl.DataFrame) -> pl.DataFrame:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 (polars would wrap it; it is raised below)
            errors.append(error)
        return frame

    pl.LazyFrame({"row": [0]}).map_batches(call).collect()
    if errors:
        raise errors[0]
    return results[0]


ID_DIGITS = 16
"""Number of hexadecimal digits in a trace id, taken from the SHA-256 of the source."""
LARGE = 16 << 20
"""Size in bytes above which memory of a source is freed at once, and files of tables are not read as a whole."""
MOST_HELD = 64 << 20
"""Maximum memory of tables, in bytes. Larger tables are kept on disk until they are scrubbed."""
LONGEST_ERROR = 1000
"""Maximum length of an error in the catalogue, in characters."""

Outcome = Literal["added", "known", "quarantined", "known-quarantined", "refused"]

_UNREADABLE = (
    *(TracevizError, OSError, MemoryError, RecursionError, EOFError, pa.ArrowException, pl.exceptions.PolarsError),
    *(ValueError, TypeError, LookupError, ArithmeticError, AssertionError, AttributeError),
)
"""Errors that a damaged or malicious trace may cause in a reader or an analysis. They affect this trace only."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Options for adding traces.

    Args:
        keep_private: Store private data, too.
        tags: Tags of every added trace.
        job: Job whose ranks the traces are.
        now_ns: Time of adding, Unix time in nanoseconds.
        quarantined: Ids of traces that this version could not read. They are not retried.
        anew: If true, convert and replace existing traces.
        limits: Bounds on the content of archive files.
        max_size: Limit on the unpacked size of JSON, in bytes; ``None`` for a plausible default.
        max_memory: Memory limit of a worker while it reads, in bytes; ``None`` for all free memory.
    """

    keep_private: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    job: str | None = None
    now_ns: int = 0
    quarantined: frozenset[str] = frozenset()
    anew: bool = False
    limits: Limits = field(default_factory=Limits)
    max_size: int | None = None
    max_memory: int | None = None


@dataclass(frozen=True, slots=True)
class Ingested:
    """The result of an item.

    Args:
        outcome: ``added``; ``known``: its folder existed; ``quarantined``; ``known-quarantined``: not retried;
            ``refused``: its content could not be read.
        rows: Its catalogue rows.
        refused: The refusal with its reason.
        removed: Kinds and counts of private data in it.
    """

    outcome: Outcome
    rows: pa.Table = field(default_factory=CATALOGUE.empty_table)
    refused: Refused | None = None
    removed: Mapping[str, int] = field(default_factory=dict)


def ingest(item: Item, store: Store, options: IngestOptions) -> Ingested:
    """Add one trace.

    A trace that cannot be read is quarantined with its error. Tables do not depend on the time or machine.

    Raises:
        OutputError: the archive, or the folder for temporary files, cannot be written.
    """
    with _fetch(item, options) as fetched:
        if isinstance(fetched, Ingested):
            return fetched
        local, origin, room = fetched
        if origin.trace_id in options.quarantined:
            added_meanwhile = _find_added_meanwhile(local, origin, store)
            return added_meanwhile or Ingested("known-quarantined", quarantined_rows(origin, ""))
        try:
            return _add(local, origin, room, store, options)
        except _UNREADABLE as error:
            _raise_if_full(error, store.called())
            # A program that can read it (with nsys or more memory) may have added it.
            added_meanwhile = _find_added_meanwhile(local, origin, store)
            return added_meanwhile or Ingested(
                "quarantined", _make_quarantined_rows(item, local, origin, options, error_text(error))
            )
        finally:
            if (origin.size or 0) > LARGE:
                gc.collect()  # tables are in reference cycles, and would stay in memory next to those of the next trace


def quarantine(failed: tuple[Item, str], options: IngestOptions) -> Ingested:
    """Quarantine an item whose worker died, without reading it again.

    Raises:
        OutputError: there is no space for temporary files.
    """
    item, error = failed
    with _fetch(item, options) as fetched:
        if isinstance(fetched, Ingested):
            return fetched
        local, origin, _ = fetched
        return Ingested("quarantined", _make_quarantined_rows(item, local, origin, options, error))


@contextmanager
def _fetch(item: Item, options: IngestOptions) -> Iterator[tuple[Path, Origin, Path] | Ingested]:
    """Yield the local copy of an item, its origin, and a folder for private data; or yield the refusal."""
    with SPOOL.room() as into:
        try:
            local = fetch(item, into, options.limits)
            sha256, size = source_sha256(local)
        except (TracevizError, OSError, ValueError, EOFError) as error:
            _raise_if_full(error)
            reason = with_report_advice(error_text(error), item, LONGEST_ERROR)
            yield Ingested("refused", refused=Refused(item.name, code_of(error), reason))
            return
        plain = plain_path(local, into, map(Path, companions(str(local))))
        yield plain, _make_origin(item, plain, sha256, size, options), into


def _make_origin(item: Item, local: Path, sha256: str, size: int, options: IngestOptions) -> Origin:
    users = frozenset[str]() if options.keep_private else users_of(item)
    unowned = number_placeholders(local.name, without_user(local.name, users))
    return Origin(
        trace_id=sha256[:ID_DIGITS],
        sha256=sha256,
        size=size,
        name=below_users(_name_with_folder(item), users),
        source=item.name if options.keep_private else unowned,
        now_ns=options.now_ns,
        version=__version__,
        tags=options.tags,
        job=options.job,
        found_job=folder_below_users(item.job, users),
        owner=mark_of_user(f"{item.job}/" if item.job else _name_with_folder(item), users),
        private=options.keep_private,
    )


def _name_with_folder(item: Item) -> str:
    """Return the name of an item. A single file also gets its folder's name, which distinguishes ranks of jobs."""
    if item.kind == "member" or "/" in item.name or "://" in item.url:  # a URL may hold a signature
        return item.name
    folder = PurePosixPath(item.url).parent.name
    return printable(f"{folder}/{item.name}") if folder else item.name


def _add(local: Path, origin: Origin, room: Path, store: Store, options: IngestOptions) -> Ingested:
    """Convert and write a trace, unless it exists or another program writes it concurrently."""
    reader = identify(local)
    format_name = _name_format(reader, local)
    if not options.anew and (known := _find_stored(store, format_name, origin.trace_id)) is not None:
        return known
    faster: list[Ingested] = []

    def is_there() -> bool:
        if options.anew:
            return False
        faster.extend(
            ingested for ingested in [_find_stored(store, format_name, origin.trace_id)] if ingested is not None
        )
        return bool(faster)

    parts = trace_parts(format_name, origin.trace_id)
    raw = room / f"tables-{secrets.token_hex(6)}"  # next to the copy, under a unique name
    with store.new_folder(*parts, unless=is_there) as folder:
        converted = _convert(reader, local, origin, (folder, raw), options)
        rows = _write_summary(folder, format_name, converted)
    return faster[0] if faster else Ingested("added", rows, removed=converted.removed)


def _find_stored(store: Store, format_name: str, trace_id: str) -> Ingested | None:
    """Return a trace whose folder is complete; ``None`` if it is damaged or being removed."""
    rows = stored_rows(store, format_name, trace_id)
    return None if rows is None else Ingested("known", rows)


def _find_added_meanwhile(local: Path, origin: Origin, store: Store) -> Ingested | None:
    """Return a trace that cannot be read here, but that another program has added."""
    try:
        return _find_stored(store, _name_format(identify(local), local), origin.trace_id)
    except OutputError:
        raise
    except _UNREADABLE:
        return None


def _name_format(reader: Reader, local: Path) -> str:
    """Return the format of a source, independent of its kind of file; for a traceviz folder that of its source."""
    if reader.format != TracevizFolderReader.format:
        return _format_family(reader.format)
    stated = str(load(local).run_facts().get("format"))
    # The folder may state any text.
    return stated if stated in map(_format_family, READERS.names()) else reader.format


def _format_family(format_name: str) -> str:
    """Return the format of a trace for the reader of its file: nsys and nvprof write several kinds of files."""
    return next((name for name in ("nsys", "nvprof") if format_name.startswith(f"{name}-")), format_name)


@dataclass(frozen=True, slots=True)
class _Converted:
    """A trace with written tables, its origin without private parts, and its tags."""

    tables: TraceTables
    origin: Origin
    tags: Mapping[str, str]
    removed: Mapping[str, int]


def _convert(
    reader: Reader, local: Path, origin: Origin, into: tuple[Path, Path], options: IngestOptions
) -> _Converted:
    """Write the tables of a trace into the first folder; use the second one for private data only."""
    folder, raw = into
    source = local.name if options.keep_private else origin.source
    facts = {"source": source, "format": reader.format, "source_sha256": origin.sha256}
    read_options = ReadRequest(None, keep_private=True, max_size=options.max_size, max_memory=options.max_memory)
    tables = _hold_tables(reader.tables(local, read_options), folder if options.keep_private else raw, facts)
    stated = stated_tags(tables)
    if options.keep_private:
        if not _is_on_disk(tables):
            write_tables(folder, _name_tables(tables), facts)
        return _Converted(tables, origin, stated, {})
    known = (*scrub.secrets_in(local), *scrub.secrets_of_tables(tables))  # only these contain the host name of a report
    try:
        clean, removed = _scrub(tables, facts, raw, folder, known)
    except OutputError as error:  # it affects this trace only: the others are added
        raise DamagedTraceError(error.what, error.why, "Add it with --keep-private, where that is no harm.") from error
    redactor = scrub.Redactor.of(known)
    source = number_placeholders(origin.source, _clean(read_document(folder / LAST)["source"], redactor))
    tags = {key: value for key, value in stated.items() if not is_private(key)}
    tags = {_clean(key, redactor): _clean(value, redactor) for key, value in tags.items()}
    return _Converted(clean, replace(_clean_origin(origin, redactor), source=source), tags, +removed)


def _hold_tables(tables: Iterator[tuple[str, pa.Table]], folder: Path, facts: Mapping[str, Any]) -> TraceTables:
    """Return the tables in memory. If they are too large, write them to ``folder`` one at a time."""
    held: list[tuple[str, pa.Table]] = []
    size = 0
    for name, table in tables:
        held.append((name, table))
        size += table.nbytes
        del table
        if size > MOST_HELD:
            folder.mkdir(exist_ok=True)
            write_tables(folder, chain(_release_each(held), tables), facts)
            return load(folder)
    for _, table in held:
        table.validate(full=True)  # as for tables from files
    return TraceTables(dict(held))


def _release_each(held: list[tuple[str, pa.Table]]) -> Iterator[tuple[str, pa.Table]]:
    while held:
        yield held.pop(0)


def _is_on_disk(tables: TraceTables) -> bool:
    return any(isinstance(source, Path) for source in tables.sources.values())


def _name_tables(tables: TraceTables) -> Iterator[tuple[str, pa.Table]]:
    return ((name, tables.arrow(name)) for name in tables)


def _scrub(
    tables: TraceTables, facts: Mapping[str, Any], raw: Path, folder: Path, known: Iterable[scrub.Secret]
) -> tuple[TraceTables, Counter[str]]:
    """Write the scrubbed tables into ``folder``; return them with the kinds and counts of removed data."""
    if _is_on_disk(tables):
        removed, _, _ = scrub.scrub_folder(raw, folder, known)
        return load(folder), removed
    clean, (removed, _, _) = scrub.scrub_tables(tables, facts, folder, known)
    return clean, removed


def _clean_origin(origin: Origin, redactor: scrub.Redactor) -> Origin:
    """Return the origin without private data. Tags and job given by the user are kept."""
    name, source, job = (_clean(text, redactor) for text in (origin.name, origin.source, origin.found_job))
    return replace(origin, name=name, source=number_placeholders(origin.source, source), found_job=job)


def _clean(text: str, redactor: scrub.Redactor) -> str:
    return redactor.clean_message(text.encode(errors="replace")).decode("utf-8", "replace")


def _write_summary(folder: Path, format_name: str, converted: _Converted) -> pa.Table:
    """Write a trace's report, its catalogue rows, and the digests of all its files; return the rows."""
    tables = _read_small(converted.tables)
    bare_report = report_on(tables)
    report = replace(bare_report, run=(*source_facts((Path(converted.origin.source),)), *bare_report.run))
    (folder / REPORT).write_text(saved.dumps(report), encoding="utf-8")
    rows = ready_rows(converted.origin, tables, report, format_name, converted.tags)
    # For few rows, dictionaries and statistics take more room than the values, and zstd has a set-up cost per column.
    pq.write_table(rows, folder / ROWS, compression="snappy", use_dictionary=False, write_statistics=False)
    origin = converted.origin
    manifest: dict[str, Any] = read_document(folder / LAST)
    files = sorted(path for path in folder.iterdir() if path.name != LAST)
    sums = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in files}
    manifest |= {"trace_id": origin.trace_id, "source": origin.source, "source_sha256": origin.sha256, "files": sums}
    (folder / LAST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return rows


def _read_small(tables: TraceTables) -> TraceTables:
    """Return the tables, in memory if they are small: an analysis reads some of them sixty times."""
    files = [source for source in tables.sources.values() if isinstance(source, Path)]
    if sum(path.stat().st_size for path in files) > LARGE:
        return tables
    return TraceTables({name: tables.arrow(name) for name in tables})


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make_quarantined_rows(item: Item, local: Path, origin: Origin, options: IngestOptions, error: str) -> pa.Table:
    """Return the row of a trace that cannot be read. The error does not name the folder of the copy."""
    local_error = error.replace(one_line(str(local)), local.name).replace(one_line(str(local.parent)), "")
    message = with_report_advice(printable(" ".join(local_error.split())), item, LONGEST_ERROR)
    if options.keep_private:
        return quarantined_rows(origin, message)
    try:
        known = scrub.secrets_in(local)
    except (TracevizError, OSError):  # its secrets are unknown
        known = ()
    redactor = scrub.Redactor.of(known)
    return quarantined_rows(_clean_origin(origin, redactor), _clean(message, redactor))


_CODES: tuple[tuple[type[TracevizError], str], ...] = (
    (NoRoomError, "too-large"),
    (UnknownFormatError, "unknown-format"),
    (MissingToolError, "missing-tool"),
    (DamagedTraceError, "damaged"),
    (UsageError, "ambiguous"),
    (OutOfMemoryError, "out-of-memory"),
    (UnreadableError, "unreadable"),
)


def error_text(error: BaseException) -> str:
    """Return an error in the catalogue's form: ``code: what happened``."""
    ours = error if isinstance(error, TracevizError) else in_our_words(error, "It cannot be read.")
    if ours is None:
        return one_line(f"defect: {defect(error)}: {error}")
    return f"{next((code for kind, code in _CODES if isinstance(ours, kind)), 'damaged')}: {ours}"


def _raise_if_full(error: BaseException, archive: str = "") -> None:
    """Raise if the trace did not cause the error: the disk is full, or the archive cannot be reached.

    Args:
        error: The error that was raised during the add.
        archive: Display name of the archive, if it was being written.

    Raises:
        OutputError: see above.
    """
    if isinstance(error, OutputError):
        raise error
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        where = " or in ".join(filter(None, (archive, tempfile.gettempdir())))
        raise OutputError(
            "There is no room to write a trace.",
            f"{error.strerror or error}, in {where}.",
            "Make room there, and add again: what is in the archive stays.",
        ) from error
