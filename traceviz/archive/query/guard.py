"""Check that a query only reads tables of the archive. Its syntax tree is checked before the query runs.

Refusing kinds of statements is not enough. Since DuckDB 2.0 a common table expression may be an ``INSERT`` or a ``COPY
... TO``. Table functions read files, run SQL from texts, or take memory addresses. Therefore an allowlist decides, and
everything else is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from traceviz.core.errors import UsageError

_READING = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"})
"""Kinds of query nodes that only read."""
_TABLE_FUNCTIONS = frozenset(
    {
        *("duckdb_columns", "duckdb_functions", "duckdb_keywords", "duckdb_tables", "duckdb_types", "duckdb_views"),
        *("generate_series", "histogram", "histogram_values", "json_each", "json_tree", "pragma_table_info"),
        *("pragma_version", "range", "repeat", "repeat_row", "unnest"),
    }
)
"""Functions in ``FROM`` that access no files and no foreign memory, and run no SQL of their own."""
_ONLY_READS = "A query reads the tables of the archive, and nothing else."
_TABLES = "Its tables: traceviz archive query ARCHIVE 'SHOW TABLES'."


def tables_read(connection: duckdb.DuckDBPyConnection, text: str) -> frozenset[str]:
    """Return the lower-case names of all tables that a query reads, including common table expressions.

    Raises:
        UsageError: the text is not one query, or does more than read tables of the archive.
        duckdb.Error: the query has a syntax error.
    """
    _check_statements(connection.extract_statements(text))
    names: set[str] = set()
    rows = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
    try:
        tree = json.loads(rows[0][0])
    except RecursionError:
        raise UsageError("The query is nested too deeply.", fix="Split it with WITH.") from None
    if tree.get("error", True):
        raise UsageError("The query cannot be run.", str(tree.get("error_message", "")))
    for node in _nodes(tree):
        kind = str(node["type"])
        if kind == "BASE_TABLE":
            names.add(_table(str(node.get("table_name", ""))))
        elif kind == "TABLE_FUNCTION":
            function = node.get("function")
            name = str(function.get("function_name", "")) if isinstance(function, dict) else ""
            if name.lower() not in _TABLE_FUNCTIONS:
                raise UsageError(f"{name or 'This function'}() is refused.", _ONLY_READS, _TABLES)
        elif kind.endswith("_NODE") and kind not in _READING:
            raise UsageError(f"{kind.partition('_')[0]} is refused.", _ONLY_READS, _TABLES)
    return frozenset(names)


def _check_statements(statements: list[Any]) -> None:
    """Raise unless there is exactly one statement, and it is a query.

    Raises:
        UsageError: there is no statement, several, or another kind.
    """
    if len(statements) != 1:
        raise UsageError(
            f"This is {'no query' if not statements else f'{len(statements)} queries'}.", fix="Give one SELECT."
        )
    kind = statements[0].type.name
    if kind == "MULTI":
        raise UsageError("PIVOT needs the values that become columns.", fix="Name them: PIVOT ... ON name IN ('a').")
    if kind != "SELECT":
        raise UsageError(f"{kind.replace('_', ' ')} is refused.", _ONLY_READS, "Give a SELECT.")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield queries and tables of a syntax tree, at any depth. Expressions have a class in addition to their type."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if isinstance(node.get("type"), str) and "class" not in node:
                yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _table(name: str) -> str:
    """Return a name in ``FROM`` in lower case. DuckDB would read ``x.parquet`` or ``/a/b`` as a file.

    Raises:
        UsageError: the name is a file.
    """
    if "/" in name or "\\" in name or name.lower().endswith((".parquet", ".csv", ".json", ".db", ".duckdb")):
        raise UsageError(f"{name!r} is a file.", _ONLY_READS, _TABLES)
    return name.lower()
