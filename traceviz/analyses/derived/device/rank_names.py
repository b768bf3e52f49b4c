"""The ranks in a trace, and the number of ranks of the job."""

from __future__ import annotations

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
