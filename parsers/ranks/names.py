"""Ranks in names of files and folders."""

from __future__ import annotations

import re

RANK_IN_NAME = re.compile(r"(?i)(?<![a-z])rank[-_ ]?(\d{1,6})(?!\d)")
"""Pattern of the rank in names of files and folders: ``rank0.json``, ``run_rank-3.nsys-rep``, ``rank 12``."""


def rank_in_name(name: str) -> int | None:
    """Return the rank in the name or path of a trace, nearest to its end; ``None`` if there is none."""
    ranks = RANK_IN_NAME.findall(name)
    return int(ranks[-1]) if ranks else None
