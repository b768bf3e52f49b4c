"""PyTorch's DataLoader: work in the training process or in workers, and the parts of the wait for it.

PyTorch records every call in which the program takes its next batch, under the name of the loader's iterator. With
``num_workers=0`` (``_SingleProcessDataLoaderIter``) the call itself reads, decodes and collates. These operations lie
within the call on the same thread. With workers (``_MultiProcessingDataLoaderIter``) the call takes a finished batch
out of a queue. Time in it means that no batch was finished::

    single-process   |-- next: read, decode, collate --| training |-- next: ... --| training |
    worker processes |n| training |n| training |n|      n: next, short while the workers keep up
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import bounds, intervals
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import Array, IntervalSet
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import Column, Fact, Finding, Grid
from traceviz.report.findings.registry import record_of

DATALOADER = "DataLoader"
"""Kind of stages that are iterators of PyTorch's DataLoader."""

CODES = ("TV108", "TV109")
"""Rules that this module raises."""

LoaderKind = Literal["single-process", "multi-process"]

LOADERS: dict[str, LoaderKind] = {
    "_SingleProcessDataLoaderIter": "single-process",
    "_MultiProcessingDataLoaderIter": "multi-process",
}
"""Place where a loader works, by the class of its iterator. Annotations of the program may contain the name, too."""

LABELS: dict[LoaderKind, str] = {
    "single-process": "single-process DataLoader (num_workers=0)",
    "multi-process": "multi-process DataLoader",
}

_ADVICE: dict[LoaderKind, tuple[str, ...]] = {
    "single-process": (
        (
            "PyTorch: set num_workers > 0 in the DataLoader (about the number of free cores): now the training process "
            "itself reads, decodes and collates each batch, and nothing else happens at that time."
        ),
        "PyTorch: keep the workers between epochs (persistent_workers=True); prefetch_factor: more batches.",
    ),
    "multi-process": (
        (
            "PyTorch: raise num_workers of the DataLoader towards the number of free cores: its workers are slower "
            "than the training."
        ),
        "PyTorch: a larger prefetch_factor evens out batches that take unequal time to prepare.",
    ),
}
_FEW_LONG = (
    (
        "PyTorch: keep the workers between epochs (persistent_workers=True): the time was lost in few long waits, as "
        "when workers start."
    ),
    "PyTorch: if the long waits are not the first of an epoch, a larger prefetch_factor evens out slow batches.",
)
"""Advice on workers that keep up except in few calls: more of them would start as slowly."""
_CHEAPER = "Do less per sample: cache decoded data in memory or on disk, decode at the size needed, preprocess offline."
_ON_DEVICE = "Move augmentation to the device: whole batches at once (torchvision.transforms.v2, NVIDIA DALI)."

RARE_SHARE = 0.25
"""Long waits are rare if less than this share of the calls, or a single one, is long. Four workers that deliver their
batches at the same time make every fourth call long."""
RARE_FACTOR = 10
"""A wait is long if it takes this many times the median call."""


@dataclass(frozen=True, slots=True)
class LoaderUse:
    """Calls that take batches from the loaders of one kind, in steady steps, over all ranks.

    Args:
        kind: Place where the loaders work.
        calls: Number of batches taken.
        total_ns: Time in these calls.
        waited_ns: The part of it in which no device worked, so that the steps waited.
        median_ns: Median duration of a call.
        longest_ns: Duration of the longest call.
        rare_calls: Number of calls that are much longer than the others, if these are few; else 0.
        rare_ns: Wait in them.
        inside: Operations in the calls by name, the call itself included, with their own part of the wait:
            ``name, category, calls, self_ns``, the largest first.
        has_device: True if the program uses a device, to which work could be moved.
    """

    kind: LoaderKind
    calls: int
    total_ns: int
    waited_ns: int
    median_ns: int
    longest_ns: int
    rare_calls: int
    rare_ns: int
    inside: pl.DataFrame
    has_device: bool

    @property
    def starts_late(self) -> bool:
        """True if most of the wait is in few long calls, as at the start of workers."""
        return 2 * self.rare_ns > self.waited_ns

    @property
    def few_words(self) -> str:
        """Text about the few calls with most of the wait; empty if the calls do not differ so much."""
        if not self.starts_late:
            return ""
        has = "has" if self.rare_calls == 1 else "have"
        most = f"{self.rare_calls} of {counted(self.calls, 'call')} {has} {format_ratio(self.rare_ns / self.waited_ns)}"
        each = f"{'up to ' if self.rare_calls > 1 else ''}{format_ns(self.longest_ns)}"
        return f"{most} of that ({each}, the median call {format_ns(self.median_ns)})"

    @property
    def advice(self) -> tuple[str, ...]:
        """Advice on the wait for these loaders, most promising first."""
        if self.kind == "multi-process" and self.starts_late:
            return _FEW_LONG
        return (*_ADVICE[self.kind], _CHEAPER, *((_ON_DEVICE,) if self.has_device else ()))


def loader_kind(name: str) -> LoaderKind | None:
    """Return the kind of the loader that the operation or range ``name`` belongs to; ``None`` for other names."""
    return next((kind for iterator, kind in LOADERS.items() if iterator in name), None)


def loader_advice(kind: LoaderKind) -> tuple[str, ...]:
    """Return advice on time in a loader of this kind, most promising first."""
    return (*_ADVICE[kind], _CHEAPER)


def loader_uses(trace: TraceView) -> tuple[LoaderUse, ...]:
    """Return the loaders that the program took batches from in steady steps, those most waited for first."""
    calls_by_kind: dict[LoaderKind, list[_Calls]] = {}
    for rank, steady in steady_time(trace).items():
        classes = host_classes(trace)[rank]
        waits = classes.sets["input_wait"].intersect(steady)
        columns = ("start_ns", "end_ns", pl.col("thread_id").cast(pl.Int32), pl.col("name").cast(pl.String))
        fetches = pl.concat([classes.input_ops.select(columns), classes.input_ranges.select(columns)])
        names = fetches["name"]
        kinds = {name: loader_kind(name) for name in names.unique().to_list()}
        for kind in [kind for kind in dict.fromkeys(LOADERS.values()) if kind in kinds.values()]:
            rows = fetches.filter(names.is_in([name for name, of_name in kinds.items() if of_name == kind]))
            starts, ends = bounds(rows)
            within = steady.overlap(starts, ends)
            used = within > 0
            inside = _inside(trace, rows.filter(pl.Series(used)), waits)
            calls = _Calls(within[used], waits.overlap(starts, ends)[used], inside)
            if calls.within.size:
                calls_by_kind.setdefault(kind, []).append(calls)
    uses = [_use(kind, parts, has_device=bool(trace.rank_busy)) for kind, parts in calls_by_kind.items()]
    return tuple(sorted(uses, key=lambda use: (-use.waited_ns, use.kind)))


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """Calls of one rank: time of each within steady steps, the part that steps waited, and the operations inside."""

    within: Array
    waited: Array
    inside: pl.DataFrame


def _inside(trace: TraceView, calls: pl.DataFrame, waits: IntervalSet) -> pl.DataFrame:
    """Return the operations within ``calls`` on their threads, by name: ``name, category, calls, self_ns``.

    The parts add up to the time of ``waits`` that the calls cover. An operation gets the time that its children leave.
    """
    if "host_ops" not in trace.tables:
        return pl.DataFrame(schema={"name": pl.String, "category": pl.String, "calls": pl.Int64, "self_ns": pl.Int64})
    covered, thread = intervals(calls), calls["thread_id"].unique().to_list()
    scan = trace.tables.scan("host_ops").filter(pl.col("thread_id").is_in(thread) & pl.col("dur_ns").is_not_null())
    nested = scan.select("op_id", "parent_id", "start_ns", "dur_ns", "name", "category").collect()
    nested = nested.filter(pl.Series(covered.contains(nested["start_ns"].to_numpy()), dtype=pl.Boolean))
    nested = nested.with_columns(pl.Series("waited", waits.intersect(covered).overlap(*bounds(nested))))
    below = nested.group_by(pl.col("parent_id").alias("op_id")).agg(pl.col("waited").sum().alias("below"))
    own = nested.join(below, on="op_id", how="left").with_columns(
        (pl.col("waited") - pl.col("below").fill_null(0)).clip(lower_bound=0).alias("self_ns"),
        pl.col("name", "category").cast(pl.String),
    )
    return _summed(own.select("name", "category", pl.lit(1, pl.Int64).alias("calls"), "self_ns"))


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    totals = rows.group_by("name", "category").agg(pl.col("calls", "self_ns").sum())
    return totals.sort("self_ns", "name", "category", descending=[True, False, False])


def _use(kind: LoaderKind, parts: list[_Calls], *, has_device: bool) -> LoaderUse:
    within = np.concatenate([part.within for part in parts])
    waited = np.concatenate([part.waited for part in parts])
    median = float(np.median(within))
    rare = within > RARE_FACTOR * median
    are_few = within.size > 1 and (rare.sum() == 1 or rare.sum() < RARE_SHARE * within.size)
    return LoaderUse(
        kind=kind,
        calls=within.size,
        total_ns=int(within.sum()),
        waited_ns=int(waited.sum()),
        median_ns=round(median),
        longest_ns=int(within.max()),
        rare_calls=int(rare.sum()) if are_few else 0,
        rare_ns=int(waited[rare].sum()) if are_few else 0,
        inside=_summed(pl.concat([part.inside for part in parts])),
        has_device=has_device,
    )


def loader_findings(
    uses: tuple[LoaderUse, ...], wait_ns: int, blamed: float, *, function: str = "", first: tuple[str, ...] = ()
) -> tuple[Finding, ...]:
    """Return TV108 and TV109 for kinds of loaders with at least a share of ``blamed`` of ``wait_ns``.

    They have no time at stake of their own, because another finding counts the wait. ``function`` of the training
    process takes most of it, if that is known. The advice starts with the lines of ``first``.
    """
    known = [use for use in uses if wait_ns and use.waited_ns >= blamed * wait_ns]
    return tuple(_finding(use, wait_ns, function, (*first, *use.advice)) for use in known)


def _finding(use: LoaderUse, wait_ns: int, function: str, advice: tuple[str, ...]) -> Finding:
    record = record_of("TV108" if use.kind == "single-process" else "TV109")
    share = min(use.waited_ns / wait_ns, 1.0)
    typical = f"{counted(use.calls, 'call')}, {format_ns(use.median_ns)} each in the median"
    if use.kind == "single-process":
        message = (
            f"The training process loads its batches itself (num_workers=0): {format_ratio(share)} of the wait "
            f"({typical}{f', mostly in {function}' if function else _mostly_inside(use)})."
        )
    else:
        message = (
            f"The workers of the DataLoader have no batch ready: {format_ratio(share)} of the wait "
            f"({typical}{f'; {use.few_words}' if use.few_words else ''})."
        )
    evidence = (
        Fact("share_of_wait", "of the wait", share, "ratio"),
        Fact("batches", "batches taken", use.calls, "count"),
        Fact("median_ns", "median wait for one", use.median_ns, "ns"),
        Fact("longest_ns", "longest", use.longest_ns, "ns"),
    )
    return Finding(record.code, record.slug, record.severity_of(0.0), message, evidence, advice, 0)


def _mostly_inside(use: LoaderUse) -> str:
    """Return the recorded operation with the largest part of the wait, unless the unrecorded part is larger."""
    if not use.inside.height:
        return ""
    name, part = use.inside[["name", "self_ns"]].row(0)
    return "" if loader_kind(name) or not part else f", mostly in {name}"


def inside_grid(use: LoaderUse) -> Grid:
    """Return the operations in the calls of a loader, with their shares of the wait."""
    columns = (
        Column("stage", "Operation", "text", 0),
        Column("kind", "Evidence", "text", 3),
        Column("calls", "Calls", "count", 2, additive=True),
        Column("self_ns", "Waited", "ns", 0, additive=True),
        Column("share_of_input", "Of the wait", "ratio", 1, bar=True),
    )
    whole = int(use.inside["self_ns"].sum())
    rows = tuple(
        (_OWN[use.kind] if loader_kind(name) and category == "input" else name, category, calls, own, own / whole)
        for name, category, calls, own in use.inside.filter(pl.col("self_ns") > 0).iter_rows()
    )
    return Grid(columns, rows, f"Inside the {LABELS[use.kind]}")


_OWN: dict[LoaderKind, str] = {
    "single-process": "reading, decoding (not recorded)",
    "multi-process": "waiting for a worker",
}
