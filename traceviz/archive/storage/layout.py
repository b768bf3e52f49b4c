"""Layout of an archive.

::

    ARCHIVE/archive.json                              marks an archive
            catalogue/*.parquet                       a row for every trace and rank (traceviz.archive.catalogue)
            traces/format=F/trace_id=ID/*.parquet     tables of a trace, as `traceviz convert` writes them
                                        report.json   its report, saved
                                        rows.parquet  its catalogue rows, for rebuilding the catalogue
                                        manifest.json sizes and digests of these files; written last
            packed/NAME/*.parquet                     tables of many traces (traceviz.archive.catalogue.packs)
            work/                                     unfinished files
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from traceviz.archive.storage.store import LAST, WORK, Store
from traceviz.archive.storage.writers import is_of_dead
from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.untrusted.json_documents import JsonError, document_of

MARKER = "archive.json"
TRACES = "traces"
REPORT = "report.json"
ROWS = "rows.parquet"
KIND = "traceviz.archive"
VERSION = 1
OWN_FILES = frozenset({ROWS, REPORT, LAST})
"""Files of a trace that are not tables."""

_FORMAT, _ID = "format=", "trace_id="


def create(store: Store) -> None:
    """Create an archive, or check that there is one.

    Raises:
        UsageError: the location holds something else, or an archive of a newer traceviz.
        OutputError: the location cannot be written.
    """
    if not check_location(store):
        store.write(json.dumps({"kind": KIND, "version": VERSION}).encode() + b"\n", MARKER)


def check_location(store: Store) -> bool:
    """Return whether there is an archive; if not, the location is empty.

    Raises:
        UsageError: the location holds something else, or an archive of a newer traceviz.
    """
    _check_folder(store)
    if store.exists(MARKER):
        check(store)
        return True
    other_names = sorted({*store.names()} - {WORK})
    if other_names and not store.exists(MARKER):  # another program may just have created it
        held = f"{', '.join(other_names[:3])}{', ...' * (len(other_names) > 3)}"
        raise UsageError(
            f"{store.called()} is not an archive, and not empty: it holds {held}.",
            "Nothing was written.",
            "Name an archive or a new folder.",
        )
    return False


def check(store: Store) -> None:
    """Raise unless there is an archive that can be read.

    Raises:
        UsageError: there is no archive, or a newer traceviz created it.
        DamagedTraceError: its marker cannot be read.
    """
    _check_folder(store)
    try:
        marker = document_of(store.read(MARKER))
    except FileNotFoundError:
        marker = {}
    except JsonError as error:
        raise DamagedTraceError(
            f"{MARKER} of {store.called()} cannot be read.", f"{error}.", "Copy it from a backup of the archive."
        ) from error
    if not isinstance(marker, dict) or marker.get("kind") != KIND:
        location = store.called()
        if store.names():
            raise UsageError(
                f"{location} is not an archive: it holds other things.", fix="Name the folder of an archive."
            )
        raise UsageError(f"{location} is not an archive.", fix=f"Create it: traceviz archive add {location} TRACE...")
    version = marker.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise UsageError(
            f"{store.called()} is an archive of version {version}; this traceviz reads 1 to {VERSION}.",
            fix="Install a newer traceviz.",
        )


def _check_folder(store: Store) -> None:
    """Raise if the location is a file.

    Raises:
        UsageError: the location is a file.
    """
    if store.is_local and Path(store.url).is_file():
        raise UsageError(f"{store.called()} is a file, not an archive.", fix="An archive is a folder: name a folder.")


def trace_parts(format_name: str, trace_id: str) -> tuple[str, str, str]:
    """Return the folder of a trace, as the parts of its path."""
    return TRACES, f"{_FORMAT}{format_name}", f"{_ID}{trace_id}"


def traces_in(store: Store) -> Iterator[tuple[str, str]]:
    """Yield format and id of every trace folder, complete or not, in order."""
    for folder in store.names(TRACES):
        if folder.startswith(_FORMAT):
            for name in store.names(TRACES, folder):
                if name.startswith(_ID):
                    yield folder.removeprefix(_FORMAT), name.removeprefix(_ID)


def manifest_of(store: Store, format_name: str, trace_id: str) -> dict[str, object] | None:
    """Read the manifest of a trace; return ``None`` if it is unreadable. Then the trace does not exist."""
    try:
        manifest = document_of(store.read(*trace_parts(format_name, trace_id), LAST))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def files_of(manifest: dict[str, object] | None) -> dict[str, dict[str, object]] | None:
    """Return size and SHA-256 of every file of a trace, by name; ``None`` if the manifest does not state them."""
    files = (manifest or {}).get("files")
    if not isinstance(files, dict) or not all(isinstance(facts, dict) for facts in files.values()):
        return None
    return files


def leftovers(store: Store, seconds: float, now: float) -> list[str]:
    """Return abandoned files and folders: their writer is dead, or they were not modified for long.

    Args:
        store: The archive.
        seconds: Time without modification after which they are abandoned.
        now: The current time, in seconds since 1970.
    """
    names = store.names(WORK)
    dead = {name for name in names if is_of_dead(name)}
    touched = {name: store.touched(WORK, name) for name in names if name not in dead}
    old = {name for name, time in touched.items() if time is not None and now - time > seconds}
    return sorted(dead | old)


def table_parts(format_name: str, trace_id: str, table: str) -> tuple[str, str, str, str]:
    """Return the file of a trace's table, as the parts of its path."""
    return *trace_parts(format_name, trace_id), f"{table}.parquet"


def traces_with_table(store: Store, rows: pl.DataFrame, table: str) -> list[tuple[str, str]]:
    """Return format and id of all ready traces that have a table, in order.

    Args:
        store: The archive.
        rows: Rows of its catalogue.
        table: Name of the table.
    """
    ready = rows.filter(pl.col("state") == "ready").select("format", "trace_id").unique().sort("format", "trace_id")
    files = store.sizes(TRACES)
    traces = ((str(format_name), str(trace_id)) for format_name, trace_id in ready.iter_rows())
    return [trace for trace in traces if "/".join(table_parts(*trace, table)[1:]) in files]
