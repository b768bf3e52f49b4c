"""Packs: files that hold one table of many small traces, so that a query over thousands of traces opens few files.

::

    packed/3f5e.../kernels.parquet      kernels of up to 2,000 traces, with the columns `format` and `trace_id`
                   ...                  and so for every table
                   manifest.json        the traces, when their manifests were written, sizes and sums of the files

A pack is only a copy: the folders of its traces hold all its data. ``add`` makes packs when enough traces wait for one.
A pack is stale if any of its traces was removed or rewritten. Stale packs are not used, and the next ``add`` removes
them. Removing a trace removes its packs, too. Archives on object stores have no packs.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceviz.archive.storage.layout import files_of, table_parts, trace_parts
from traceviz.archive.storage.store import LAST, Store, digest_of
from traceviz.core.errors import OutputError
from traceviz.trace import schema
from traceviz.untrusted.json_documents import document_of

FOLDER = "packed"
FEWEST = 500
"""Minimum number of waiting traces for a new pack. A query over fewer traces is as fast without one."""
MOST = 2_000
"""Maximum number of traces in a pack."""
LARGEST = 1 << 20
"""Maximum source size of a packed trace, in bytes. Larger traces gain nothing, as their few files already hold much."""
_ROWS = 100_000
"""Rows of a row group. One core reads a group while another reads the next."""
_FILE = "\0file"
"""Name of a temporary column; no table has such a column."""
_DECLARED = hashlib.sha256(
    "\n".join(
        f"{table.name} {column.name} {column.type}" for table in schema.TABLES.values() for column in table.columns
    ).encode()
).hexdigest()
"""Tables and columns declared by this version. A pack of another version may lack some."""

Mark = tuple[int, int]
"""Modification time (nanoseconds) and size (bytes) of a trace's manifest. They change when other tables are written."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Tables of several traces.

    Args:
        name: Its folder.
        traces: Id and format of each trace, with the mark of its manifest.
        tables: Names of the tables that any of the traces has.
    """

    name: str
    traces: dict[tuple[str, str], Mark]
    tables: frozenset[str]

    @property
    def ids(self) -> frozenset[str]:
        """Ids of the packed traces."""
        return frozenset(trace_id for _, trace_id in self.traces)

    def path(self, store: Store, table: str) -> str:
        """Return the path of a table's file."""
        return store.url_of(FOLDER, self.name, f"{table}.parquet")


def packs(store: Store) -> list[Pack]:
    """Return the usable packs: complete, and with all traces unchanged since packing."""
    if not store.is_local:
        return []
    found = (_read_pack(store, name) for name in store.names(FOLDER) if not _damage(store, name, quick=True))
    return [pack for pack in found if pack is not None and _is_current(store, pack)]


def pack(store: Store, rows: pl.DataFrame) -> None:
    """Remove stale packs, and make new ones if enough traces wait and there is disk space.

    Args:
        store: The archive.
        rows: Rows of its catalogue.

    Raises:
        OutputError: the archive cannot be reached.
    """
    if not store.is_local:
        return
    usable = packs(store)
    for name in {*store.names(FOLDER)} - {one.name for one in usable}:
        store.remove(FOLDER, name)
    small = rows.filter((pl.col("state") == "ready") & (pl.col("source_bytes") <= LARGEST))
    traces: list[tuple[str, str]] = list(small.select("format", "trace_id").unique().sort("trace_id").iter_rows())
    packed = {trace for one in usable for trace in one.traces}
    waiting = [trace for trace in traces if trace not in packed]
    while len(waiting) >= FEWEST:
        # Nothing is lost without a pack. Queries and `verify` report the damaged table.
        with suppress(pl.exceptions.PolarsError, OSError, OutputError):
            _make(store, waiting[:MOST])
        waiting = waiting[MOST:]


def drop(store: Store, trace_ids: Collection[str]) -> None:
    """Remove the packs that hold any of these traces, or that cannot be read.

    Raises:
        OutputError: the archive cannot be written.
    """
    if not store.is_local:
        return
    for name in store.names(FOLDER):
        found = _read_pack(store, name, any_version=True)
        if found is None or not found.ids.isdisjoint(trace_ids):
            store.remove(FOLDER, name)


def find_damaged(store: Store, *, quick: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the damaged packs, as folder and difference from the manifest.

    Args:
        store: The archive.
        quick: Compare sizes only.
    """
    for name in store.names(FOLDER) if store.is_local else ():
        why = _damage(store, name, quick=quick)
        if why and store.exists(FOLDER, name):  # another program may have removed it
            yield f"{FOLDER}/{name}", why


def _damage(store: Store, name: str, *, quick: bool) -> str:
    """Return how a pack differs from its manifest; empty if it does not."""
    files = files_of(_manifest(store, name))
    if files is None:
        return f"its {LAST} cannot be read"
    for file, facts in files.items():
        path = Path(store.url_of(FOLDER, name, file))
        try:
            if path.stat().st_size != facts.get("bytes"):
                return f"{file} has another size than its {LAST} says"
            if not quick and _sha256(path) != facts.get("sha256"):
                return f"the SHA-256 of {file} is not that of its {LAST}"
        except FileNotFoundError:
            return f"{file} is missing"
    return ""


def _manifest(store: Store, name: str) -> dict[str, object] | None:
    try:
        manifest = document_of(store.read(FOLDER, name, LAST))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def _read_pack(store: Store, name: str, *, any_version: bool = False) -> Pack | None:
    """Read a pack; return ``None`` if it is unreadable or was made by another version."""
    manifest = _manifest(store, name)
    files = files_of(manifest)
    if manifest is None or files is None or not (any_version or manifest.get("declared") == _DECLARED):
        return None
    traces = manifest.get("traces")
    if not isinstance(traces, list) or not all(
        (isinstance(trace, list) and [type(part) for part in trace] == [str, str, int, int]) for trace in traces
    ):
        return None
    held = {(str(format_name), str(trace_id)): (ns, size) for format_name, trace_id, ns, size in traces}
    return Pack(name, held, frozenset(file.removesuffix(".parquet") for file in files))


def _is_current(store: Store, pack: Pack) -> bool:
    return all(_mark(store, trace) == mark for trace, mark in pack.traces.items())


def _mark(store: Store, trace: tuple[str, str]) -> Mark | None:
    """Return the mark of a trace; ``None`` if the trace does not exist."""
    try:
        facts = Path(store.url_of(*trace_parts(*trace), LAST)).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_mtime_ns, facts.st_size


def _make(store: Store, traces: Sequence[tuple[str, str]]) -> None:
    """Write a pack of those traces that exist.

    Raises:
        OutputError: the archive cannot be written.
        OSError, PolarsError: a table cannot be read or was just removed, or the disk is full.
    """
    marks = {trace: mark for trace in traces if (mark := _mark(store, trace)) is not None}
    name = uuid.uuid4().hex
    with store.new_folder(FOLDER, name) as folder:
        for table in schema.TABLES:
            _write(store, [*marks], table, folder / f"{table}.parquet")
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": _sha256(path)} for path in sorted(folder.iterdir())
        }
        held = [[*trace, *mark] for trace, mark in marks.items()]
        manifest = {"declared": _DECLARED, "traces": held, "files": files}
        (folder / LAST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
    made = _read_pack(store, name)
    if made is None or not _is_current(store, made):  # a trace may have been removed concurrently
        store.remove(FOLDER, name)


def _write(store: Store, traces: Sequence[tuple[str, str]], table: str, target: Path) -> None:
    """Write a table of all traces that have it, with ``trace_id``, and with ``format`` unless the table has it."""
    paths = ((Path(store.url_of(*table_parts(*trace, table))), trace) for trace in traces)
    files = {str(path): trace for path, trace in paths if path.exists()}
    if not files:
        return
    declared = pl.from_arrow(schema.table(table).empty())
    assert isinstance(declared, pl.DataFrame)
    scanned = pl.scan_parquet(
        [*files],
        schema=declared.schema,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
        include_file_paths=_FILE,
    )
    file = pl.col(_FILE)
    formats, ids = zip(*files.values(), strict=True)
    names = {"trace_id": ids} if "format" in declared.columns else {"format": formats, "trace_id": ids}
    columns = {name: file.replace_strict([*files], values) for name, values in names.items()}
    scanned.with_columns(**columns).drop(_FILE).sink_parquet(
        target, compression="zstd", compression_level=1, row_group_size=_ROWS
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return digest_of(file, hashlib.sha256()).hex()
