"""Traces in a run folder: their paths, their collectors, and their tables.

The manifest lists them if the run ended normally. Otherwise, everything under ``raw/`` that a reader knows is taken.
One recording may exist in several forms, ``report.nsys-rep`` next to its export. The form that is fastest to read is
taken, and the next one if that is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError, MissingToolError, TracevizError, UnknownFormatError, UnreadableError
from traceviz.core.sanitize import without_paths
from traceviz.parsers.base import Reader, ReadRequest, certain_reader, prefixed
from traceviz.parsers.ranks.names import rank_in_name
from traceviz.parsers.run.layout import MOST_FILES, RAW
from traceviz.parsers.run.manifest import RunManifest
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.untrusted.json_documents import read_object

PREFERENCE = ("nsys-parquet", "nsys-sqlite", "nsys-rep", "nsys-qdstrm", "xplane", "tf-trace-json", "kineto")
"""Formats in which one recording may exist several times, best first; others count as the best."""

_FORM = re.compile(
    r"(?:\.xplane\.pb|(?:\.pt)?\.trace\.json|\.json|\.sqlite|\.nsys-rep|\.qdrep|\.qdstrm|[._](?:parquet|pqt)(?:dir)?)"
    r"(?:\.gz)?$"
)
_CHOOSING = ("kineto", "tf-trace-json", "xplane")
"""Formats whose readers choose one recording of a folder; here all are read, because they may be of different ranks."""
_UNFINISHED = (".tmp", ".part", ".partial", "-wal", "-shm", "-journal")

Readers = tuple[Reader, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One recording of a run.

    Args:
        collector: Name of the collector that made it.
        name: Its path in the run folder.
        tables: Its tables, which are taken out as they are merged.
        pid: Process id of its program, for tables that do not state it.
        rank: Rank of its program, for tables that do not state it.
    """

    collector: str
    name: str
    tables: dict[str, pa.Table]
    pid: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """Origin of a :class:`Source`: its forms, best first, each with its reader."""

    collector: str
    forms: tuple[tuple[Path, Reader], ...]
    pid: int | None
    rank: int | None


def recordings_in(folder: Path, manifest: RunManifest, readers: Readers, notes: Notes) -> tuple[Recording, ...]:
    """Return all recordings of a run, by collector and name; listed sources that no reader knows are noted."""
    listed = {recorder.name: recorder.sources for recorder in manifest.recorders}
    names = sorted({*listed, *(place.name for place in _entries(folder / RAW) if place.is_dir())})
    return tuple(
        recording for name in names for recording in _recordings_of(folder, name, listed.get(name, ()), readers, notes)
    )


def _recordings_of(
    folder: Path, name: str, listed: Iterable[str], readers: Readers, notes: Notes
) -> Iterator[Recording]:
    own = folder / RAW / name
    known: dict[Path, Reader] = {}
    for source in listed:
        path = folder / source
        is_own = ".." not in path.parts and path.is_relative_to(own)  # the collector's folder, or in it
        forms = dict(_forms(path, readers, folder)) if is_own else {}
        if not forms:
            notes.add("source-unreadable", "warning", f"{source} is missing, or no trace that traceviz knows.")
        known |= forms
    grouped: dict[Path, list[tuple[Path, Reader]]] = {}
    for path, reader in (known or dict(_forms(own, readers, folder))).items():
        grouped.setdefault(path.with_name(_FORM.sub("", path.name) or path.name), []).append((path, reader))
    for stem, same in sorted(grouped.items()):
        rank = as_number(rank_in_name(str(stem.relative_to(folder)))) if len(grouped) > 1 else None
        order = {format_: place for place, format_ in enumerate(PREFERENCE)}
        same.sort(key=lambda form: (order.get(form[1].format, -1), form[0].name))
        yield Recording(name, tuple(same), _stated_pid(stem.parent, own), rank)


def _forms(path: Path, readers: Readers, folder: Path) -> Iterator[tuple[Path, Reader]]:
    """Yield ``path`` if a reader knows it, else the paths in it that readers know."""
    pending = [path]
    for _ in range(MOST_FILES):
        if not pending:
            return
        entry = pending.pop()
        try:  # archives from others may hold links that leave the run folder
            if not (entry.exists() and entry.resolve().is_relative_to(folder.resolve())):
                continue
        except (OSError, ValueError, RuntimeError):  # an invalid path, or a loop of links
            continue
        is_folder = entry.is_dir()  # recognise each recording of a folder by itself
        reader = certain_reader([r for r in readers if not (is_folder and r.format in _CHOOSING)], entry)
        if reader is not None:
            yield entry, reader
        elif is_folder:
            pending += reversed(_entries(entry))


def _entries(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if not entry.name.startswith(".") and not entry.name.endswith(_UNFINISHED)]


def _stated_pid(place: Path, own: Path) -> int | None:
    """Return the process id in the ``status.json`` nearest to a recording, up to the collector's folder."""
    while place.is_relative_to(own):
        pids = {
            pid for path in place.glob("status*.json") if (pid := as_number(read_object(path).get("pid"))) is not None
        }
        if pids:
            return pids.pop() if len(pids) == 1 else None
        place = place.parent
    return None


def ranks_of_processes(folder: Path) -> dict[int, int]:
    """Return ranks that a launcher gave to processes of a run, by pid: hooks in them name their folders after these."""
    files = sorted((folder / RAW).glob("*/**/status.json"))[:MOST_FILES]
    stated = ((as_number(read_object(path).get("pid")), as_number(rank_in_name(path.parent.name))) for path in files)
    return {pid: rank for pid, rank in stated if pid is not None and rank is not None}


def as_number(stated: Any) -> int | None:
    """Return a process id or a rank; ``None`` if it can be neither."""
    return stated if isinstance(stated, int) and not isinstance(stated, bool) and 0 <= stated < 1 << 31 else None


# Reading


def read_source(recording: Recording, folder: Path, options: ReadRequest, notes: Notes) -> Source | TracevizError:
    """Read a recording from its best form that can be read; note the unreadable forms.

    Returns:
        The source, or the error of its best form if none can be read.
    """
    first: TracevizError | None = None
    for path, reader in recording.forms:
        name = str(path.relative_to(folder))
        reading = replace(options, run=None, window=None, progress=prefixed(options.progress, recording.collector))
        try:
            tables = dict(reader.tables(path, reading))
        except (DamagedTraceError, MissingToolError, UnknownFormatError, UnreadableError) as error:
            first = first or error
            notes.add("source-unreadable", "warning", f"{name} could not be read: {without_paths(str(error))}")
        else:
            return Source(recording.collector, name, tables, recording.pid, recording.rank)
    assert first is not None, "a recording has at least one form"
    return first


def count_rows(tables: Mapping[str, pa.Table], name: str) -> int:
    """Return the number of rows of table ``name``; 0 if it does not exist."""
    return tables[name].num_rows if name in tables else 0


def is_tracing(source: Source) -> bool:
    """Return whether a source recorded events, rather than samples and summaries only."""
    return bool(tracing_tables(source))


def tracing_tables(source: Source) -> list[str]:
    """Return tables of a source that hold the program's events."""
    names = (name for name in source.tables if name not in _NO_EVENTS and schema.table(name).is_events)
    return [name for name in names if source.tables[name].num_rows]


_NO_EVENTS = ("samples", "stacks", "phases", "metrics", "windows", "overhead")
"""Tables of events that are not the program's, or that cover more of the run than its profilers did."""
