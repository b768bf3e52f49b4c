"""Units of what nvprof prints."""

from __future__ import annotations

TIMES = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
"""Nanoseconds in a unit of time."""
SIZES = {"B": 1.0, "KB": 1024.0, "MB": 1024.0**2, "GB": 1024.0**3, "TB": 1024.0**4}
"""Bytes in a unit of memory: nvprof's kilobyte has 1024 of them."""
COUNTS = {"": 1.0}
"""Numbers without a unit."""
UNITS = frozenset({*TIMES, *SIZES, *(f"{size}/s" for size in SIZES), "%", "W", "C", "MHz"})
"""What a row of units can hold."""
