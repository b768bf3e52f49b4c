"""The cause of every nanosecond in which no device works: the innermost recorded event that explains it.

::

    main thread     |--range-----------------------------------------|
                       |--Python: load--|   |--call that waits--|
    other thread                                                    |--operator--|
    device      ####                                         #######              #####
    cause           |r-|-Python---------|-r-|-call----------|       |-operator---|

Each class of step time (:mod:`traceviz.analyses.derived.host.classes`) is shared out among causes, which add up to it
exactly. Calls of the device's API explain their own classes, whichever thread makes them. Else the event of the thread
that leads does. Where that thread runs Python, a range or the runtime, another thread may do the work that it waits for
(PyTorch's backward pass, TensorFlow's executor): then an operator that runs there explains the time. What no event
covers is unexplained, and a mark of a step explains nothing. Where the stacks of the leading thread were sampled, the
samples divide what is unexplained, or explained by a range only, and add the line to the rest
(:mod:`traceviz.analyses.derived.causes.sampling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree
from traceviz.analyses.derived.calls.segments import Segments, innermost
from traceviz.analyses.derived.causes.kinds import KIND, KINDS, KindKey, cause_name, with_kinds
from traceviz.analyses.derived.causes.places import (
    MODULE,
    PARTS,
    PLACES,
    located,
    names_of,
    outermost,
    part_of_program,
    place_rows,
)
from traceviz.analyses.derived.causes.sampling import divided, owners_at, ticks_within
from traceviz.analyses.derived.frames import bounds, end_ns
from traceviz.analyses.derived.host.classes import CLASSES, host_classes
from traceviz.analyses.derived.host.copy_calls import copy_calls
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.launch.first import first_calls
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.intervals import Array, IntervalSet, union_all
from traceviz.nested import Codes, alike

_SOURCES = ("nvtx", "host_ops", "cuda_api", "os_calls")
"""Tables of events that explain time; of events with the same bounds, those of the first are around the others."""
_CATEGORY_ORDER = ("step", "annotation", "python")
"""Of host operations with the same bounds, these are around the others."""

_KINDS_OF_CLASS: dict[str, frozenset[KindKey]] = {
    "input_wait": frozenset({"input"}),
    "synchronisation": frozenset({"synchronisation", "blocking_copy", "device_wait"}),
    "allocation": frozenset({"allocation", "stream"}),
    "kernel_launch": frozenset({"launch", "blocking_copy"}),
    "compilation": frozenset({"compilation", "first_launch"}),
    "communication": frozenset({"host_collective"}),
}
"""Kinds of events that make a class, on any thread."""
_WEAK: frozenset[KindKey] = frozenset({"python", "python_wait", "range", "runtime", "input"})
"""Kinds that may only wait for what another thread does."""
_DEFAULT: dict[str, KindKey] = {"kernel_launch": "launch_queue", "profiler": "profiler"}
"""What explains time of a class that no event covers."""

_KINDS: dict[int, str] = {number: kind.key for number, kind in enumerate(KINDS)}
_CODES: dict[KindKey, int] = {kind.key: number for number, kind in enumerate(KINDS)}
_NO_KIND = len(KINDS)

CAUSE_COLUMNS = ("process_id", "class", "kind", "cause", *PLACES)
"""What tells causes apart."""
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "process_id": pl.Int64,
    **dict.fromkeys(("class", "kind", "cause", *PLACES), pl.String),
    "time_ns": pl.Int64,
    "calls": pl.Int64,
}


@once_per_trace
def host_causes(trace: TraceView) -> pl.DataFrame:
    """Causes of the judged time in which no device works, the largest first.

    Returns:
        ``process_id, class, kind, cause, operator, module, range, location, time_ns, calls``. ``kind`` is a key of
        :data:`~traceviz.analyses.derived.causes.kinds.KINDS`, ``cause`` the name of the event, null where nothing was
        recorded. For each process and class, ``time_ns`` adds up to the class's part of
        :func:`~traceviz.analyses.derived.judged_time.judged_time` without device work. ``calls`` counts the events.
    """
    parts = [part for rank in trace.ranks for part in _of_rank(trace, rank)]
    known = [part.select(list(_SCHEMA)) for part in parts if part.height]
    frame = pl.concat(known) if known else pl.DataFrame(schema=_SCHEMA)
    return frame.sort("time_ns", *CAUSE_COLUMNS, descending=[True, *[False] * len(CAUSE_COLUMNS)])


@dataclass(frozen=True, slots=True, eq=False)
class _Events:
    """Events of a process that run while no device works, as a tree, and the stretches in which each is innermost.

    ``leader`` is the thread that leads; ``kinds`` are numbers of :data:`_CODES` by row of the tree, ``names`` numbers
    of the names, and ``places`` rows of what is around each event (:func:`place_rows`); both end with -1, for none.
    """

    tree: CallTree
    segments: Segments
    kinds: npt.NDArray[np.integer]
    names: Codes
    places: dict[str, Array]
    leader: int

    def are(self, kinds: Iterable[KindKey], rows: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.bool_]:
        """Which calls, all or those in ``rows``, are of these kinds."""
        lookup = np.zeros(_NO_KIND + 1, dtype=bool)
        lookup[[_CODES[kind] for kind in kinds]] = True
        return np.asarray(lookup[self.kinds if rows is None else self.kinds[rows]])


def _of_rank(trace: TraceView, rank: int) -> Iterator[pl.DataFrame]:
    """Rows of :func:`host_causes` of a rank, if it has any."""
    busy = trace.rank_busy.get(rank, IntervalSet.empty())
    judged = judged_time(trace, rank).subtract(busy)
    sets = {key: owned.intersect(judged) for key, owned in host_classes(trace)[rank].sets.items()}
    if not any(owned.total for owned in sets.values()):  # also where a trace states steps outside of what it captured
        return
    events = _events(trace, rank, judged)
    samples = ticks_within(trace, rank, judged)
    shares = [_of_class(events, c.key, sets[c.key], samples) for c in CLASSES if sets[c.key].total]
    owned, taken = (pl.concat(frames) for frames in zip(*shares, strict=True))
    named = _named(events, owned)
    if taken.height:
        named = divided(named, _named_samples(events, taken), _NAMED)
        named = named.group_by(_NAMED, maintain_order=True).agg(pl.col("time_ns", "calls").sum())
    yield named.with_columns(pl.lit(rank, pl.Int64).alias("process_id"))


def _of_class(events: _Events, key: str, free: IntervalSet, samples: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Time of one class shared out among events, and the samples that were taken in it.

    Returns:
        ``owner, time_ns, kind, class``, where owner -1 is what is left; and ``owner, kind, class, weight`` with what
        samples say (:func:`~traceviz.analyses.derived.causes.sampling.divided`).
    """
    samples = samples.filter(pl.Series(free.contains(samples["moment_ns"].to_numpy()), dtype=pl.Boolean))
    weight = free.overlap(samples["begin_ns"].to_numpy(), samples["moment_ns"].to_numpy() + 1)
    moments, taken = samples["moment_ns"].to_numpy(), np.full(samples.height, -1)
    owners, times = [], []
    for segments in _by_precedence(events, key):
        time = free.overlap(segments.starts, segments.ends)
        owners.append(segments.owner[time > 0])
        times.append(time[time > 0])
        taken = np.where(taken < 0, owners_at(segments.starts, segments.ends, segments.owner, moments), taken)
        free = free.subtract(IntervalSet.of(segments.starts, segments.ends))
        if not free.total:
            break
    owned = _sums(events, key, np.concatenate([*owners, [-1]]).astype(np.int64), np.concatenate([*times, [free.total]]))
    taken, codes_taken = _explained(events, key, taken)
    of_class = pl.lit(key, pl.String).alias("class")
    columns_taken = {"owner": taken, "kind": codes_taken.astype(np.uint8), "weight": weight}
    seen = pl.concat([pl.DataFrame(columns_taken), samples.select("did", "what", "line")], how="horizontal")
    return owned.with_columns(of_class), seen.with_columns(of_class)


def _sums(events: _Events, key: str, rows: Array, time: Array) -> pl.DataFrame:
    """``owner, time_ns, kind``: the time of a class by the event that is named for it, which has one kind there."""
    rows, codes = _explained(events, key, rows)
    total, kinds = np.zeros(events.kinds.size + 1, np.int64), np.empty(events.kinds.size + 1, np.uint8)
    np.add.at(total, rows, time)
    kinds[rows] = codes
    owners = np.flatnonzero(total)
    frame = pl.DataFrame({"owner": owners, "time_ns": total[owners], "kind": kinds[owners]})
    return frame.with_columns(pl.col("owner").replace(events.kinds.size, -1))


def _explained(
    events: _Events, key: str, rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """The events that are named for what happens in ``rows``, and the codes of their kinds; -1 is no event."""
    codes = np.append(events.kinds, _CODES[_DEFAULT.get(key, "unexplained")])[rows]
    if key != "input_wait":
        return rows, codes
    # Whatever happens inside the wait, its cause is the operation or range that waits
    waits = np.append(events.tree.nearest(outermost(events.tree, events.are(["input"]))), -1)[rows]
    return np.where(waits >= 0, waits, rows), np.full(rows.size, _CODES["input"])


def _by_precedence(events: _Events, key: str) -> Iterator[Segments]:
    """Stretches that may explain time of a class: those that come first take what they cover."""
    segments = events.segments
    threads = events.tree.calls["thread_id"].to_numpy()[segments.owner]
    of_class = events.are(_KINDS_OF_CLASS.get(key, ()), segments.owner)
    yield from _each_thread(segments.of(of_class), threads[of_class], events.leader)
    if key in _DEFAULT:
        return
    leads = threads == events.leader
    weak = events.are(_WEAK, segments.owner)
    yield segments.of(leads & ~weak)
    works = ~leads & events.are(("operator", "optimizer", "host_collective"), segments.owner)
    yield from _each_thread(segments.of(works), threads[works], events.leader)
    yield segments.of(leads & weak)


def _each_thread(segments: Segments, threads: npt.NDArray[np.int64], leader: int) -> Iterator[Segments]:
    """Stretches thread by thread, the leader's first, then those with most time: of several at once, one counts."""
    if not threads.size:
        return
    numbers, rows = np.unique(threads, return_inverse=True)
    totals = np.bincount(rows, weights=segments.ends - segments.starts)
    for number in sorted(range(numbers.size), key=lambda n: (numbers[n] != leader, -totals[n])):
        yield segments.of(rows == number)


_NAMED = ("class", "kind", "cause", *PLACES)
"""What tells causes of one process apart."""


def _named(events: _Events, owned: pl.DataFrame) -> pl.DataFrame:
    """Names and places of what took the time: rows of :func:`host_causes` without the process.

    Of millions of events, those with the same names are put together by the numbers of the names.
    """
    owner = owned["owner"].to_numpy()
    places_of = (rows[owner] for rows in events.places.values())
    codes = (events.names[rows] for rows in (owner, *places_of))
    of_class = owned["class"].cast(pl.Categorical).to_physical().cast(pl.Int32).to_numpy()
    group, first = alike(*codes, owned["kind"].cast(pl.Int32).to_numpy(), of_class)
    time, calls = np.zeros(first.size, np.int64), np.bincount(group, weights=owner >= 0, minlength=first.size)
    np.add.at(time, group, owned["time_ns"].to_numpy())
    named = _with_names(events, owned.select("owner", "kind", "class").select(pl.all().gather(first)))
    sums = pl.Series("time_ns", time), pl.Series("calls", calls).cast(pl.Int64)
    return _plain(named.with_columns(sums)).group_by(_NAMED).agg(pl.col("time_ns", "calls").sum())


def _named_samples(events: _Events, taken: pl.DataFrame) -> pl.DataFrame:
    """The same for the samples that were taken in the time: ``weight, did, what, line`` beside names and places."""
    return _plain(_with_names(events, taken))


def _with_names(events: _Events, owned: pl.DataFrame) -> pl.DataFrame:
    """``owned`` with the name and the places of each owner, as they are stored."""
    owner = owned["owner"].to_numpy()
    names = {"cause": owner, **{place: rows[owner] for place, rows in events.places.items()}}
    return owned.drop("owner").with_columns(names_of(events.tree, rows).alias(name) for name, rows in names.items())


def _plain(named: pl.DataFrame) -> pl.DataFrame:
    """Names as text, without what tells one call from another."""
    # Few by now: what names have in common is taken from texts
    texts = named.with_columns(pl.col("cause", *PLACES).cast(pl.String))
    return texts.with_columns(
        pl.col("kind").replace_strict(_KINDS, return_dtype=pl.String),
        cause_name(pl.col("cause")),
        pl.col("module").str.replace(MODULE, ""),
        located(pl.col("location")),
    )


def _events(trace: TraceView, rank: int, judged: IntervalSet) -> _Events:
    leader = training_thread(trace, rank)
    frames = [_rows(trace, source, rank, leader, judged) for source in _SOURCES]
    calls = pl.concat(frames).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("op_id"))
    calls = _outer_first(_by_what_they_did(trace, rank, calls).with_columns(_unless_step(trace, rank)))
    tree = CallTree.of(calls.drop("category"))
    segments = innermost(tree)
    segments = Segments(segments.starts, segments.ends, _explaining(tree, segments.owner))
    kinds = tree.calls["kind"].to_physical().fill_null(_NO_KIND).to_numpy()
    if (kinds == _NO_KIND).any():
        segments = segments.of(kinds[segments.owner] != _NO_KIND)
    names = np.append(tree.calls["name"].to_physical().cast(pl.Int32).to_numpy(), np.int32(-1))
    around = {place: np.append(rows, -1) for place, rows in place_rows(tree).items()}
    return _Events(tree, segments, kinds, names, around, leader)


def _by_what_they_did(trace: TraceView, rank: int, calls: pl.DataFrame) -> pl.DataFrame:
    """``calls`` with the kinds that no name tells: copies that wait or do not, and calls that are first ones."""
    key = ("source", "thread_id", "start_ns", "name")
    waits, first = pl.col("wait_ns").is_not_null(), pl.lit("first_launch", KIND)
    did = pl.when(waits).then(pl.lit("blocking_copy")).otherwise(pl.lit("launch")).cast(KIND)
    copies = copy_calls(trace).with_columns(did.alias("did"))
    seen = [first_calls(trace).with_columns(first.alias("did")), copies]
    texts = (pl.col("name").cast(pl.Categorical), pl.lit("cuda_api").cast(pl.Categorical).alias("source"))
    columns = (*key[1:3], *texts, "did")
    own = pl.concat([frame.filter(pl.col("process_id") == rank).select(columns) for frame in seen])
    if not own.height:
        return calls
    own = own.unique(key, keep="first", maintain_order=True)
    joined = calls.join(own, on=key, how="left", maintain_order="left")
    return joined.with_columns(pl.coalesce("did", "kind").alias("kind")).drop("did")


def _rows(trace: TraceView, source: str, rank: int, leader: int, judged: IntervalSet) -> pl.DataFrame:
    """Events of a table that run in ``judged`` time.

    Columns ``start_ns, end_ns, thread_id, source, category, name``, and what the name says: ``kind`` and ``part``.
    """
    texts = ("name", "category") if source == "host_ops" else ("name",)
    columns = ("start_ns", "dur_ns", "thread_id", *texts)
    if source in trace.tables:
        scan = trace.tables.scan(source).filter(pl.col("process_id") == rank)
        scan = scan.filter(pl.col("thread_id") == leader) if source == "os_calls" else scan
        scan = scan.filter(pl.col("kind") != "mark") if source == "nvtx" else scan
        rows = scan.select(*columns).collect()
    else:
        rows = trace.frame(source, *columns)
    rows = rows.filter(pl.Series(judged.overlap(*bounds(rows)) > 0, dtype=pl.Boolean))
    category = pl.col("category") if source == "host_ops" else pl.lit(None, pl.Categorical).alias("category")
    text = [column.cast(pl.Categorical) for column in (pl.lit(source).alias("source"), category, pl.col("name"))]
    return _with_meanings(rows.select("start_ns", end_ns(), "thread_id", *text))


def _with_meanings(rows: pl.DataFrame) -> pl.DataFrame:
    """``rows`` of one table with the ``kind`` of cause and the ``part`` of the program that their names stand for."""
    key = ("source", "category", "name")
    codes = rows.select(pl.col(key[1:]).to_physical().cast(pl.Int32).fill_null(-1))
    group, first = alike(*(codes[column].to_numpy() for column in codes.columns))
    names = with_kinds(rows.select(pl.col(key).gather(first)).with_columns(pl.col(key).cast(pl.String)))
    part = part_of_program(*(pl.col(column) for column in key)).cast(pl.Enum(PARTS)).alias("part")
    return rows.with_columns(names.select("kind", part).select(pl.all().gather(group)))


def _outer_first(calls: pl.DataFrame) -> pl.DataFrame:
    """``calls`` with the ``op_id`` by which those with the same bounds lie around each other: host operations by kind.

    Tables come one after the other, and the rows of each as they are.
    """
    order = {category: number for number, category in enumerate(_CATEGORY_ORDER, 1)}
    category = pl.col("category").replace_strict(order, default=len(order) + 1, return_dtype=pl.Int64)
    known = pl.when(pl.col("source") == "host_ops").then(category)
    after = (pl.col("source").is_in(_SOURCES[_SOURCES.index("host_ops") + 1 :])).cast(pl.Int64) * (len(order) + 2)
    rank = pl.coalesce(known, after)
    return calls.with_columns(rank * pl.len() + pl.col("op_id"))


def _unless_step(trace: TraceView, rank: int) -> pl.Expr:
    """The kind of an event, null where it is the mark of a step: it covers everything and explains nothing."""
    steps = training_steps(trace)
    marks = steps.frame.filter(pl.col("process_id") == rank)
    thread = steps.thread_id.get(rank)
    if thread is None or not marks.height or not trace.tables.rows("nvtx"):
        return pl.col("kind")
    is_mark = (pl.col("thread_id") == thread) & pl.col("start_ns").is_in(marks["start_ns"].implode())
    is_mark &= pl.col("source") == "nvtx"
    return pl.when(~is_mark).then("kind").alias("kind")


def _explaining(tree: CallTree, rows: Array) -> Array:
    """For each call in ``rows``, the call that explains its time: the outermost call of the device's API around it.

    Else itself. The driver's call within the runtime's, and the system's within both, are how the outer one works. So
    are the operators of a collective on the host, and what the framework does while it waits for a device.
    """
    explains = (tree.calls["source"] == "cuda_api") | tree.calls["kind"].is_in(["host_collective", "device_wait"])
    if not explains.any():
        return rows
    outer = outermost(tree, explains.fill_null(value=False).to_numpy().astype(bool))
    nearest = tree.nearest(outer)[rows]
    return np.where(nearest >= 0, nearest, rows)


def time_in_calls(trace: TraceView, causes: pl.Series) -> pl.DataFrame:
    """``cause, total_ns``: judged time in all calls of each cause, whether a device works beside them or not.

    Args:
        trace: The trace.
        causes: Distinct names of causes.

    Returns:
        One row for each of ``causes``; times of calls that nest, or run on several threads, add up.
    """
    judged = union_all(judged_time(trace, rank) for rank in trace.ranks)
    parts = [_times_of(trace, source, causes, judged) for source in _SOURCES if source in trace.tables]
    empty = pl.DataFrame(schema={"cause": pl.String, "total_ns": pl.Int64})
    sums = pl.concat([empty, *parts]).group_by("cause").agg(pl.col("total_ns").sum())
    return pl.DataFrame({"cause": causes}).join(sums, on="cause", how="left", maintain_order="left")


def _times_of(trace: TraceView, source: str, causes: pl.Series, judged: IntervalSet) -> pl.DataFrame:
    """Rows of :func:`time_in_calls` of one table."""
    names = trace.tables.scan(source).select("name").unique().collect().with_columns(pl.col("name").cast(pl.String))
    names = names.with_columns(cause_name(pl.col("name")).alias("cause"))
    names = names.filter(pl.col("cause").is_in(causes.implode()))
    called = pl.col("name").is_in(names["name"].to_list())
    rows = trace.tables.scan(source).filter(called).select("start_ns", "dur_ns", "name").collect()
    rows = rows.with_columns(pl.col("name").cast(pl.String), pl.Series("total_ns", judged.overlap(*bounds(rows))))
    return rows.group_by("name").agg(pl.col("total_ns").sum()).join(names, on="name").select("cause", "total_ns")
