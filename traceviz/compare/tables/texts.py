"""Figures of tables in words."""

from __future__ import annotations

from traceviz.core.units import Unit, format_value


def interval_words(low: float | None, high: float | None, unit: Unit) -> str | None:
    """``180 to 204 µs``; ``None`` where there is no interval."""
    if low is None or high is None:
        return None
    first, last = format_value(low, unit), format_value(high, unit)
    number, space, name = first.rpartition(" ")
    return f"{number if space and name == last.rpartition(' ')[2] else first} to {last}"


def in_capital(text: str) -> str:
    """``Mean step``."""
    return text[:1].upper() + text[1:]
