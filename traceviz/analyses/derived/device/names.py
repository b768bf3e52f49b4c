"""Display names of devices, numbers of ranks, and the number of ranks of the job."""

from __future__ import annotations

from collections import Counter

import polars as pl

from traceviz.analyses.derived.frames import knowing
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.view import TraceView

WORLD_SIZE = r"(?i)^(distributedInfo\.)?world_?size$"
"""Keys of the settings that state the number of ranks of the job."""


_LISTED = 8
"""Maximum number of ranks listed individually, if they are not consecutive."""


def rank_numbers(trace: TraceView) -> dict[int, int]:
    """Return the rank of every process of :attr:`TraceView.ranks`; the process number if its rank is not known.

    If processes would share a number, as processes of one program do, every process gets its own number.
    """
    stated = dict(knowing(trace.frame("processes", "process_id", "rank"), "rank").iter_rows())
    numbers = {process: stated.get(process, process) for process in trace.ranks}
    return numbers if len(set(numbers.values())) == len(numbers) else {process: process for process in numbers}


def stated_ranks(trace: TraceView) -> tuple[int, ...]:
    """Return the ranks that the trace states, sorted."""
    return tuple(trace.frame("processes", "rank")["rank"].drop_nulls().unique().sort().to_list())


def in_words(ranks: tuple[int, ...]) -> str:
    """Return sorted rank numbers as text: ``0 to 7``, ``0, 3``; of many, only the first ones."""
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]} to {ranks[-1]}"
    return ", ".join(map(str, ranks[:_LISTED])) + (", ..." if len(ranks) > _LISTED else "")


def world_sizes(trace: TraceView) -> tuple[int, ...]:
    """Return the job sizes that the traces state: one number, unless they contradict each other."""
    stated = trace.frame("settings", "key", "value").filter(matches(pl.col("key"), WORLD_SIZE))
    if not stated.height:
        return ()
    sizes = stated["value"].cast(pl.Int64, strict=False).drop_nulls()
    return tuple(sizes.filter(sizes > 0).unique().sort().to_list())


def device_names(trace: TraceView) -> dict[int, str]:
    """Return a display name of every device in the trace, by ``device_id``: kind, ordinal and product.

    If devices of several hosts or processes would have the same name, the rank that uses them is added.
    """
    names = {}
    for row in trace.tables.arrow("devices").to_pylist():
        number = row["ordinal"] if row["ordinal"] is not None else row["device_id"]
        product = f" {row['name']}" if row["name"] else ""
        names[int(row["device_id"])] = f"{str(row['kind']).upper()} {number}{product}"
    shared = {name for name, count in Counter(names.values()).items() if count > 1}
    if shared:
        ranks = rank_numbers(trace)
        users = {device: ranks[process] for process, device in reversed(trace.owners)}
        names |= {device: f"rank {users[device]} {names[device]}" for device in users if names.get(device) in shared}
    return {**{device: f"device {device}" for device in trace.device_busy}, **names}
