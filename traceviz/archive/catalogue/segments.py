"""The catalogue of an archive: a row for every trace and rank, in segments that are never changed.

::

    catalogue/20261121T193000.123456-4f1c....parquet      rows of one add; named by time and SHA-256 of the content
    catalogue/20261121T201500.654321-9b07....parquet      rows of another; the newest rows of a trace win

Several programs may write at the same time. Each writes its own segments without waiting. A reader reads all segments,
and keeps the rows of each trace that were written last. It repeats the listing until it has read every listed segment.
Another program may merge during a listing: it writes a new segment that is not listed yet, and removes listed ones.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from datetime import UTC, datetime

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.storage import layout
from traceviz.archive.storage.layout import ROWS, files_of, manifest_of, trace_parts
from traceviz.archive.storage.store import Store
from traceviz.core.errors import DamagedTraceError

FOLDER = "catalogue"
MOST_SEGMENTS = 32
"""Maximum number of segments. Above it, :func:`merge` merges them into one."""
_SHA256_DIGITS = 64
PARQUET_ERRORS = (pa.ArrowException, OSError, ValueError, NotImplementedError, LookupError, OverflowError, MemoryError)
"""Errors of reading a damaged Parquet file. A damaged size may exceed all memory."""
_MOST_LISTINGS = 8
"""Maximum number of listings. A segment listed so often but never found was not merged by another program."""


def read(store: Store, skip: frozenset[str] = frozenset()) -> pl.DataFrame:
    """Return the current rows by trace and rank: for each trace, those that were written last.

    Args:
        store: The archive.
        skip: Damaged segments to leave out.

    Raises:
        DamagedTraceError: a segment is damaged.
    """
    parts: dict[str, pa.Table] = {}
    gone: Counter[str] = Counter()
    while new := [name for name in segments(store) if name not in skip and name not in parts]:
        for name in new:
            try:
                parts[name] = read_segment(store, name)
            except FileNotFoundError:
                gone[name] += 1
                if gone[name] > _MOST_LISTINGS:
                    raise _unreadable(store, name, "It is listed, but not there.") from None
    return _newest([parts[name] for name in sorted(parts)]).sort("trace_id", "rank")


def read_kept(store: Store) -> pl.DataFrame:
    """Return the rows of :func:`read` except those of removed traces.

    Raises:
        UsageError: there is no archive.
        DamagedTraceError: a segment is damaged.
    """
    layout.check(store)
    return read(store).filter(pl.col("state") != "removed")


def ready(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of traces that can be queried."""
    return rows.filter(pl.col("state") == "ready")


def append(store: Store, rows: pa.Table) -> str:
    """Write a segment, and return its name."""
    buffer = io.BytesIO()
    pq.write_table(rows.select(CATALOGUE.names).cast(CATALOGUE), buffer, compression="zstd")
    data = buffer.getvalue()
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{hashlib.sha256(data).hexdigest()}.parquet"
    store.write(data, FOLDER, name)
    return name


def merge(store: Store, most: int = MOST_SEGMENTS) -> None:
    """Merge segments into one if there are too many. The new one is written before the old ones are removed.

    Outdated rows are left out. If another program merges at the same time, the remaining segments are merged again.
    """
    for _ in range(_MOST_LISTINGS):
        names = segments(store)
        if len(names) <= most:
            return
        try:
            rows = _newest([read_segment(store, name) for name in names])
        except FileNotFoundError:
            continue
        append(store, rows.to_arrow())
        for name in names:
            store.remove(FOLDER, name)
        return


def segments(store: Store) -> list[str]:
    """Return the names of the segments, oldest first."""
    return [name for name in store.names(FOLDER) if name.endswith(".parquet")]


def read_segment(store: Store, name: str) -> pa.Table:
    """Read the rows of a segment.

    Raises:
        FileNotFoundError: the segment is gone, as another program merged it.
        DamagedTraceError: it cannot be read.
    """
    data = store.read(FOLDER, name)
    sha256 = name.removesuffix(".parquet").rpartition("-")[2]
    if len(sha256) == _SHA256_DIGITS and hashlib.sha256(data).hexdigest() != sha256:
        raise _unreadable(store, name, "Its SHA-256 is not that of its name.")
    try:
        return parse_rows(data)
    except DamagedTraceError as error:
        raise _unreadable(store, name, error.why) from error


def parse_rows(data: bytes) -> pa.Table:
    """Parse rows from the bytes of a Parquet file.

    Raises:
        DamagedTraceError: they cannot be read.
    """
    try:
        with pq.ParquetFile(io.BytesIO(data)) as file:  # read_table would load pyarrow.dataset, and thus pandas
            rows = with_added(file.read())
        rows.validate(full=True)
    except PARQUET_ERRORS as error:
        raise DamagedTraceError("Rows of the catalogue cannot be read.", str(error)) from error
    return rows


def stored_rows(store: Store, format_name: str, trace_id: str) -> pa.Table | None:
    """Return the rows in a trace's folder; ``None`` if the folder is incomplete or being removed.

    A folder is complete if it has a manifest, every file has the stated size, and the rows are valid. Valid rows have
    the stated SHA-256, can be read, and belong to this trace. The content of other files is not read.

    Raises:
        OutputError: the archive cannot be read.
    """
    parts = trace_parts(format_name, trace_id)
    files = files_of(manifest_of(store, format_name, trace_id))
    if files is None or ROWS not in files:
        return None
    sizes = store.sizes(*parts)
    if any(sizes.get(name) != facts.get("bytes") for name, facts in files.items()):
        return None
    try:
        data = store.read(*parts, ROWS)
        rows = parse_rows(data)
    except (FileNotFoundError, DamagedTraceError):
        return None
    same = hashlib.sha256(data).hexdigest() == files[ROWS].get("sha256")
    return rows if same and set(rows["trace_id"].to_pylist()) == {trace_id} else None


def _unreadable(store: Store, name: str, why: str) -> DamagedTraceError:
    return DamagedTraceError(
        f"{store.called(FOLDER, name)} cannot be read.",
        why,
        f"Rebuild its rows from the traces: traceviz archive verify --repair {store.called()}",
    )


def _newest(parts: list[pa.Table]) -> pl.DataFrame:
    """Return the rows of each trace that were written last. Parts are in the order of their names."""
    rows = pl.from_arrow(pa.concat_tables([CATALOGUE.empty_table(), *parts]))
    assert isinstance(rows, pl.DataFrame)
    newest = pl.col("changed_ns").max().over("trace_id")
    return rows.filter(pl.col("changed_ns") == newest).unique(["trace_id", "rank"], keep="last", maintain_order=True)


def with_added(table: pa.Table) -> pa.Table:
    """Add null columns to a segment that an older traceviz wrote without them.

    Raises:
        ValueError: required columns are missing or empty.
    """
    present, rows = set(table.column_names), len(table)
    for field in CATALOGUE:
        if not field.nullable and (field.name not in present or table.column(field.name).null_count):
            raise ValueError(f"It lacks values of the column {field.name}.")
    columns = [
        table.column(field.name).cast(field.type) if field.name in present else pa.nulls(rows, field.type)
        for field in CATALOGUE
    ]
    return pa.table(columns, schema=CATALOGUE)
