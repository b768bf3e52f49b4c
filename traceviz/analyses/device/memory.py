"""Memory: the peak of every pool, its holders, whether it is nearly exhausted, and whether it grows step by step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, by_knowledge, finding, known
from traceviz.analyses.derived.calls.op_names import parsed_ops
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.pools import Pool, live_at, pool_events
from traceviz.core.units import format_ratio, format_value
from traceviz.report import Column, Fact, Finding, Grid, Lane, Prose, Section, Skipped, Timeline, hide_columns


@dataclass(frozen=True, slots=True)
class PoolUse:
    """One pool of memory over the capture; amounts in bytes.

    Args:
        pool: The pool.
        peak_bytes: Most that was in use at once within the capture.
        peak_at_ns: Time when the peak was first reached.
        available_bytes: Memory that the pool could still give then; ``None`` if the trace does not state it.
        reserved_bytes: Most that the allocator held of its device; ``None`` if the trace does not state it.
        unused_reserved: Memory held but unused at the peak: cached blocks and fragments.
        lifetime_peak_bytes: Most that was ever in use, including the time before the capture; ``None`` if not known.
        allocations: Allocations in the capture.
        frees: Releases in the capture.
        allocated_bytes: Sum of the allocations.
        growth_bytes: Amount that one steady step adds to the pool and no later one returns; 0 if it does not grow.
        steps: Steady steps that the growth was judged on; 0 if there are too few.
        timeline: Share of the capacity in use per equal slice, of the peak if the capacity is not known.
        holders: Holders of the peak: ``op, allocations, bytes``, the largest first.
    """

    pool: Pool
    peak_bytes: int
    peak_at_ns: int
    available_bytes: int | None
    reserved_bytes: int | None
    unused_reserved: int | None
    lifetime_peak_bytes: int | None
    allocations: int
    frees: int
    allocated_bytes: int
    growth_bytes: int
    steps: int
    timeline: tuple[float | None, ...]
    holders: pl.DataFrame

    @property
    def capacity_bytes(self) -> int | None:
        """Capacity of the pool: memory in use plus available at the peak, else the memory of its device."""
        return self.pool.device_bytes if self.available_bytes is None else self.peak_bytes + self.available_bytes

    @property
    def highest_bytes(self) -> int:
        """Most that the pool took of its capacity.

        If the allocator reserves memory of the device, the amount that it reserved, since others cannot use it. Else
        the highest use in the capture, or before it if the capacity is fixed.
        """
        earlier = (self.lifetime_peak_bytes or 0) if self.pool.fixed else 0
        return max(self.peak_bytes, self.reserved_bytes or 0, earlier)

    @property
    def used_share(self) -> float | None:
        """:attr:`highest_bytes` as a share of the capacity; ``None`` if the capacity is not known."""
        return ratio(min(self.highest_bytes, self.capacity_bytes), self.capacity_bytes) if self.capacity_bytes else None


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Every pool, those of devices first and the largest peak first, and the captured time."""

    pools: tuple[PoolUse, ...]
    window: tuple[int, int]


@dataclass(frozen=True, slots=True)
class MemoryAnalysis(Analysis[MemoryUse]):
    """Peak, holders and growth of each allocator's memory.

    Args:
        exhausted_share: From this share of its capacity on, a device pool is nearly exhausted.
        reserved_share: The same share if the capacity is only known as the memory of the device. The device's context
            and other processes take some of it, too.
        growth_steps: Growth is judged only with at least this many steady steps.
        growth_share: The pool grows if its use rises in at least this share of the steady steps,
        growth_bytes: and by at least this much per step.
        slices: Slices of the timeline.
        holders: Ops listed as holding a peak, per pool.
    """

    slug = "memory"
    title = "Memory"
    rules = ("TV402", "TV403")

    exhausted_share: float = 0.95
    reserved_share: float = 0.90
    growth_steps: int = 5
    growth_share: float = 0.9
    growth_bytes: int = 65_536
    slices: int = 60
    holders: int = 20

    def run(self, trace: TraceView) -> MemoryUse | Skipped:
        """Follow the use of each pool."""
        pools = pool_events(trace)
        if not pools:
            return self.skipped("no memory was allocated or released during the capture")
        uses = [self._use(trace, pool, events) for pool, events in pools]
        ordered = sorted(uses, key=lambda use: (not use.pool.on_device, -use.peak_bytes, use.pool.label))
        return MemoryUse(tuple(ordered), trace.program_window)

    def _use(self, trace: TraceView, pool: Pool, events: pl.DataFrame) -> PoolUse:
        at = int(events["in_use_bytes"].to_numpy().argmax())
        peak = events.row(at, named=True)
        allocations = having(events, "kind", "alloc")
        steps = having(training_steps(trace).steady, "process_id", pool.process_id)
        reserved = peak["reserved_bytes"] if pool.on_device else None
        states_available = peak["available_bytes"] is not None
        has_plain_names = "pytorch" in trace.frameworks  # aten::conv2d
        capacity = peak["in_use_bytes"] + (peak["available_bytes"] or 0) if states_available else pool.device_bytes
        return PoolUse(
            pool=pool,
            peak_bytes=int(peak["in_use_bytes"]),
            peak_at_ns=int(peak["start_ns"]),
            available_bytes=int(peak["available_bytes"]) if states_available else None,
            reserved_bytes=_highest(events["reserved_bytes"]) if pool.on_device else None,
            unused_reserved=None if reserved is None else max(int(reserved) - int(peak["in_use_bytes"]), 0),
            lifetime_peak_bytes=_highest(events["peak_bytes"]),
            allocations=allocations.height,
            frees=events.height - allocations.height,
            allocated_bytes=int(allocations["bytes"].sum()),
            growth_bytes=self._growth(events, steps),
            steps=steps.height if steps.height >= self.growth_steps else 0,
            timeline=_timeline(events, trace.program_window, capacity or int(peak["in_use_bytes"]), self.slices),
            holders=_holders(events, at, plain=has_plain_names).head(self.holders),
        )

    def _growth(self, events: pl.DataFrame, steps: pl.DataFrame) -> int:
        """Return the median rise of the use from the end of one steady step to the next, if it rises steadily."""
        if steps.height < self.growth_steps:
            return 0
        times, use = events["start_ns"].to_numpy(), events["in_use_bytes"].to_numpy()
        last = np.searchsorted(times, steps["end_ns"].sort().to_numpy(), side="left") - 1
        rises = np.diff(use[last[last >= 0]])
        if rises.size + 1 < self.growth_steps or (rises > 0).mean() < self.growth_share:
            return 0
        typical = int(np.median(rises))
        return typical if typical >= self.growth_bytes else 0

    def judge(self, result: MemoryUse) -> tuple[Finding, ...]:
        """Return findings on device memory that is nearly exhausted, and on pools that grow with every step."""
        full = []
        for use in result.pools:
            least = self.reserved_share if use.available_bytes is None else self.exhausted_share
            if use.pool.on_device and (use.used_share or 0) >= least:
                full.append(use)
        growing = [use for use in result.pools if use.growth_bytes]
        return (*_exhausted(full), *_grows(growing))

    def describe(self, result: MemoryUse) -> Section:
        """Describe the largest peak, every pool, its use over time, and the holders of the peak."""
        top = result.pools[0]
        facts = (
            Fact("peak_bytes", f"peak in use, {top.pool.label}", top.peak_bytes, "bytes"),
            Fact("peak_at_ns", "reached at", top.peak_at_ns, "ns"),
            Fact("capacity_bytes", "capacity", top.capacity_bytes, "bytes"),
            Fact("used_share", "highest use, of capacity", top.used_share, "ratio"),
            Fact("reserved_bytes", "most reserved of the device", top.reserved_bytes, "bytes"),
            Fact("unused_reserved", "reserved and unused at the peak", top.unused_reserved, "bytes"),
            Fact("allocations", "allocations, all pools", sum(use.allocations for use in result.pools), "count"),
        )
        lanes = tuple(
            Lane(use.pool.label if use.capacity_bytes else f"{use.pool.label}, of its peak", use.timeline)
            for use in result.pools
        )
        holders = tuple(
            (op, use.pool.label, count, held, ratio(min(held, use.peak_bytes), use.peak_bytes))
            for use in result.pools
            for op, count, held in use.holders.iter_rows()
        )
        # Each pool has a peak of its own: shares of several peaks do not add up.
        of_peak = Column("share_of_peak", "Of peak", "ratio", 1, additive=len(result.pools) == 1)
        held = (Grid((*_HOLDER_COLUMNS, of_peak), holders, "What held the memory at the peak"),) if holders else ()
        rows = tuple(
            (
                *(use.pool.label, use.peak_bytes, use.peak_at_ns, use.capacity_bytes, use.used_share),
                *(use.reserved_bytes, use.unused_reserved),
                *(use.lifetime_peak_bytes, use.allocations, use.frees, use.allocated_bytes, use.growth_bytes),
            )
            for use in result.pools
        )
        is_judged = any(use.steps for use in result.pools)
        pools = Grid(_COLUMNS if is_judged else hide_columns(_COLUMNS, {"growth_bytes"}), rows)
        timeline = Timeline("Use of capacity over the capture", *result.window, lanes)
        return Section(self.slug, self.title, (*by_knowledge(facts), *_caveat(result.pools), pools, timeline, *held))


_COLUMNS = (
    Column("pool", "Pool", "text", 0),
    Column("peak_bytes", "Peak", "bytes", 0),
    Column("peak_at_ns", "At", "ns", 3),
    Column("capacity_bytes", "Capacity", "bytes", 1),
    Column("used_share", "Highest use", "ratio", 1, bar=True, additive=False),
    Column("reserved_bytes", "Reserved", "bytes", 2),
    Column("unused_reserved", "Unused of it", "bytes", 3),
    Column("lifetime_peak_bytes", "Peak since start", "bytes", 4),
    Column("allocations", "Allocations", "count", 2),
    Column("frees", "Releases", "count", 5),
    Column("allocated_bytes", "Allocated", "bytes", 5),
    Column("growth_bytes", "Growth per step", "bytes", 4),
)

_HOLDER_COLUMNS = (
    Column("op", "Op", "text", 0),
    Column("pool", "Pool", "text", 2),
    Column("allocations", "Allocations", "count", 1),
    Column("bytes", "Held", "bytes", 0, additive=True),
)


def _caveat(pools: tuple[PoolUse, ...]) -> tuple[Prose, ...]:
    """Return a note on the figures if the trace states amounts only, and not the use of a pool."""
    counted = [use.pool.label for use in pools if use.pool.counted]
    if not counted:
        return ()
    return (
        Prose(
            f"The trace does not state how much of {' and '.join(counted)} was in use. The figures add up what was "
            "allocated and released since the capture began: lower bounds, as what was held before is not known."
        ),
    )


ROUNDING = 0.01
"""Allocations may exceed the use of their pool by this share."""

BEFORE = "allocated before the capture"
"""Holder of memory at the peak that was allocated before the capture, mostly weights."""


def _highest(values: pl.Series) -> int | None:
    highest = values.max()
    return None if highest is None else int(highest)  # type: ignore[arg-type]


def _holders(events: pl.DataFrame, at: int, *, plain: bool) -> pl.DataFrame:
    """Return live allocations right after event ``at`` by op, and the rest of the use: ``op, allocations, bytes``.

    Without addresses, releases cannot be matched to allocations. If more is live than the pool states as in use,
    several allocators share a name. The holders of one of them are then not known.
    """
    live = live_at(events, at)
    parsed = parsed_ops(live["op"])
    names = parsed.select(pl.col("text").alias("op"), pl.col("text" if plain else "op").alias("name"))
    named = live.join(names, on="op", how="left").with_columns(pl.col("name").fill_null("op not recorded").alias("op"))
    rows = named.group_by("op").agg(pl.len().cast(pl.Int64).alias("allocations"), pl.col("bytes").sum())
    if events["address"].null_count() == events.height:
        return rows.clear()
    unseen = int(events["in_use_bytes"][at]) - int(live["bytes"].sum())
    if -unseen > ROUNDING * int(events["in_use_bytes"][at]):
        return rows.clear()
    if unseen > 0:
        rows = pl.concat([rows, pl.DataFrame([(BEFORE, None, unseen)], rows.schema, orient="row")])
    return rows.sort("bytes", "op", descending=[True, False])


def _timeline(events: pl.DataFrame, window: tuple[int, int], whole: int, slices: int) -> tuple[float | None, ...]:
    """Return the highest use in each slice of ``window`` as a share of ``whole``; the last use if it has no events.

    Before the first event the use is not known.
    """
    begin, end = window
    if end <= begin or whole <= 0:
        return (None,) * slices
    times, use = events["start_ns"].to_numpy(), events["in_use_bytes"].to_numpy()
    slot = np.clip((times - begin) * slices // (end - begin), 0, slices - 1)
    highest = np.full(slices, -1, dtype=np.int64)
    np.maximum.at(highest, slot, use)
    last = np.searchsorted(slot, np.arange(slices), side="left") - 1  # the last event before each slice
    carried = np.where(last >= 0, use[np.maximum(last, 0)], -1)
    values = np.maximum(highest, carried)
    return tuple(min(float(value) / whole, 1.0) if value >= 0 else None for value in values)


def _exhausted(full: list[PoolUse]) -> tuple[Finding, ...]:
    """Return a finding about the fullest device pool."""
    if not full:
        return ()
    worst = max(full, key=lambda use: use.used_share or 0)
    taken = "reserved" if worst.reserved_bytes is not None else "in use"
    if worst.unused_reserved:
        taken += f" ({format_value(worst.unused_reserved, 'bytes')} of it unused at the peak)"
    message = (
        f"{worst.pool.label} has had {format_ratio(worst.used_share or 0)} of its "
        f"{format_value(worst.capacity_bytes, 'bytes')} {taken}: a slightly larger batch may not fit."
    )
    evidence = (
        Fact("highest_bytes", "highest use", worst.highest_bytes, "bytes"),
        Fact("capacity_bytes", "capacity", worst.capacity_bytes, "bytes"),
        Fact("unused_reserved", "reserved and unused at the peak", worst.unused_reserved, "bytes"),
        Fact("pools", "device pools this full", len(full), "count"),
    )
    # No time is at stake, so there is no share
    return (replace(finding("TV402", message, known(evidence), 0, 0, ""), share=None),)


def _grows(growing: list[PoolUse]) -> tuple[Finding, ...]:
    """Return a finding about the pool that grows most."""
    if not growing:
        return ()
    worst = max(growing, key=lambda use: use.growth_bytes)
    growth = format_value(worst.growth_bytes, "bytes")
    message = f"{worst.pool.label} grows by {growth} with every step and returns nothing."
    evidence = (
        Fact("growth_bytes", "growth per step", worst.growth_bytes, "bytes"),
        Fact("steps", "steady steps", worst.steps, "count"),
        Fact("available_bytes", "still available at the peak", worst.available_bytes, "bytes"),
        Fact("pools", "pools that grow", len(growing), "count"),
    )
    return (finding("TV403", message, evidence, 0, 0, ""),)
