"""Traces as the tests of readers look at them: read by the reader that recognises them, as rows and notes."""

from pathlib import Path
from typing import Any

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.registry import identify
from traceviz.trace.tables import TraceTables


def read(path: Path, **options: Any) -> TraceTables:
    """Return the tables of a trace, read by the reader that recognises it."""
    return TraceTables(dict(identify(path).read(path, ReadRequest(**options))))


def content(tables: TraceTables) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of all tables."""
    return {name: tables.arrow(name).to_pylist() for name in tables}


def rows(tables: TraceTables, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Return some columns of a table, row by row."""
    return [tuple(row.values()) for row in tables.arrow(name).select(list(columns)).to_pylist()]


def column(tables: TraceTables, name: str, of: str) -> list[Any]:
    """Return one column of a table."""
    return tables.arrow(name)[of].to_pylist()


def codes(tables: TraceTables) -> list[str]:
    """Return the codes of the notes, in their order."""
    return column(tables, "notes", "code")


def notes(tables: TraceTables) -> dict[str, str]:
    """Return the messages of the notes by code."""
    return dict(rows(tables, "notes", "code", "message"))


def note_counts(tables: TraceTables) -> dict[str, int | None]:
    """Return the counts of the notes by code."""
    return dict(rows(tables, "notes", "code", "count"))
