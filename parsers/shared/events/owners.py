"""Numbers of processes, threads and devices, and the tables that describe them.

Each format finds them in its own way. All sort them first, so that a trace always gets the same numbers. A number is
the position of a row in its table.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from traceviz.parsers.shared.notes import Notes
from traceviz.trace.rows_to_table import rows_to_table

Row = Mapping[str, Any]
Key = TypeVar("Key", bound=Hashable)

_NUMBERS = {"processes": "process_id", "threads": "thread_id", "devices": "device_id"}
"""The column of each table that holds the number."""


def numbered(keys: Iterable[Key], order: Callable[[Key], Any] | None = None) -> dict[Key, int]:
    """Return the number of each distinct key, in sorted order; ``order`` gives the sort key."""
    distinct: list[Any] = list(dict.fromkeys(keys))
    return {key: number for number, key in enumerate(sorted(distinct, key=order))}


def numbered_rows(table: str, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows of ``processes``, ``threads`` or ``devices``, each with its position as its number."""
    return [{**row, _NUMBERS[table]: number} for number, row in enumerate(rows)]


def by_trace(numbers: Mapping[tuple[int, int], int], traces: int) -> list[dict[int, int]]:
    """Return, for each of several traces, the common number of each of its own numbers."""
    split: list[dict[int, int]] = [{} for _ in range(traces)]
    for (trace, own), number in numbers.items():
        split[trace][own] = number
    return split


def identity_tables(
    processes: Iterable[Row], threads: Iterable[Row], devices: Iterable[Row], notes: Notes | None = None
) -> dict[str, pa.Table]:
    """Return the three tables, from rows in the order of their numbers; ``notes`` as in :func:`rows_to_table`."""
    rows = {"devices": devices, "processes": processes, "threads": threads}
    return {name: rows_to_table(name, numbered_rows(name, rows[name]), notes) for name in rows}


def compute_capability(major: int | None, minor: int | None) -> str | None:
    """Return the version of an NVIDIA GPU's architecture as CUDA writes it, ``8.0``; ``None`` if a part is unknown."""
    return None if major is None or minor is None else f"{major}.{minor}"
