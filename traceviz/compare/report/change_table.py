"""Tables of changes: each column has a function that takes its value from a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from traceviz.compare.effect import Ends
from traceviz.core.units import Unit, Value, format_change, format_ns
from traceviz.report import Block, Column, Grid

C = TypeVar("C")
D = TypeVar("D")

Cell = tuple[Column, Callable[[C], Value]]
"""A column of changes, and the function for a change's value in it."""
Blocks = tuple[list[Block], str]
"""Blocks of a pair, and the reason if there is nothing to compare, else empty."""

FAR = 10.0
"""Multiple of the base above which a change is shown only as "more than" this."""


def change_table(cells: Sequence[Cell[C]], changes: Iterable[C], title: str, *, complete: bool = False) -> Grid:
    """Make a table with a row for each change."""
    values = [value_of for _, value_of in cells]
    rows = tuple(tuple(value_of(change) for value_of in values) for change in changes)
    return Grid(tuple(column for column, _ in cells), rows, title, complete=complete)


def of_part(part_of: Callable[[D], C | None], cells: Iterable[Cell[C]]) -> tuple[Cell[D], ...]:
    """Make cells of a change from cells of a part of it; they are empty if it has no such part."""

    def of_whole(value_of: Callable[[C], Value]) -> Callable[[D], Value]:
        return lambda change: None if (part := part_of(change)) is None else value_of(part)

    return tuple((column, of_whole(value_of)) for column, value_of in cells)


def change_words(base: float | None, new: float | None, unit: Unit, ratio: float | None) -> str:
    """Format a change as ``+3 points`` for a share, else in percent: "+10 %" of 20 % could be read as 30 %."""
    if unit == "ratio" and base is not None and new is not None:
        return f"{format_change(round((new - base) * 100, 1), 'number')} points"
    return format_change(ratio, "ratio")


def percent_ends(interval: Ends, unit: str = "") -> tuple[str, str]:
    """Format the ends of an interval of shares in percent, ``−71.8``; an end beyond tenfold as ``>+1000`` and
    ``unit``.
    """
    low, high = (format_change(end, "ratio") if end <= FAR else f">+{FAR * 100:.0f}{unit}" for end in interval)
    return low.removesuffix(" %"), high


def from_to(base_ns: float, new_ns: float) -> str:
    """Format two durations: ``1.00 → 3.00 ms``, ``none → 3.00 ms``; show the unit once if it is the same."""
    if not base_ns or not new_ns:
        return f"{format_ns(base_ns) if base_ns else 'none'} → {format_ns(new_ns) if new_ns else 'none'}"
    base, new = format_ns(base_ns), format_ns(new_ns)
    number, _, unit = base.rpartition(" ")
    return f"{number if unit == new.rpartition(' ')[2] else base} → {new}"
