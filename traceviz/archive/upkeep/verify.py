"""Check that an archive holds exactly the traces that its catalogue lists."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from traceviz.archive.catalogue import packs
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.rows import table_of, with_times
from traceviz.archive.catalogue.segments import stored_rows
from traceviz.archive.storage import layout
from traceviz.archive.storage.layout import files_of, leftovers, manifest_of, trace_parts, traces_in
from traceviz.archive.storage.leases import ABANDONED_S, first_start
from traceviz.archive.storage.store import LAST, WORK, Store, digest_of
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import Progress, silent

Kind = Literal["missing", "incomplete", "damaged", "unlisted", "undeleted", "leftover", "catalogue", "packed"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of an archive.

    Args:
        kind: ``missing``: the catalogue has a trace without a folder; ``damaged``: files of a trace are missing or have
            changed; ``incomplete``: a folder has no manifest, so that it is ignored; ``unlisted``: a trace is not in
            the catalogue, because an add was killed; ``undeleted``: a removed trace has a folder, or a trace has a
            second folder; ``leftover``: an abandoned file in work; ``catalogue``: a segment of the catalogue cannot be
            read; ``packed``: a pack, which holds copies of tables, has changed.
        trace_id: The trace, if it concerns one.
        name: The file or folder, as a path in the archive.
        why: The difference.
        format: Format of the trace, by its folder.
    """

    kind: Kind
    trace_id: str
    name: str
    why: str
    format: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a check.

    Args:
        traces: Number of traces that were checked.
        bytes: Bytes that were read and compared.
        faults: The faults, in the order of folders.
        arriving: Traces that a running add has just written, and that the catalogue does not have yet.
    """

    traces: int
    bytes: int
    faults: tuple[Fault, ...]
    arriving: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    Args:
        count: Number of fixed faults.
        lost: Traces that are no longer in the archive, as id and name. Adding their sources restores them.
    """

    count: int
    lost: tuple[tuple[str, str], ...] = ()


def verify(store: Store, *, quick: bool = False, progress: Progress = silent) -> Verified:
    """Compare an archive with its catalogue and its manifests.

    Args:
        store: The archive; it is only read.
        quick: Compare sizes only, instead of reading every file.
        progress: Receives progress.

    Raises:
        UsageError: there is no archive.
        OutputError: the archive cannot be reached.
    """
    layout.check(store)
    damaged = _damaged_segments(store)
    skip = frozenset(_segment(fault) for fault in damaged)
    listed = _list(store, skip)
    folders = list(traces_in(store))
    faults: list[Fault] = []
    size = 0
    for done, (format_name, trace_id) in enumerate(folders):
        progress("verifying traces", done, len(folders))
        trace_faults, read = _faults_of(store, format_name, trace_id, listed.get(trace_id), quick=quick)
        faults += trace_faults
        size += read
    expected = {(entry.format, trace_id) for trace_id, entry in listed.items() if entry.state == "ready"}
    missing = sorted(expected.difference(folders), key=lambda folder: folder[1])
    faults += [_missing(format_name, trace_id) for format_name, trace_id in missing]
    packed = [Fault("packed", "", name, why) for name, why in packs.find_damaged(store, quick=quick)]
    left = leftovers(store, ABANDONED_S, time.time())
    leftover = [Fault("leftover", "", f"{WORK}/{name}", "nobody works on it any more") for name in left]
    confirmed, arriving = _without_arriving(store, _still(store, faults, skip, quick=quick))
    return Verified(len(folders), size, (*damaged, *confirmed, *packed, *leftover), tuple(arriving))


def repair(store: Store, faults: tuple[Fault, ...]) -> Repaired:
    """Fix the faults of :func:`verify`, as far as possible without the sources.

    Rows are rebuilt from the folders of their traces. An incomplete trace is removed, so that adding its source
    restores it. Packs that hold such a trace are removed, as well as files that do not belong to the archive. Every
    fault is checked again first, as other programs may have added or removed something.

    Raises:
        OutputError: the archive cannot be written.
    """
    skip = frozenset(_segment(fault) for fault in faults if fault.kind == "catalogue")
    of_traces, _ = _without_arriving(
        store, _still(store, [fault for fault in faults if fault.trace_id], skip, quick=False)
    )
    others = [fault for fault in faults if not fault.trace_id]
    if any(fault.kind == "leftover" for fault in others):
        left = {f"{WORK}/{name}" for name in leftovers(store, ABANDONED_S, store.now())}
        others = [fault for fault in others if fault.kind != "leftover" or fault.name in left]
    lost = _write_rows(store, of_traces, skip)
    for fault in of_traces:
        if fault.kind in {"damaged", "incomplete", "undeleted"}:
            store.remove(*trace_parts(fault.format, fault.trace_id))
    packs.drop(store, {fault.trace_id for fault in of_traces})
    for fault in others:
        store.remove(*fault.name.split("/"))
    return Repaired(len(of_traces) + len(others), lost)


def _write_rows(store: Store, faults: list[Fault], skip: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """List or unlist traces in the catalogue, depending on their folders; return the unlisted ones."""
    rows = catalogue.read(store, skip)
    newest = dict(rows.group_by("trace_id").agg(pl.col("changed_ns").max()).iter_rows())
    written: list[pa.Table] = []
    emptied: dict[str, str] = {}
    for fault in faults:
        changed = max(time.time_ns(), newest.get(fault.trace_id, 0) + 1)
        if fault.kind == "unlisted":
            own = stored_rows(store, fault.format, fault.trace_id)
            if own is not None:  # it existed at the last check
                written.append(with_times(own, changed))
        elif fault.kind in {"missing", "damaged"} and fault.trace_id not in emptied:
            lost = rows.filter((pl.col("trace_id") == fault.trace_id) & (pl.col("state") == "ready"))
            emptied[fault.trace_id] = lost["source"][0] if lost.height else ""
            written.append(with_times(tombstones(lost, fault.why), changed))
    if written:
        catalogue.append(store, pa.concat_tables(written))
    return tuple(emptied.items())


_KEPT = ("trace_id", "rank", "format", "added_ns", "changed_ns", "traceviz_version")
"""Columns that the catalogue keeps of a removed trace. They do not reveal its content."""


def tombstones(rows: pl.DataFrame, why: str | None) -> pa.Table:
    """Return rows that mark traces as removed."""
    emptied = {"state": "removed", "error": why, "source": "", "source_sha256": ""}
    return table_of([{**row, **emptied} for row in rows.select(_KEPT).to_dicts()])


@dataclass(frozen=True, slots=True)
class _Listed:
    """The entry of a trace in the catalogue."""

    state: str
    format: str
    changed_ns: int


def _list(store: Store, skip: frozenset[str]) -> dict[str, _Listed]:
    rows = catalogue.read(store, skip).select("trace_id", "state", "format", "changed_ns")
    return {trace_id: _Listed(*others) for trace_id, *others in rows.iter_rows()}


def _still(store: Store, faults: list[Fault], skip: frozenset[str], *, quick: bool) -> list[Fault]:
    """Return the faults confirmed by a second check. The first may have seen concurrent adds or removals."""
    if not faults:
        return []
    listed = _list(store, skip)
    folders = dict.fromkeys((fault.format, fault.trace_id) for fault in faults)
    return [
        fault
        for format_name, trace_id in folders
        for fault in _faults_of(store, format_name, trace_id, listed.get(trace_id), quick=quick)[0]
    ]


def _without_arriving(store: Store, faults: list[Fault]) -> tuple[list[Fault], list[Fault]]:
    """Divide faults into real ones, and traces that a running add may have written and will list."""
    if not any(fault.kind == "unlisted" for fault in faults):
        return faults, []
    start = first_start(store)
    arriving = [
        fault
        for fault in faults
        if start is not None
        and fault.kind == "unlisted"
        and ((touched := store.touched(*trace_parts(fault.format, fault.trace_id))) is None or touched >= start)
    ]
    return [fault for fault in faults if fault not in arriving], arriving


def _segment(fault: Fault) -> str:
    return fault.name.rpartition("/")[2]


def _damaged_segments(store: Store) -> list[Fault]:
    faults = []
    for name in catalogue.segments(store):
        try:
            catalogue.read_segment(store, name)
        except FileNotFoundError:  # just merged
            continue
        except DamagedTraceError as error:
            faults.append(Fault("catalogue", "", f"{catalogue.FOLDER}/{name}", error.why or error.what))
    return faults


def _missing(format_name: str, trace_id: str) -> Fault:
    folder = "/".join(trace_parts(format_name, trace_id))
    return Fault("missing", trace_id, folder, "the catalogue has it, and there is no such folder", format_name)


def _faults_of(
    store: Store, format_name: str, trace_id: str, listed: _Listed | None, *, quick: bool
) -> tuple[list[Fault], int]:
    """Return the faults of a trace's folder, and the number of bytes read to find them."""
    parts = trace_parts(format_name, trace_id)
    is_ready = listed is not None and listed.state == "ready" and listed.format == format_name
    manifest = manifest_of(store, format_name, trace_id)
    files = files_of(manifest)
    if files is None:
        return _without_manifest(store, format_name, trace_id, is_there=manifest is not None, is_ready=is_ready), 0
    folder = "/".join(parts)
    faults = [
        Fault("damaged", trace_id, f"{folder}/{name}", why, format_name)
        for name, why in _damage(store, parts, files, quick=quick)
    ]
    counts = (manifest or {}).get("tables")
    if not faults and isinstance(counts, dict) and not quick:
        faults = [
            Fault("damaged", trace_id, f"{folder}/{name}.parquet", why, format_name)
            for name, count in counts.items()
            if (count != 0 or f"{name}.parquet" in files) and (why := _wrong_rows(store, parts, name, count))
        ]
    if not faults and not is_ready:
        faults = [_unlisted_fault(store, format_name, trace_id, listed)]
    return faults, 0 if quick else sum(_whole(facts.get("bytes")) for facts in files.values())


def _without_manifest(store: Store, format_name: str, trace_id: str, *, is_there: bool, is_ready: bool) -> list[Fault]:
    """Return the faults of a trace without a manifest that names its files."""
    parts = trace_parts(format_name, trace_id)
    if not is_there and not store.exists(*parts):
        return [_missing(format_name, trace_id)] if is_ready else []
    why = f"its {LAST} does not name its files" if is_there else f"it has no {LAST}"
    if is_ready:
        return [Fault("damaged", trace_id, "/".join(parts), why, format_name)]
    touched = None if store.is_local else store.touched(*parts)
    if touched is not None and time.time() - touched < ABANDONED_S:
        return []  # remote archive: another program may be writing it
    return [Fault("incomplete", trace_id, "/".join(parts), why, format_name)]


def _unlisted_fault(store: Store, format_name: str, trace_id: str, listed: _Listed | None) -> Fault:
    """Return the fault of a complete but unlisted trace: never listed, or added again after its removal."""
    kind: Kind = "unlisted"
    why = "the catalogue does not have it"
    if listed is not None and listed.state == "ready":
        kind, why = "undeleted", f"the catalogue has it as format={listed.format}"
    elif listed is not None and listed.state == "removed":
        own = stored_rows(store, format_name, trace_id)
        if own is None or own["added_ns"][0].as_py() <= listed.changed_ns:
            kind, why = "undeleted", "it was removed"
    return Fault(kind, trace_id, "/".join(trace_parts(format_name, trace_id)), why, format_name)


def _damage(
    store: Store, parts: tuple[str, ...], files: dict[str, dict[str, object]], *, quick: bool
) -> Iterator[tuple[str, str]]:
    """Yield the files of a trace that differ from its manifest, with the difference."""
    sizes = store.sizes(*parts)
    for name, facts in files.items():
        if name not in sizes:
            yield name, "it is missing"
        elif sizes[name] != facts.get("bytes"):
            yield name, f"it has {sizes[name]:,} bytes, and the manifest says {_whole(facts.get('bytes')):,}"
        elif not quick and _sha256(store, *parts, name) != facts.get("sha256"):
            yield name, "its SHA-256 is not that of the manifest"
    for name in sorted(set(sizes) - set(files) - {LAST}):
        yield name, "the manifest does not name it"


def _wrong_rows(store: Store, parts: tuple[str, ...], name: str, count: object) -> str:
    """Return why a table does not have the row count of the manifest; empty if it does."""
    try:
        with store.open(*parts, f"{name}.parquet") as file:
            rows = pq.read_metadata(file).num_rows
    except FileNotFoundError:
        return "it is missing"
    except catalogue.PARQUET_ERRORS as error:
        return f"it is no Parquet file: {error}"
    return "" if rows == count else f"it has {rows:,} rows, and the manifest says {count}"


def _sha256(store: Store, *parts: str) -> str:
    """Return the SHA-256 of a file, read in pieces; empty if the file is gone."""
    try:
        with store.open(*parts) as file:
            return digest_of(file, hashlib.sha256()).hex()
    except FileNotFoundError:
        return ""


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
