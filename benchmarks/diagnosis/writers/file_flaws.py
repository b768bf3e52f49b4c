"""Flaws of files, as copies that were cut off and tools that merge traces leave them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

LEAST_KEPT, MOST_KEPT = 0.75, 0.98
"""Share of a file that is left if its end is missing."""


def cut_end(paths: list[Path], random: Random) -> None:
    """Cut off the end of each file."""
    for path in paths:
        content = path.read_bytes()
        path.write_bytes(content[: round(len(content) * random.uniform(LEAST_KEPT, MOST_KEPT))])


def merge_ranks(paths: list[Path], random: Random) -> list[Path]:
    """Merge JSON files of ranks into one, as scripts do: they change the numbers of processes, and nothing else.

    Numbers of calls, operators and devices stay as they are in each file.
    """
    has_prefix = random.random() < 0.5
    merged: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    for rank, path in enumerate(paths):
        content = path.read_bytes()
        document = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
        for event in document.pop("traceEvents"):
            if "pid" in event:
                pid = event["pid"]
                if has_prefix or not isinstance(pid, int):
                    event["pid"] = f"[TP00-DP{rank:02}-PP00-EP00] {pid}"
                else:
                    event["pid"] = 1_000_000 * (rank + 1) + pid
            events.append(event)
        merged = document | merged
        path.unlink()
    target = paths[0].with_name("merged.json")
    target.write_text(json.dumps(merged | {"traceEvents": events}))
    return [target]
