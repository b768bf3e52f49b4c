"""Views for queries: one of every table over the files of all traces, and views of the catalogue."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import polars as pl
import pyarrow as pa

from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.storage.layout import TRACES, trace_parts
from traceviz.archive.storage.store import LAST, Store
from traceviz.trace.schema import TABLES, Table

_TYPES = {pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}
_SPECIAL = re.compile(r"([*?\[])")
"""Characters that are patterns in paths given to DuckDB."""
_TRACE_ID = "substr(split_part(filename, '/', -2), 10)"
"""Id in the path ``.../format=F/trace_id=ID/kernels.parquet``. DuckDB knows it per file, and can skip files by it."""
_FORMAT = "substr(split_part(filename, '/', -3), 8)"

PACKED = "held.packed"
"""Table with the ids of traces whose tables are read from packs."""
TIMES = "make_timestamp(recorded_ns // 1000) AS recorded, make_timestamp(added_ns // 1000) AS added"
"""Times of the catalogue as timestamps in UTC."""
CATALOGUE_VIEWS: Mapping[str, str] = {
    "catalogue": f"SELECT *, {TIMES} FROM held.rows WHERE state <> 'removed'",  # noqa: S608 (no input)
    "traces": """
        SELECT trace_id, source, source_sha256, source_bytes, format, producer, producer_version, framework,
               framework_version, gpu, job,
               CASE WHEN count(*) OVER (PARTITION BY trace_id) = 1 THEN rank END AS rank,
               count(*) OVER (PARTITION BY trace_id) AS ranks,
               tags, recorded_ns, recorded, added_ns, added, traceviz_version, private
        FROM catalogue WHERE state = 'ready'
        QUALIFY row_number() OVER (PARTITION BY trace_id ORDER BY rank) = 1""",
    "findings": """
        SELECT trace_id, rank, finding.code, finding.name, finding.severity, finding.share, finding.stake_ns
        FROM (SELECT trace_id, rank, unnest(findings) AS finding FROM catalogue WHERE state = 'ready')""",
    "tags": """
        SELECT trace_id, entry.key AS key, entry.value AS value
        FROM (SELECT trace_id, unnest(map_entries(tags)) AS entry FROM traces)""",
}
"""Views of the catalogue by name. Later views use earlier ones."""


def catalogue_table(rows: pl.DataFrame) -> pa.Table:
    """Cast rows of the catalogue to its declared types, as polars has no maps. Other columns are unchanged."""
    table = rows.to_arrow()
    columns = [
        table.column(name).cast(CATALOGUE.field(name).type) if name in CATALOGUE.names else table.column(name)
        for name in table.column_names
    ]
    return pa.table(columns, names=table.column_names)


def files_by_trace(store: Store, traces: Sequence[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Return the names of the files of every complete trace, by its folder.

    Args:
        store: The archive.
        traces: Format and id of each trace.
    """
    folders = [trace_parts(*trace) for trace in traces]
    if store.is_local:  # a thousand small listings take 0.05 s; one listing through fsspec takes a second
        named = {url: _names(url) for url in (store.url_of(*parts) for parts in folders)}
    else:
        listed: dict[str, set[str]] = {}
        for path in store.sizes(TRACES) if folders else ():
            folder, _, name = path.rpartition("/")
            listed.setdefault(folder, set()).add(name)
        named = {store.url_of(*parts): frozenset(listed.get("/".join(parts[1:]), ())) for parts in folders}
    return {folder: names for folder, names in named.items() if LAST in names}


def _names(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 (of ten thousand folders, paths take as long as the listing)
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()


def table_view(table: Table, folders: Mapping[str, frozenset[str]], packed: Sequence[str] = ()) -> str:
    """Return the query of a table's view: its declared columns, with ``trace_id`` first and ``format`` last.

    The columns are declared instead of read from files. No file is opened before the query runs, and columns missing in
    files of an older schema version are null.

    Args:
        table: The table.
        folders: File names of each trace, by its folder.
        packed: Files that hold the table of many traces (:mod:`traceviz.archive.catalogue.packs`).
    """
    name = f"{table.name}.parquet"
    files = [f"{folder}/{name}" for folder, names in folders.items() if name in names]
    declared = {column.name: _type(column.type) for column in table.columns}
    parts = []
    if packed:
        source = _source(packed, {**declared, "format": "VARCHAR", "trace_id": "VARCHAR"})
        columns = ", ".join(f'"{name}"' for name in dict.fromkeys(("trace_id", *declared, "format")))
        parts.append(f"SELECT {columns} FROM {source} WHERE trace_id IN (FROM {PACKED})")  # noqa: S608 (quoted)
    if files:
        source = _source(files, declared, ", filename = true")
        parts.append(f"SELECT {_TRACE_ID} AS trace_id, * EXCLUDE (filename){_format(table, _FORMAT)} FROM {source}")  # noqa: S608 (quoted)
    return " UNION ALL ".join(parts) or empty_view(table)


def _source(files: Sequence[str], types: Mapping[str, str], options: str = "") -> str:
    """Return SQL that reads Parquet files with columns of these types."""
    declared = ", ".join(
        f"{_text(name)}: {{name: {_text(name)}, type: '{type_name}', default_value: NULL}}"
        for name, type_name in types.items()
    )
    listed = ", ".join(_text(literal(file)) for file in files)
    return f"read_parquet([{listed}]{options}, schema = MAP {{{declared}}})"


def empty_view(table: Table) -> str:
    """Return the same query without rows."""
    columns = ", ".join(f'CAST(NULL AS {_type(column.type)}) AS "{column.name}"' for column in table.columns)
    nulls = "CAST(NULL AS VARCHAR)"
    return f"SELECT {nulls} AS trace_id, {columns}{_format(table, nulls)} WHERE false"


def _format(table: Table, value: str) -> str:
    """Return the column with the trace's format, unless the table itself states it, as ``run`` does."""
    return "" if any(column.name == "format" for column in table.columns) else f", {value} AS format"


def _type(kind: pa.DataType) -> str:
    return _TYPES.get(kind, "VARCHAR")


def literal(path: str) -> str:
    """Return a pattern that matches only this path, as an archive may have a name such as ``runs[1]`` or ``what?``."""
    return _SPECIAL.sub(r"[\1]", path)


def _text(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def views(
    folders: Mapping[str, frozenset[str]] | None = None,
    names: Sequence[str] = tuple(TABLES),
    packed: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return the queries of table views by name. Without folders they are empty."""
    held = packed or {}
    return {
        name: empty_view(TABLES[name]) if folders is None else table_view(TABLES[name], folders, held.get(name, ()))
        for name in names
    }
