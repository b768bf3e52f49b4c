"""Tables of ranks side by side, and cautions about their figures."""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.statistics import frame_grid
from traceviz.analyses.ranks.rank_times import RanksResult
from traceviz.analyses.ranks.stragglers import LEAST_RANKS
from traceviz.core.units import counted
from traceviz.report import Audience, Column, Grid


def times_grid(result: RanksResult) -> Grid:
    """Return one row per rank: its steps, its own time, and the parts of that."""
    scored = len(result.ranks) >= LEAST_RANKS
    has_steps = any(rank.steps for rank in result.ranks)
    has_slowest = result.imbalance.are_steps and result.imbalance.steps.height
    columns = (
        Column("rank", "Rank", "id", 0),
        Column("steps", "Steps", "count", 3 if has_steps else 9),
        Column("median_step_ns", "Step, median", "ns", 0 if has_steps else 9),
        Column("mean_step_ns", "Step, mean", "ns", 4 if has_steps else 9),
        Column("own_ns", "Own time", "ns", 0),
        Column("busy_share", "Device busy", "ratio", 1),
        Column("compute_share", "Compute", "ratio", 2),
        Column("communication_share", "Exposed comm.", "ratio", 1),
        Column("input_share", "Input wait", "ratio", 1),
        Column("slowest", "Slowest in", "count", 3),
        Column("score", "Score", "number", 3 if scored else 9),
        Column("kernels", "Kernels", "count", 4),
        Column("api_ns", "In CUDA calls", "ns", 5),
        Column("judged_ns", "Judged time", "ns", 5),
    )
    rows = tuple(
        (
            *(rank.rank, rank.steps, rank.median_step_ns, rank.mean_step_ns, None if own is None else round(own)),
            *(rank.share(rank.busy_ns), rank.share(rank.device_compute_ns), rank.share(rank.communication_ns)),
            rank.share(rank.classes["input_wait"]),
            result.imbalance.slowest(rank.process_id) if has_slowest else None,
            *(score if scored else None, rank.kernels, rank.api_ns, rank.judged_ns),
        )
        for rank, own, score in zip(result.ranks, result.own_ns, result.scores, strict=True)
    )
    without = "waiting in collectives" if result.compared else "exposed communication"
    return Grid(columns, rows, f"Own time: per step, without {without}; shares of {result.judged_words}")


def arrivals_grid(result: RanksResult) -> Grid:
    """Return one row per rank: its lateness at collectives, and its wait in them."""
    columns = (
        Column("rank", "Rank", "id", 0),
        Column("collectives", "Collectives", "count", 1),
        Column("median_skew_ns", "Skew, median", "ns", 0),
        Column("last", "Last at", "count", 0),
        Column("wait_ns", "Waits", "ns", 0),
        Column("wait_share", "Of its time", "ratio", 1, bar=True, additive=False),
        Column("clock_ns", "Clock ahead", "ns", 9 if result.skew.one_clock else 2),
    )
    rows = tuple(
        (
            *(rank.rank, rank.arrivals, rank.median_skew_ns, rank.last, rank.wait_ns),
            rank.share(rank.wait_ns),
            result.skew.clock_ns.get(rank.process_id),
        )
        for rank in result.ranks
    )
    audience: Audience = "all" if result.skew.collectives else "machine"
    return Grid(columns, rows, "Arrivals at collectives (skew: after the first rank)", audience=audience)


def collectives_grid(result: RanksResult) -> Grid:
    """Return collectives by group and name; for machines if there is only one."""
    columns = (
        Column("name", "Collective", "text", 0),
        Column("group", "Group", "text", 1),
        Column("calls", "Calls", "count", 1, additive=True),
        Column("transfer_ns", "Transfer", "ns", 0),
        Column("wait_ns", "Waiting, summed over ranks", "ns", 0),
        Column("median_skew_ns", "Last after first, median", "ns", 1),
    )
    instances = result.skew.arrivals.group_by("group", "name", "index").agg(
        pl.col("transfer_ns").first(), pl.col("wait_ns").sum(), pl.col("skew_ns").max()
    )
    grouped = instances.group_by("group", "name").agg(
        pl.len().alias("calls"),
        pl.col("transfer_ns", "wait_ns").sum(),
        pl.col("skew_ns").median().alias("median_skew_ns"),
    )
    ordered = grouped.sort("wait_ns", "group", "name", descending=[True, False, False])
    return frame_grid(columns, ordered, "By collective", audience="all" if ordered.height > 1 else "machine")


def steps_grid(result: RanksResult) -> Grid:
    """Return one row per step that all ranks have, without waiting for others, for machines."""
    numbers = {rank.process_id: rank.rank for rank in result.ranks}
    columns = (
        Column("step", "Step", "id", 0),
        Column("slowest", "Slowest rank", "id", 0),
        Column("max_ns", "Slowest", "ns", 0),
        Column("mean_ns", "Mean", "ns", 0),
    )
    own = result.imbalance.steps if result.imbalance.are_steps else result.imbalance.steps.head(0)
    steps = own[["step", "slowest", "max_ns", "mean_ns"]].iter_rows()
    rows = tuple((step, numbers[slowest], longest, mean) for step, slowest, longest, mean in steps)
    return Grid(columns, rows, "Own times of the steps that all ranks have", audience="machine")


def cautions(result: RanksResult) -> list[str]:
    """List limits of the figures, and how clocks were aligned."""
    captured, skew, texts = len(result.ranks), result.skew, []
    if len(result.worlds) > 1:
        sizes = ", ".join(f"{size:,}" for size in result.worlds)
        texts.append(f"The traces state different numbers of ranks ({sizes}): they may not be of one job.")
    elif result.worlds and result.worlds[0] > captured:
        texts.append(
            f"{captured} of {result.worlds[0]:,} ranks were captured: the others may arrive later, or wait longer."
        )
    if skew.collectives and skew.one_clock:
        texts.append(
            "The ranks ran on one machine, and share its clock: each waits in a collective until the last has arrived."
        )
    elif skew.collectives:
        texts.append(
            "Clocks of the ranks were aligned on the ends of their collectives. Transfer is the shortest duration over "
            "the ranks; what a rank is longer in a collective is its wait."
        )
    if skew.unequal:
        texts.append(
            f"Of {counted(skew.unequal, 'kind')} of collective the ranks recorded different numbers; as many "
            "as all have were compared."
        )
    if skew.unaligned:
        late = ", ".join(str(rank.rank) for rank in result.ranks if rank.process_id in skew.unaligned)
        texts.append(
            f"Collectives do not end together with those of the other ranks, and were not compared: rank {late}."
        )
    if skew.ambiguous:
        texts.append(f"{counted(skew.ambiguous, 'process group')} with more ranks than members: not compared.")
    if not (skew.arrivals.height or skew.point_to_point or skew.unaligned):
        texts.append("No collectives that several ranks have in common were recorded: who waits for whom is not known.")
    if skew.point_to_point and not skew.collectives:
        texts.append("Transfers between two ranks (send, receive) are not compared: each has a partner of its own.")
    return texts
