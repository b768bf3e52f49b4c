"""A table over all traces of an archive as a polars LazyFrame.

Folder names are never parsed or read as patterns. An archive may lie below any folder, even one with a name such as
``x=1`` or ``runs[1]*``.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.trace import schema

TRACE_COLUMNS = pa.schema([pa.field("format", pa.string()), pa.field("trace_id", pa.string())])
"""Columns that identify the trace of a row. An id is text, even if it looks like a number."""
_FILE = "\0file"
"""Name of a temporary column; no table has such a column."""


def scan(store: Store, rows: pl.DataFrame, table: str) -> pl.LazyFrame:
    """Scan a table over all ready traces that have it, with ``format`` and ``trace_id`` as its last columns.

    Args:
        store: The archive. A remote one is read by its own file system, with the options of the store.
        rows: Rows of its catalogue.
        table: Name of the table.

    Raises:
        UsageError: no such table is declared.
    """
    declared = pl.from_arrow(schema.table(table).empty())
    assert isinstance(declared, pl.DataFrame)
    traces = layout.traces_with_table(store, rows, table)
    if not traces:
        return declared.lazy().with_columns(format=pl.lit(""), trace_id=pl.lit(""))
    return _local(store, traces, table, declared.schema) if store.is_local else _remote(store, traces, table)


def _local(store: Store, traces: Sequence[tuple[str, str]], table: str, declared: pl.Schema) -> pl.LazyFrame:
    """Scan all files with one scan, with the file of each row. A thousand separate scans take ten times as long."""
    files = [store.url_of(*layout.table_parts(*trace, table)) for trace in traces]
    scanned = pl.scan_parquet(
        files,
        schema=declared,
        missing_columns="insert",
        extra_columns="ignore",
        glob=False,
        hive_partitioning=False,
        include_file_paths=_FILE,
    )
    formats, ids = zip(*traces, strict=True)
    file = pl.col(_FILE)
    return scanned.with_columns(
        format=file.replace_strict(files, formats), trace_id=file.replace_strict(files, ids)
    ).drop(_FILE)


def _remote(store: Store, traces: Sequence[tuple[str, str]], table: str) -> pl.LazyFrame:
    dataset = ds.dataset(
        [store.path_of(*layout.table_parts(format_name, trace_id, table)) for format_name, trace_id in traces],
        schema=pa.schema([*schema.table(table).arrow, *TRACE_COLUMNS]),
        format="parquet",
        filesystem=store.filesystem(),
        partitioning=ds.partitioning(TRACE_COLUMNS, flavor="hive"),
        partition_base_dir=store.path_of(layout.TRACES),
    )
    return pl.scan_pyarrow_dataset(dataset)
