"""Processor cores that this process may use."""

from __future__ import annotations

import os


def usable_core_numbers() -> tuple[int, ...]:
    """Return the numbers of the cores that this process may use; empty if the system does not report them."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1."""
    return len(usable_core_numbers()) or os.cpu_count() or 1
