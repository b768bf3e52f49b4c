"""What queries see: a view of every table over the files of all traces, and views of the catalogue."""

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
"""What means other names in a path that DuckDB is given."""
_TRACE_ID = "substr(split_part(filename, '/', -2), 10)"
"""Of ``.../format=F/trace_id=ID/kernels.parquet`` the id: DuckDB knows it per file, and skips files by it."""
_FORMAT = "substr(split_part(filename, '/', -3), 8)"

PACKED = "held.packed"
"""Table with the ids of traces whose tables are read from packs."""
TIMES = "make_timestamp(recorded_ns // 1000) AS recorded, make_timestamp(added_ns // 1000) AS added"
"""Moments of the catalogue as timestamps, UTC."""
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
"""Views of the catalogue by name, in the order in which they build on each other."""


def catalogue_table(rows: pl.DataFrame) -> pa.Table:
    """Rows of the catalogue with the types that it declares: polars knows no maps. Other columns stay as they are."""
    table = rows.to_arrow()
    columns = [
        table.column(name).cast(CATALOGUE.field(name).type) if name in CATALOGUE.names else table.column(name)
        for name in table.column_names
    ]
    return pa.table(columns, names=table.column_names)


def files_by_trace(store: Store, traces: Sequence[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Names of the files of every trace that is there, by its folder; of a trace that is not whole, nothing.

    Args:
        store: The archive.
        traces: Format and id of each.
    """
    folders = [trace_parts(*trace) for trace in traces]
    if store.is_local:  # a thousand small listings take 0.05 s, one through fsspec a second
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
    """The query behind the view of a table: its declared columns, ``trace_id`` before and ``format`` behind them.

    The columns are stated, not looked up: no file is opened before the query runs, and what the files of an older
    schema version lack is null.

    Args:
        table: The table.
        folders: Names of the files of each trace, by its folder.
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
    """Files of Parquet as columns of these types."""
    declared = ", ".join(
        f"{_text(name)}: {{name: {_text(name)}, type: '{type_name}', default_value: NULL}}"
        for name, type_name in types.items()
    )
    listed = ", ".join(_text(literal(file)) for file in files)
    return f"read_parquet([{listed}]{options}, schema = MAP {{{declared}}})"


def empty_view(table: Table) -> str:
    """The same without rows."""
    columns = ", ".join(f'CAST(NULL AS {_type(column.type)}) AS "{column.name}"' for column in table.columns)
    nulls = "CAST(NULL AS VARCHAR)"
    return f"SELECT {nulls} AS trace_id, {columns}{_format(table, nulls)} WHERE false"


def _format(table: Table, value: str) -> str:
    """The format of the trace; table ``run`` states it itself."""
    return "" if any(column.name == "format" for column in table.columns) else f", {value} AS format"


def _type(kind: pa.DataType) -> str:
    return _TYPES.get(kind, "VARCHAR")


def literal(path: str) -> str:
    """A pattern that only this path fits: an archive may be called ``runs[1]``, or ``what?``."""
    return _SPECIAL.sub(r"[\1]", path)


def _text(text: str) -> str:
    """A text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def views(
    folders: Mapping[str, frozenset[str]] | None = None,
    names: Sequence[str] = tuple(TABLES),
    packed: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Queries behind the views of tables by name; without folders they are empty."""
    held = packed or {}
    return {
        name: empty_view(TABLES[name]) if folders is None else table_view(TABLES[name], folders, held.get(name, ()))
        for name in names
    }
