"""Arrivals of the ranks at their collectives, and their waits there for one another.

A collective ends on all ranks at about the same time, independent of their arrivals. So the n-th collective of a group
is aligned on its end. This also shows the difference between the clocks of the ranks::

    rank 0   |---wait---|--transfer--|        arrived first
    rank 1          |wait|--transfer--|       its clock is a little late: all its ends differ by the same time
    rank 2              |--transfer--|        arrived last: starts the transfer, and waits for no other rank

*Skew* of a rank is its arrival after the first rank's. The *transfer* is the shortest duration over the ranks. The rest
of a rank's time in the collective is its *wait*.

Processes of one machine share its clock, and need no such alignment. A rank then waits in a collective of the host
until the last one has arrived. Its time after that is its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.device.work import communication_names
from traceviz.analyses.derived.frames import knowing
from traceviz.analyses.derived.host.collectives import joint_collectives
from traceviz.analyses.derived.view import TraceView

POINT_TO_POINT = r"(?i)(^|:)i?(send|recv)(any_?source)?$|send_?recv"
"""Transfers between two ranks. Each has a partner of its own, so the n-th transfers of two ranks are not the same."""

ONE_RUN = "run.duration_ns"
"""Setting that every run of ``traceviz collect`` states, with a different value for each run."""

LEAST_TOLERANCE_NS = 100_000
"""Ends that differ by less count as aligned, even if collectives follow each other closely."""

_KEY = ("group", "name")
_ROWS = {
    "process_id": pl.Int32,
    "group": pl.String,
    "name": pl.String,
    "group_size": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class Skew:
    """Collectives that several ranks have in common.

    Args:
        arrivals: One row per collective and rank: ``process_id, group, name, index, start_ns, dur_ns, skew_ns, wait_ns,
            transfer_ns, last`` (true if the rank arrived last), by collective.
        clock_ns: Time by which the clock of each rank leads the others', by ``process_id``, without ranks that could
            not be compared.
        unequal: Groups and names with different numbers of collectives on the ranks. The number that all have was
            compared, from the first on or up to the last.
        unaligned: Ranks whose collectives do not end together with those of the others, by ``process_id``.
        ambiguous: Groups with fewer members than ranks that name them.
        point_to_point: Transfers between two ranks, which are not compared.
        one_clock: True if the ranks share the clock of a machine, so that nothing was aligned.
    """

    arrivals: pl.DataFrame
    clock_ns: dict[int, int]
    unequal: int = 0
    unaligned: tuple[int, ...] = ()
    ambiguous: int = 0
    point_to_point: int = 0
    one_clock: bool = False

    @property
    def collectives(self) -> int:
        """Number of collectives compared."""
        return self.arrivals.select(*_KEY, "index").n_unique() if self.arrivals.height else 0


def collective_skew(trace: TraceView, tolerance: float) -> Skew:
    """Compare the arrivals of the ranks at their common collectives.

    Args:
        trace: The trace.
        tolerance: Ends that differ by at least this share of the time between collectives are not aligned.
    """
    calls = collective_calls(trace)
    paired = calls["name"].str.contains(POINT_TO_POINT)
    comparable = calls.filter(~paired)
    counts = comparable.group_by(*_KEY, "process_id").agg(pl.len(), pl.col("group_size").first())
    groups = counts.group_by(_KEY).agg(
        pl.len().alias("ranks"),
        pl.col("len").min().alias("shared"),
        (pl.col("len").n_unique() > 1).alias("unequal"),
        (pl.col("group_size").max() < pl.len()).fill_null(value=False).alias("ambiguous"),
    )
    usable = groups.filter((pl.col("ranks") > 1) & ~pl.col("ambiguous"))
    matched, clock, unaligned = _matched(comparable.join(usable.select(*_KEY, "shared", "unequal"), on=_KEY), tolerance)
    one_clock = share_a_clock(trace)
    if one_clock:
        # Ends of one collective differ by the time that the slower rank needs for its part, and those of different
        # collectives by the time between them. So the n-th collective of a rank that is further apart is another one.
        first, last = pl.col("start_ns").min(), pl.col("start_ns").max()
        between = matched.group_by("process_id").agg((last - first) / (pl.len() - 1).clip(1))
        half = dict(between.select("process_id", pl.col("start_ns") / 2).iter_rows())
        apart = [rank for rank, offset in clock.items() if abs(offset) > max(half[rank], LEAST_TOLERANCE_NS)]
        clock = {rank: 0 for rank in clock if rank not in apart}
        unaligned = tuple(sorted({*unaligned, *apart}))
    return Skew(
        arrivals=_arrivals(matched, clock, one_clock=one_clock),
        clock_ns=clock,
        unequal=int(usable["unequal"].sum()),
        unaligned=unaligned,
        ambiguous=int(groups["ambiguous"].sum()),
        point_to_point=int(paired.sum()),
        one_clock=one_clock,
    )


def share_a_clock(trace: TraceView) -> bool:
    """Return whether one run of ``traceviz collect`` recorded the collectives on one host.

    Settings of such a run belong to the capture. If several runs were merged, they belong to the processes of each.
    """
    if trace.tables.run_facts().get("format") != "run" or trace.rank_busy:
        return False
    stated = trace.frame("settings", "key", "process_id").filter(pl.col("process_id").is_null())
    return ONE_RUN in set(stated["key"].cast(pl.String))


def collective_calls(trace: TraceView) -> pl.DataFrame:
    """Return collectives of all ranks, in order of start: those of devices, else those of the host.

    Those of devices come from the trace's descriptions, else from its communication kernels.

    Columns ``process_id, group, name, group_size, start_ns, end_ns``; ``group`` is empty if it is not known.
    """
    calls = trace.frame("collectives", "process_id", "group", "name", "group_size", "start_ns", "dur_ns")
    kernels = trace.frame("kernels", "process_id", "name", "start_ns", "dur_ns")
    kernels = kernels.filter(pl.col("name").cast(pl.String).is_in(communication_names(trace)))
    unknown = (pl.lit("").alias("group"), pl.lit(None, pl.Int32).alias("group_size"))
    if set(kernels["process_id"]) - set(calls["process_id"]):  # if a rank has no descriptions, all ranks use kernels
        calls = kernels.with_columns(*unknown)
    if not calls.height:
        calls = joint_collectives(trace).with_columns(*unknown)
    if "end_ns" not in calls.columns:
        calls = knowing(calls, "dur_ns").with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"))
    rows = calls.with_columns(pl.col("group").cast(pl.String).fill_null(""), pl.col("name").cast(pl.String))
    return rows.select(pl.col(name).cast(kind) for name, kind in _ROWS.items()).sort("start_ns", "end_ns")


def _matched(calls: pl.DataFrame, tolerance: float) -> tuple[pl.DataFrame, dict[int, int], tuple[int, ...]]:
    """Return calls with their ``index`` within rank, group and name, and the result of :func:`_aligned_clocks`.

    If ranks have different numbers of calls, a capture started or ended between the same call on two ranks. Calls are
    then counted from the first on, or back from the last. The better choice aligns more ranks, with clocks closer
    together.
    """
    place = pl.int_range(pl.len()).over("process_id", *_KEY)
    forwards = calls.with_columns(place.alias("index")).filter(pl.col("index") < pl.col("shared"))
    first = (forwards, *_aligned_clocks(forwards, tolerance))
    if not calls["unequal"].any():
        return first
    back = place - pl.len().over("process_id", *_KEY).cast(pl.Int64)
    backwards = calls.with_columns(back.alias("index")).filter(pl.col("index") >= -pl.col("shared").cast(pl.Int64))
    matches = (first, (backwards, *_aligned_clocks(backwards, tolerance)))
    return min(matches, key=lambda match: (len(match[2]), max(map(abs, match[1].values()), default=0)))


def _aligned_clocks(matched: pl.DataFrame, tolerance: float) -> tuple[dict[int, int], tuple[int, ...]]:
    """Return the offset of the clock of each rank, and ranks whose ends are not aligned with those of most others."""
    parts = [part for _, part in sorted(matched.partition_by("process_id", as_dict=True, maintain_order=True).items())]
    best: dict[int, int] = {}
    rest = parts
    while len(rest) > len(best):
        clock, rest = _clock_of_first(rest, tolerance)
        best = max(best, clock, key=len)
    processes = (int(part["process_id"][0]) for part in parts)
    return best, tuple(process for process in processes if process not in best)


def _clock_of_first(waiting: list[pl.DataFrame], tolerance: float) -> tuple[dict[int, int], list[pl.DataFrame]]:
    """Return offsets against the first rank, and the calls of the ranks whose ends are not aligned with it.

    A rank joins as soon as it shares collectives with those that have joined. The median difference of the ends is its
    offset. Ranks that share none with any other have no common clock, and need none.
    """
    instance = (*_KEY, "index")
    clock: dict[int, int] = {}
    unaligned: list[pl.DataFrame] = []
    known = pl.DataFrame(schema={"group": pl.String, "name": pl.String, "index": pl.Int64, "common_ns": pl.Int64})
    waiting = list(waiting)
    while waiting:
        shared = (part.join(known, on=instance) for part in waiting)
        place, both = next(((at, frame) for at, frame in enumerate(shared) if frame.height), (0, None))
        part = waiting.pop(place)
        apart = both["end_ns"] - both["common_ns"] if both is not None else pl.Series([0])
        offset = _median(apart)
        if _median((apart - offset).abs()) > max(LEAST_TOLERANCE_NS, tolerance * _median(part["end_ns"].diff())):
            unaligned.append(part)
            continue
        clock[int(part["process_id"][0])] = offset
        own = part.select(*instance, (pl.col("end_ns") - offset).alias("common_ns"))
        known = pl.concat([known, own.join(known, on=instance, how="anti")])
    return clock, unaligned


def _median(values: pl.Series) -> int:
    return round(float(values.median() or 0))  # type: ignore[arg-type]


def _arrivals(matched: pl.DataFrame, clock: dict[int, int], *, one_clock: bool) -> pl.DataFrame:
    """Return skew, wait and transfer of each rank in each collective with at least two ranks left."""
    instance = (*_KEY, "index")
    offset = pl.col("process_id").replace_strict(clock, default=None, return_dtype=pl.Int64)
    duration = pl.col("end_ns") - pl.col("start_ns")
    rows = matched.with_columns((pl.col("start_ns") - offset).alias("at_ns"), duration.alias("dur_ns"))
    rows = rows.filter(pl.col("at_ns").is_not_null()).filter(pl.len().over(instance) > 1)
    first, transfer = pl.col("at_ns").min().over(instance), pl.col("dur_ns").min().over(instance)
    latest = pl.col("at_ns").max().over(instance)
    until_all_are_there = pl.min_horizontal(latest - pl.col("at_ns"), pl.col("dur_ns"))
    return rows.select(
        "process_id",
        *instance,
        "start_ns",
        "dur_ns",
        (pl.col("at_ns") - first).alias("skew_ns"),
        (until_all_are_there if one_clock else pl.col("dur_ns") - transfer).alias("wait_ns"),
        transfer.alias("transfer_ns"),
        ((pl.col("at_ns") == latest) & (latest > first)).alias("last"),
    ).sort(*instance, "process_id")
