"""The traces that lie in a run folder: which they are, whose, and their tables.

The manifest lists them once the run has ended well. Where it does not, everything under ``raw/`` that a reader knows
is taken. One recording may be there in several forms, ``report.nsys-rep`` beside its export: the one that is read
fastest is taken, and the next one where that is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError, MissingToolError, TracevizError, UnknownFormatError, UnreadableError
from traceviz.core.private_paths import without_paths
from traceviz.parsers.base import Reader, ReadOptions, certain_reader, prefixed
from traceviz.parsers.ranks.names import rank_in_name
from traceviz.parsers.run.layout import MOST_FILES, RAW
from traceviz.parsers.run.manifest import RunManifest
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.untrusted.json_documents import read_object

PREFERENCE = ("nsys-parquet", "nsys-sqlite", "nsys-rep", "nsys-qdstrm", "xplane", "tf-trace-json", "kineto")
"""Formats of which one recording may be there several times, best first; others count as the best."""

_FORM = re.compile(
    r"(?:\.xplane\.pb|(?:\.pt)?\.trace\.json|\.json|\.sqlite|\.nsys-rep|\.qdrep|\.qdstrm|[._](?:parquet|pqt)(?:dir)?)"
    r"(?:\.gz)?$"
)
_CHOOSING = ("kineto", "tf-trace-json", "xplane")
"""Formats whose readers choose one recording of a folder; here all are read, since they may be of different ranks."""
_UNFINISHED = (".tmp", ".part", ".partial", "-wal", "-shm", "-journal")

Readers = tuple[Reader, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One recording of a run.

    Args:
        collector: Name of the collector that made it.
        name: Where it lies in the run folder.
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
    """What a :class:`Source` is read from: its forms, best first, each with the reader that knows it."""

    collector: str
    forms: tuple[tuple[Path, Reader], ...]
    pid: int | None
    rank: int | None


def recordings_in(folder: Path, manifest: RunManifest, readers: Readers, notes: Notes) -> tuple[Recording, ...]:
    """All recordings of a run, by collector and name; a source that is listed and that no reader knows is noted."""
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
        forms = dict(_forms(path, readers, folder)) if _is_below(path, own) else {}
        if not forms:
            notes.add("source-unreadable", "warning", f"{source} is missing, or no trace that traceviz knows.")
        known |= forms
    grouped: dict[Path, list[tuple[Path, Reader]]] = {}
    for path, reader in (known or dict(_forms(own, readers, folder))).items():
        grouped.setdefault(path.with_name(_FORM.sub("", path.name) or path.name), []).append((path, reader))
    for stem, same in sorted(grouped.items()):
        rank = as_number(rank_in_name(str(stem.relative_to(folder)))) if len(grouped) > 1 else None
        yield Recording(name, tuple(sorted(same, key=_preference)), _stated_pid(stem.parent, own), rank)


def _preference(form: tuple[Path, Reader]) -> tuple[int, str]:
    path, reader = form
    return PREFERENCE.index(reader.format) if reader.format in PREFERENCE else -1, path.name


def _is_below(path: Path, own: Path) -> bool:
    """Whether a path in the manifest is the folder of its collector, or lies in it."""
    return ".." not in path.parts and path.is_relative_to(own)


def _stays(path: Path, folder: Path) -> bool:
    """Whether a path exists and does not lead out of the run folder: archives of others may hold links."""
    try:
        return path.exists() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # no path at all, or links in a circle
        return False


def _forms(path: Path, readers: Readers, folder: Path) -> Iterator[tuple[Path, Reader]]:
    """``path`` where a reader knows it, else what readers know in it."""
    pending = [path]
    for _ in range(MOST_FILES):
        if not pending:
            return
        entry = pending.pop()
        if not _stays(entry, folder):
            continue
        is_folder = entry.is_dir()  # of a folder of recordings, each is recognised by itself
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
    """The process id that a ``status.json`` nearest to a recording states, up to the collector's folder."""
    while place.is_relative_to(own):
        pids = {
            pid for path in place.glob("status*.json") if (pid := as_number(stated_in(path).get("pid"))) is not None
        }
        if pids:
            return pids.pop() if len(pids) == 1 else None
        place = place.parent
    return None


def ranks_of_processes(folder: Path) -> dict[int, int]:
    """Ranks that a launcher gave to processes of a run, by pid: the hooks in them name their folders after these."""
    files = sorted((folder / RAW).glob("*/**/status.json"))[:MOST_FILES]
    stated = ((as_number(stated_in(path).get("pid")), as_number(rank_in_name(path.parent.name))) for path in files)
    return {pid: rank for pid, rank in stated if pid is not None and rank is not None}


def stated_in(path: Path) -> dict[str, Any]:
    """What a ``status.json`` of a collector says; nothing where it cannot be read."""
    return read_object(path)


def as_number(stated: Any) -> int | None:
    """A process id or a rank; ``None`` for what can be neither."""
    return stated if isinstance(stated, int) and not isinstance(stated, bool) and 0 <= stated < 1 << 31 else None


# Reading


def read_source(recording: Recording, folder: Path, options: ReadOptions, notes: Notes) -> Source | TracevizError:
    """The tables of a recording, from its best form that can be read; forms that cannot be read are noted.

    Returns:
        The source, or the error of its best form where none can be read.
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
    """Number of rows of table ``name``; 0 where it is not there."""
    return tables[name].num_rows if name in tables else 0


def is_tracing(source: Source) -> bool:
    """Whether a source recorded what happened, rather than samples and summaries only."""
    return bool(tracing_tables(source))


def tracing_tables(source: Source) -> list[str]:
    """Tables of a source that hold what the program did."""
    names = (name for name in source.tables if name not in _NO_EVENTS and schema.table(name).is_events)
    return [name for name in names if source.tables[name].num_rows]


_NO_EVENTS = ("samples", "stacks", "phases", "metrics", "windows", "overhead")
"""Tables of events that are none of the program's, or that cover more of the run than its profilers did."""
