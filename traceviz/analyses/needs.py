"""What analyses need of a trace, without loading any of them: which tables to read, and which columns of these."""

from __future__ import annotations

from collections.abc import Collection

from traceviz.analyses.registry import UNREAD, entries
from traceviz.trace import schema


def tables_for(sections: Collection[str] | None) -> frozenset[str]:
    """Tables that the analyses of ``sections`` can make use of."""
    return frozenset(table for entry in entries(sections) for table in entry.tables)


def columns_for(sections: Collection[str] | None) -> dict[str, frozenset[str]]:
    """Nullable columns that the analyses of ``sections`` need, by table."""
    users: dict[str, list[frozenset[str]]] = {}
    for entry in entries(sections):
        for table in entry.tables:
            users.setdefault(table, []).append(entry.columns.get(table, _readable(table)))
    return {table: frozenset[str]().union(*needed) for table, needed in users.items()}


def _readable(table: str) -> frozenset[str]:
    """Nullable columns of ``table`` that any analysis reads."""
    nullable = frozenset(column.name for column in schema.table(table).columns if column.nullable)
    return nullable - UNREAD.get(table, frozenset())
