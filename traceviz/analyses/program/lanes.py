"""Lanes of traces that any program may write: busy time, and the event with most of it.

Such a trace does not describe its lanes. They may be threads of a program, queues of a device, workers of a job, or
units of a simulated machine. So each lane is judged by itself, and none counts as the leading one. Lanes whose names
differ in numbers only are of one kind, and are compared. Nothing was recorded only while no lane works.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.calls.call_tree import CallTree, innermost
from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.capture.kind import capture_kind
from traceviz.analyses.derived.frames import end_ns
from traceviz.analyses.derived.statistics import frame_grid, ratio, share
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.units import format_ratio
from traceviz.report import Column, Fact, Facts, Finding, Section, Skipped
from traceviz.report.findings.record import ERROR_SHARE, WARNING_SHARE


@dataclass(frozen=True, slots=True)
class LongestLane:
    """A lane that works much longer than all others of its kind, which are like each other.

    Args:
        lane: Its name.
        busy_ns: Its busy time.
        others: Number of the other lanes of its kind.
        least_ns: Least busy time of the others.
        most_ns: Most busy time of the others.
    """

    lane: str
    busy_ns: int
    others: int
    least_ns: int
    most_ns: int


@dataclass(frozen=True, slots=True)
class LaneTimes:
    """Lanes and their events.

    Args:
        lanes: ``lane, events, busy_ns, largest, largest_ns`` for every lane, the busiest first.
        events: ``lane, name, calls, self_ns`` for every lane and name, the largest first. ``self_ns`` is time in the
            event without those inside it, and adds up to the lane's busy time.
        captured_ns: Captured time.
        idle_ns: Captured time in which no lane works.
        longest: The lane that works longer than its kind; ``None`` if there is none.
    """

    lanes: pl.DataFrame
    events: pl.DataFrame
    captured_ns: int
    idle_ns: int = 0
    longest: LongestLane | None = None

    @property
    def sentence(self) -> str:
        """Sentences about the lane that works longer than its kind, else the busiest, and about time without events."""
        return " ".join(filter(None, (self._of_longest or self._of_busiest, self._of_idle)))

    @property
    def _of_longest(self) -> str:
        if self.longest is None:
            return ""
        busy, least, most = (
            self._share(time) for time in (self.longest.busy_ns, self.longest.least_ns, self.longest.most_ns)
        )
        others = f"{self.longest.others} other lanes of its kind work in {least} to {most}"
        return f"{shortened(self.longest.lane)} works longest: in {busy} of the captured time; {others}."

    @property
    def _of_busiest(self) -> str:
        lane = self.lanes.row(0, named=True)
        whose = "The busiest lane" if self.lanes.height > 1 else "The lane"
        return (
            f"{whose}, {shortened(lane['lane'])}, works in {self._share(lane['busy_ns'])} of the captured time, most "
            f"of all in {shortened(lane['largest'])} ({self._share(lane['largest_ns'])})."
        )

    @property
    def _of_idle(self) -> str:
        if self.lanes.height < 2 or self.idle_ns < WARNING_SHARE * self.captured_ns:
            return ""
        return f"For {self._share(self.idle_ns)} of the captured time, no lane works."

    def _share(self, time_ns: int) -> str:
        return format_ratio(ratio(time_ns, self.captured_ns) or 0.0)


@dataclass(frozen=True, slots=True)
class LanesAnalysis(Analysis[LaneTimes]):
    """Busy time and largest event of every lane of a trace that no known profiler wrote.

    Args:
        event_share: The busiest lane's largest event is named from this share of the captured time on.
        fold_below: Rows below this share fold into "other" in pictures, never in data.
        least_share: Events with less of the captured time than this are not listed; lanes contain them.
        longer: A lane works longest if it works this many times as long as the median of the others, and
        longer_share: longer by this share of the captured time.
    """

    slug = "lanes"
    title = "Lanes"
    rules = ("TV608",)

    event_share: float = ERROR_SHARE
    fold_below: float = 0.01
    least_share: float = 0.001
    longer: float = 1.25
    longer_share: float = WARNING_SHARE

    def run(self, trace: TraceView) -> LaneTimes | Skipped:
        """Divide the busy time of each lane among its innermost events."""
        if capture_kind(trace).key != "other-program":
            return self.skipped("a profiler wrote the trace, so it is known what its threads are")
        columns = ("start_ns", end_ns(), "thread_id", "op_id", pl.col("name").cast(pl.String))
        tree = CallTree.of(trace.frame("host_ops", *columns))
        segments = innermost(tree)
        rows = pl.DataFrame({"row": segments.owner, "self_ns": segments.ends - segments.starts})
        owned = rows.group_by("row").agg(pl.col("self_ns").sum())
        calls = tree.calls[["thread_id", "name"]].with_columns(pl.Series("row", np.arange(tree.calls.height)))
        # If there are several processes, a lane has the name of its process, too.
        threads = trace.frame("threads", "thread_id", "process_id", "tid", "name")
        processes = trace.frame("processes", "process_id", "pid", pl.col("name").alias("process"))
        joined = threads.join(processes, on="process_id", how="left")
        thread = pl.coalesce("name", pl.format("thread {}", pl.coalesce("tid", "thread_id")))
        process = pl.coalesce("process", pl.format("process {}", pl.coalesce("pid", "process_id")))
        lane = pl.concat_str(process, thread, separator=" / ") if processes.height > 1 else thread
        names = joined.select("thread_id", lane.alias("lane"))
        named = calls.join(owned, on="row", how="left").join(names, on="thread_id", how="left")
        events = (
            named.group_by("thread_id", "lane", "name")
            .agg(pl.len().cast(pl.Int64).alias("calls"), pl.col("self_ns").sum())
            .sort("self_ns", "lane", "name", "thread_id", descending=[True, False, False, False])
        )
        lanes = (
            events.group_by("thread_id", "lane", maintain_order=True)
            .agg(
                pl.col("calls").sum().alias("events"),
                pl.col("self_ns").sum().alias("busy_ns"),
                pl.col("name").first().alias("largest"),
                pl.col("self_ns").first().alias("largest_ns"),
            )
            .sort("busy_ns", "lane", "thread_id", descending=[True, False, False])
        )
        worked = IntervalSet.of(tree.starts, tree.ends).total
        return LaneTimes(
            lanes.drop("thread_id"),
            events.drop("thread_id"),
            trace.captured_ns,
            max(trace.captured_ns - worked, 0),
            self._find_longest(lanes, trace.captured_ns),
        )

    def _find_longest(self, lanes: pl.DataFrame, captured_ns: int) -> LongestLane | None:
        """Return the lane that works longer than all others of its kind, of the kind with most busy time."""
        kinds = lanes.with_columns(pl.col("lane").str.replace_all(r"\d+", "#").alias("kind"))
        busiest = kinds.group_by("kind", maintain_order=True).agg(
            pl.col("lane").first(), pl.col("busy_ns"), pl.col("busy_ns").sum().alias("total_ns")
        )
        for lane, (first, *others) in busiest.sort("total_ns", descending=True)["lane", "busy_ns"].iter_rows():
            if len(others) < 2:
                continue
            median, excess = statistics.median(others), first - statistics.median(others)
            is_longer = excess >= self.longer_share * captured_ns and first >= self.longer * median
            # Lanes that hardly work, or differ among themselves, are no norm
            if is_longer and 2 * (others[0] - others[-1]) <= excess <= 4 * median:
                return LongestLane(lane, first, len(others), others[-1], others[0])
        return None

    def judge(self, result: LaneTimes) -> tuple[Finding, ...]:
        """Return TV608 for the event that takes most of the busiest lane, as a hint."""
        lane = result.lanes.row(0, named=True)
        has_large = lane["largest_ns"] >= self.event_share * result.captured_ns
        if not result.captured_ns or not (has_large or result.longest):
            return ()
        evidence = (
            Fact("lane", "lane", lane["lane"]),
            Fact("busy_ns", "busy", lane["busy_ns"], "ns"),
            Fact("largest", "largest event", lane["largest"]),
            Fact("largest_ns", "its time", lane["largest_ns"], "ns"),
        )
        # The possible gain is not known, because the trace does not describe the lane.
        return (finding("TV608", result.sentence, evidence, 0, result.captured_ns, "captured time"),)

    def describe(self, result: LaneTimes) -> Section:
        """Describe the lanes, and the events in them."""
        whole, busiest = result.captured_ns, int(result.lanes["busy_ns"][0])
        facts = (
            Fact("lanes", "lanes", result.lanes.height, "count"),
            Fact("events", "events", int(result.lanes["events"].sum()), "count"),
            Fact("busiest_share", "the busiest, of captured time", ratio(busiest, whole), "ratio"),
            Fact("no_lane_share", "no lane works, of captured time", ratio(result.idle_ns, whole), "ratio"),
        )
        lanes = (
            Column("lane", "Lane", "text", 0),
            Column("events", "Events", "count", 2),
            Column("busy_ns", "Busy", "ns", 0),
            Column("busy_share", "Of captured time", "ratio", 0, bar=True, additive=False),
            Column("largest", "Most of it", "text", 1),
            Column("largest_ns", "Of it", "ns", 1),
        )
        events = (
            Column("lane", "Lane", "text", 1),
            Column("name", "Event", "text", 0),
            Column("calls", "Calls", "count", 2, additive=True),
            Column("self_ns", "Self", "ns", 0, additive=True),
            Column("self_share", "Of captured time", "ratio", 0, bar=True, additive=False),
        )
        of_lanes = result.lanes.with_columns(share("busy_ns", whole, "busy_share"))
        listed = result.events.filter(pl.col("self_ns") >= self.least_share * whole)  # names may all differ
        of_events = listed.with_columns(share("self_ns", whole, "self_share"))
        blocks = (
            Facts(facts),
            frame_grid(lanes, of_lanes, fold_below=self.fold_below),
            frame_grid(events, of_events, "Events, without those inside", fold_below=self.fold_below),
        )
        return Section(self.slug, self.title, blocks)
