"""Ranks that names of files and folders state."""

from __future__ import annotations

import re

RANK_IN_NAME = re.compile(r"(?i)(?<![a-z])rank[-_ ]?(\d{1,6})(?!\d)")
"""How names of files and folders state the rank: ``rank0.json``, ``run_rank-3.nsys-rep``, ``rank 12/trace.json``."""


def rank_in_name(name: str) -> int | None:
    """The rank that the name or path of a trace states, nearest to its end; ``None`` where it states none."""
    ranks = RANK_IN_NAME.findall(name)
    return int(ranks[-1]) if ranks else None
