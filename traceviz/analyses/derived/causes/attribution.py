"""The cause of every nanosecond in which no device works: the innermost recorded event that explains it.

::

    main thread     |--range-----------------------------------------|
                       |--Python: load--|   |--call that waits--|
    other thread                                                    |--operator--|
    device      ####                                         #######              #####
    cause           |r-|-Python---------|-r-|-call----------|       |-operator---|

The time of each class of step time (:mod:`traceviz.analyses.derived.host.classes`) is divided among causes, which add
up to it exactly. Calls of the device's API explain their own classes, on any thread. Otherwise the event of the leading
thread explains the time. That thread may run Python, a range or the runtime, or wait in a system call for a thread.
Then another thread may do the work that it waits for (PyTorch's backward pass, TensorFlow's executor), and an operator
that runs there explains the time. A call of the framework explains the system calls directly within it. Time that no
event covers is unexplained, and step marks explain nothing. If the scheduler was recorded, such time is divided into
time in which the leading thread ran on a core, and time in which it ran on none. If the stacks of the leading thread
were sampled, the samples divide time that is unexplained, or explained only by a range or a system call. To other
causes they add the line (:mod:`traceviz.analyses.derived.causes.sampling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.calls.call_tree import CallTree, Segments, innermost
from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.causes.kinds import KIND, KINDS, KindKey, cause_name, kinds_of, part_of_cause, without_id
from traceviz.analyses.derived.causes.places import (
    MODULE,
    PARTS,
    PLACES,
    Around,
    chosen,
    located,
    names_of,
    part_of_program,
    places_around,
)
from traceviz.analyses.derived.causes.sampling import divide_among_samples, find_ticks_within, owners_at
from traceviz.analyses.derived.frames import (
    are_named,
    blocks,
    bounds,
    codes,
    end_ns,
    having,
    in_one_piece,
    intervals,
    of_process,
    taken,
)
from traceviz.analyses.derived.grouped import Groups
from traceviz.analyses.derived.host.classes import CLASSES, THREAD_CALLS, host_classes
from traceviz.analyses.derived.host.copy_calls import copy_calls
from traceviz.analyses.derived.host.input_fetches import parameter_fetches
from traceviz.analyses.derived.host.migrations import NAME as MIGRATION
from traceviz.analyses.derived.host.migrations import migration_runs
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.launch.first import first_calls, first_uses
from traceviz.analyses.derived.patterns import matches, matching, replaced
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.steps.serving import SERVING_NAME
from traceviz.analyses.derived.steps.steps import INFERRED
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.arrays.intervals import Array, IntervalSet, union_all
from traceviz.core.arrays.nested import Codes, Rows, add_own, alike, outer_alike
from traceviz.core.arrays.sweeps import summed
from traceviz.core.units import format_ns

_SOURCES = ("nvtx", "host_ops", "cuda_api", "os_calls")
"""Tables of events that explain time. If events have the same bounds, those of earlier tables enclose the others."""
_CATEGORY_ORDER = ("step", "annotation", "python")
"""Categories of host operations that enclose others with the same bounds."""

_KINDS_OF_CLASS: dict[str, frozenset[KindKey]] = {
    "input_wait": frozenset({"input"}),
    "synchronisation": frozenset({"synchronisation", "blocking_copy", "device_wait"}),
    "allocation": frozenset({"allocation", "registration", "stream"}),
    "kernel_launch": frozenset({"launch", "blocking_copy"}),
    "compilation": frozenset({"compilation", "first_launch"}),
    "communication": frozenset({"host_collective"}),
}
"""Kinds of events that form a class, on any thread."""
_WEAK: frozenset[KindKey] = frozenset({"python", "python_wait", "range", "runtime", "input"})
"""Kinds that may only wait for another thread's work; so may system calls of :data:`THREAD_CALLS`."""
_FRAMEWORK: tuple[KindKey, ...] = ("operator", "optimizer", "runtime", "compilation", "python_wait")
"""Kinds of calls that are more specific than the system calls inside them."""
_OF_FIRST_USE: frozenset[KindKey] = frozenset({"operator", "driver", "first_launch"})
"""Kinds of calls that are part of the first use of the operator around them. What has a kind of its own is not."""
_PREPARES: tuple[KindKey, ...] = ("allocation", "registration", "stream", "first_launch", "compilation")
"""Kinds of calls of the device's API that are no part of an exchange of data."""
_WORKS: frozenset[KindKey] = frozenset({"operator", "optimizer", "host_collective", "migration"})
"""Kinds that explain a wait of the leading thread."""
_DEFAULT: dict[str, KindKey] = {"kernel_launch": "launch_queue", "profiler": "profiler"}
"""Kinds for time of a class that no event covers."""

_BY_WAITS = "input_wait"
"""The class whose time always goes to the waiting operation or range, not to events inside it."""

_KINDS: dict[int, str] = {number: kind.key for number, kind in enumerate(KINDS)}
_CODES: dict[KindKey, int] = {kind.key: number for number, kind in enumerate(KINDS)}
_NO_KIND = len(KINDS)

CAUSE_COLUMNS = ("process_id", "class", "kind", "cause", *PLACES)
"""Columns that distinguish causes."""
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "process_id": pl.Int64,
    **dict.fromkeys(("class", "kind", "cause", *PLACES), pl.String),
    "time_ns": pl.Int64,
    "calls": pl.Int64,
}
_AROUND: dict[str, pl.DataType | type[pl.DataType]] = {
    "part": pl.String,
    "name": pl.String,
    "inside_ns": pl.Int64,
    "total_ns": pl.Int64,
}
GIL_WAIT, LONGEST_GIL_WAIT_NS = "pthread_cond_timedwait", 6_000_000
"""The call in which CPython's threads wait for the interpreter, and its longest duration.

A thread that waits asks for the interpreter every 5 ms (``sys.getswitchinterval``), and then waits again: each call
takes that long and the time to wake up. Locks, queues and events of Python wait in other calls (``sem_clockwait``).
"""
_ENCLOSES_NOTHING = r"^ProfilerStep#|^\$profiler\.py"
"""Steps of a profiler and its own work, which are no place in the program."""


def host_causes(trace: TraceView) -> pl.DataFrame:
    """Return causes of the judged time in which no device works, the largest first.

    Returns:
        ``process_id, class, kind, cause, operator, module, range, location, time_ns, calls, part``. ``kind`` is a key
        of :data:`~traceviz.analyses.derived.causes.kinds.KINDS`, ``part`` the exclusive part of the judged time.
        ``cause`` is the name of the event, null if nothing was recorded. For each process and class, ``time_ns`` adds
        up to the class's part of :func:`~traceviz.analyses.derived.judged_time.judged_time` without device work.
        ``calls`` counts the events.
    """
    return attribute_time(trace)[0]


def events_around(trace: TraceView) -> pl.DataFrame:
    """Return the names of events around the causes of each exclusive part: ``part, name, inside_ns, total_ns``.

    ``inside_ns`` is the part's time in events of that name, on the thread of the cause: each nanosecond counts once,
    also in calls that nest. ``total_ns`` is the length of all these events, without calls within one of their name.
    Empty if stacks were sampled, which show places better.
    """
    return attribute_time(trace)[1]


@once_per_trace
def attribute_time(trace: TraceView) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return :func:`host_causes` and :func:`events_around`."""
    found = [pair for rank in trace.ranks for pair in _find_causes_of_rank(trace, rank)]
    known = [causes.select(list(_SCHEMA)) for causes, _ in found if causes.height]
    frame = pl.concat(known) if known else pl.DataFrame(schema=_SCHEMA)
    around = pl.concat([pl.DataFrame(schema=_AROUND), *(names for _, names in found)])
    sums = around.group_by("part", "name").agg(pl.col("inside_ns", "total_ns").sum())
    # Steps enclose everything and explain nothing
    is_step = matches(pl.col("range"), SERVING_NAME) | matches(pl.col("range"), r"^ProfilerStep#")
    causes = frame.with_columns(pl.when(~is_step).then("range").alias("range"), part_of_cause().alias("part"))
    return (
        causes.sort("time_ns", *CAUSE_COLUMNS, descending=[True, *[False] * len(CAUSE_COLUMNS)]),
        sums.sort("part", "inside_ns", "name", descending=[False, True, False]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Intervals:
    """Intervals of a thread in which events explain time, sorted by time, and their union."""

    segments: Segments
    covered: IntervalSet

    @classmethod
    def of(cls, segments: Segments) -> _Intervals:
        """Return the intervals for the ``segments`` of one thread, which do not overlap."""
        begins = np.append(True, segments.starts[1:] > segments.ends[:-1])[: segments.starts.size]
        ends = np.append(begins[1:], True)[: segments.starts.size]
        return cls(segments, IntervalSet(segments.starts[begins], segments.ends[ends]))


@dataclass(frozen=True, eq=False)
class _Events:
    """Events of a process that run while no device works, as a tree.

    ``kinds`` are numbers of :data:`_CODES` by row of the tree. ``around`` holds the names around each event.
    ``may_wait`` marks events that may only wait for another thread. ``explaining`` is the event that explains each
    event's time; ``None`` if each explains its own. ``leads`` marks the events of the leading thread, ``leader``.
    """

    tree: CallTree
    kinds: npt.NDArray[np.uint8]
    may_wait: npt.NDArray[np.bool_]
    around: Around
    explaining: Array | None
    leads: npt.NDArray[np.bool_]
    leader: int

    def are(self, kinds: Iterable[KindKey]) -> npt.NDArray[np.bool_]:
        """Return which calls are of these kinds."""
        return _is_of_kinds(self.kinds, kinds)

    def stretches(self, selected: npt.NDArray[np.bool_]) -> Segments:
        """Return the intervals that ``selected`` events explain."""
        if self.explaining is None:
            return innermost(self.tree, selected)
        found = innermost(self.tree, selected[self.explaining])
        return Segments(found.starts, found.ends, self.explaining[found.owner])

    def of_threads(self, selected: npt.NDArray[np.bool_]) -> Iterator[_Intervals]:
        """Yield these intervals per thread, the leader first, then by time: earlier ones take the time they cover."""
        segments = self.stretches(selected)
        if not segments.owner.size:
            return
        threads = self.tree.calls["thread_id"].to_numpy()[segments.owner]
        rows, first = alike(threads)
        totals, numbers = summed(rows, segments.ends - segments.starts, first.size), threads[first]
        for n in sorted(range(first.size), key=lambda n: (numbers[n] != self.leader, -totals[n], numbers[n])):
            yield _Intervals.of(segments if first.size == 1 else segments.of(rows == n))

    @cached_property
    def strong(self) -> _Intervals:
        """Intervals of the leading thread that explain its time regardless of other threads."""
        return _Intervals.of(self.stretches(self.leads & (self.kinds != _NO_KIND) & ~self.may_wait))

    @cached_property
    def weak(self) -> _Intervals:
        """Intervals of the leading thread in which it may only wait for another thread."""
        return _Intervals.of(self.stretches(self.leads & self.may_wait))

    @cached_property
    def works(self) -> tuple[_Intervals, ...]:
        """Intervals in which other threads work."""
        return tuple(self.of_threads(~self.leads & self.are(_WORKS)))

    def add_weak(self, key: str, free: IntervalSet, total: Array) -> int:
        """Add to ``total`` the time of :attr:`weak` intervals in ``free``, and return how much of ``free`` is left.

        Weak intervals come last. If calls nest, they are not needed: a call's own time is its time minus that of the
        calls directly in it.
        """
        if not self.tree.nests or self.explaining is not None:
            found = self.weak.segments
            free.add_overlap(found.starts, found.ends, _name_owners(self, key, found.owner), total)
            return free.subtract(self.weak.covered).total
        rows = np.flatnonzero(self.leads)
        if not rows.size:
            return free.total
        own = slice(int(rows[0]), int(rows[-1]) + 1)  # a thread's calls are contiguous
        time = free.overlap(self.tree.starts[own], self.tree.ends[own])
        owners = _name_owners(self, key, np.arange(own.start, own.stop)) if key == _BY_WAITS else None
        return free.total - add_own(own.start, self.tree.parent[own], time, self.may_wait[own], owners, total)

    @cached_property
    def said(self) -> Codes:
        """A number for each context, equal for equal names of its call and of the calls around it."""
        named = self.around
        names = codes(self.tree.calls["name"])
        return alike(names[named.first], *(chosen(names, rows) for rows in named.names.values()))[0]

    @cached_property
    def waits(self) -> Array:
        """The outermost input event around each event, or -1; the last entry, for no event, is -1."""
        return np.append(self.tree.topmost(self.are(["input"])), np.int32(-1))


def _find_causes_of_rank(trace: TraceView, rank: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the rows of :func:`host_causes` and :func:`events_around` of a rank, if it has any."""
    busy = trace.rank_busy.get(rank, IntervalSet.empty())
    judged = judged_time(trace, rank).subtract(busy)
    sets = {key: owned.intersect(judged) for key, owned in host_classes(trace)[rank].sets.items()}
    if not any(owned.total for owned in sets.values()):  # also if a trace states steps outside of its capture
        return
    if trace.tables.rows("cuda_api"):
        _kinds_by_behaviour(trace)  # first, since it needs much memory that is not needed later
    trace.free_memory(host_classes, _kinds_by_behaviour, first_calls)
    events = _read_events(trace, rank, judged)
    samples = find_ticks_within(trace, rank, judged)
    cores = _find_cores(trace, rank) if not samples.height else None
    is_counted = np.zeros(events.kinds.size + 1, dtype=bool)
    shares = [
        _divide_class(events, c.key, sets[c.key], samples, is_counted, cores) for c in CLASSES if sets[c.key].total
    ]
    owned, taken, contexts = (pl.concat(frames) for frames in zip(*shares, strict=True))
    around = _names_around(events, contexts) if not taken.height else pl.DataFrame(schema=_AROUND)
    named = _to_text(_with_names(events, owned)).group_by(_NAMED).agg(pl.col("time_ns", "calls").sum())
    if taken.height:
        named = divide_among_samples(named, _to_text(_with_names(events, taken)), _NAMED)
        named = named.group_by(_NAMED, maintain_order=True).agg(pl.col("time_ns", "calls").sum())
    yield named.with_columns(pl.lit(rank, pl.Int64).alias("process_id")), around


def _find_cores(trace: TraceView, rank: int) -> tuple[IntervalSet, IntervalSet] | None:
    """Return when the leading thread of a process ran on a core, and on none; ``None`` if that was not recorded."""
    if not trace.tables.rows("scheduling"):
        return None
    rows = trace.frame("scheduling", "start_ns", "dur_ns", "process_id", "thread_id")
    on = intervals(having(of_process(rows, rank), "thread_id", training_thread(trace, rank)))
    return (on, on.complement(int(on.starts[0]), int(on.ends[-1]))) if len(on) else None


def _divide_class(  # noqa: PLR0917 (the time, and what was recorded of it)
    events: _Events,
    key: str,
    free: IntervalSet,
    samples: pl.DataFrame,
    is_counted: npt.NDArray[np.bool_],
    cores: tuple[IntervalSet, IntervalSet] | None,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Divide the time of one class among events, and return the samples that were taken in it.

    Returns:
        First, ``owner, time_ns, calls, kind, class``, one row for the owners with the same names and kind: the first
        owner, their time and their number. Owner -1 is the remaining time. Second, ``owner, kind, class, weight`` and
        the columns of samples (:func:`~traceviz.analyses.derived.causes.sampling.divide_among_samples`). Third,
        ``context, kind, class, time_ns``: the same time by the context of its owner.
        An event with time in several classes is counted in the first: ``is_counted`` is updated.
    """
    samples = samples.filter(pl.Series(free.contains(samples["moment_ns"].to_numpy()), dtype=pl.Boolean))
    weight = free.overlap(samples["begin_ns"].to_numpy(), samples["moment_ns"].to_numpy() + 1)
    moments, taken = samples["moment_ns"].to_numpy(), np.full(samples.height, -1)
    total = np.zeros(events.kinds.size + 1, np.int64)  # the last entry is for no event
    by_samples = moments.size > 0
    for stretches in _by_precedence(events, key, weak=by_samples):
        found = stretches.segments
        free.add_overlap(found.starts, found.ends, _name_owners(events, key, found.owner), total)
        if by_samples:
            taken = np.where(taken < 0, owners_at(found.starts, found.ends, found.owner, moments), taken)
        free = free.subtract(stretches.covered)
        if not free.total:
            break
    has_weak = key not in _DEFAULT and not by_samples and free.total
    total[-1] = events.add_weak(key, free, total) if has_weak else free.total
    of_class = pl.lit(key, _CLASS).alias("class")
    owned = _sum_by_owner(events, key, total, is_counted).with_columns(of_class)
    if cores is not None and key not in _DEFAULT and total[-1]:
        owned = _divide_among_cores(owned, free.subtract(events.weak.covered) if has_weak else free, cores)
    codes_taken = _explaining_kinds(events, key, taken)
    columns_taken = {"owner": _name_owners(events, key, taken), "kind": codes_taken, "weight": weight}
    seen = pl.concat([pl.DataFrame(columns_taken), samples[["did", "what", "line", "works"]]], how="horizontal")
    owners = np.flatnonzero(total[:-1])
    kinds = _explaining_kinds(events, key, owners)
    group, first = alike(chosen(events.around.contexts, owners), kinds.astype(np.int32))
    by_context = pl.DataFrame(
        {
            "context": chosen(events.around.contexts, owners[first]).astype(np.int64),
            "kind": kinds[first],
            "time_ns": summed(group, total[owners], first.size),
        }
    )
    return owned, seen.with_columns(of_class), by_context.with_columns(of_class)


def _divide_among_cores(owned: pl.DataFrame, rest: IntervalSet, cores: tuple[IntervalSet, IntervalSet]) -> pl.DataFrame:
    """Return ``owned`` with the ``rest``, which no event covers, divided into time on a core and on none."""
    is_rest = pl.col("owner") == -1
    states: tuple[tuple[KindKey, IntervalSet], ...] = (("running", cores[0]), ("wait", cores[1]))
    times: list[tuple[KindKey, int]] = [(kind, rest.intersect(state).total) for kind, state in states]
    times.append(("unexplained", int(owned.filter(is_rest)["time_ns"].sum()) - sum(time for _, time in times)))
    rows = [
        owned.filter(is_rest).with_columns(
            pl.lit(time_ns, pl.Int64).alias("time_ns"), pl.lit(_CODES[kind]).cast(owned.schema["kind"]).alias("kind")
        )
        for kind, time_ns in times
        if time_ns
    ]
    return pl.concat([owned.filter(~is_rest), *rows])


def _sum_by_owner(events: _Events, key: str, total: Array, is_counted: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """Return ``owner, time_ns, calls, kind`` of :func:`_divide_class` from the time of each event, and the rest.

    Events with the same names are grouped by name numbers, since there may be millions of events.
    """
    owners = np.flatnonzero(total).astype(np.int32, copy=False)
    kinds = _explaining_kinds(events, key, owners)
    is_left = owners == events.kinds.size
    owner = np.where(is_left, np.int32(-1), owners)
    group, first = alike(chosen(events.said, chosen(events.around.contexts, owner)), kinds.astype(np.int32))
    columns = {"owner": owner[first].astype(np.int64), "time_ns": summed(group, total[owners], first.size)}
    calls = np.bincount(group[~is_left & ~is_counted[owners]], minlength=first.size)
    is_counted[owners] = True
    return pl.DataFrame({**columns, "calls": calls, "kind": kinds[first]})


def _name_owners(events: _Events, key: str, rows: Rows) -> Rows:
    """Return the events whose names stand for ``rows``; -1 is no event."""
    if key != _BY_WAITS:
        return rows
    # The cause of a wait is the operation or range that waits, not the events inside it
    waits = events.waits[rows]
    return np.where(waits >= 0, waits, rows)


def _explaining_kinds(events: _Events, key: str, rows: Rows) -> npt.NDArray[np.uint8]:
    """Return the kind codes of events in a class; -1, and the number after the last event, stand for no event."""
    if key == _BY_WAITS:
        return np.full(rows.size, _CODES["input"], np.uint8)
    kinds = np.append(events.kinds, _CODES[_DEFAULT.get(key, "unexplained")])
    return np.asarray(kinds[rows], np.uint8)


def _by_precedence(events: _Events, key: str, *, weak: bool) -> Iterator[_Intervals]:
    """Yield the intervals that may explain time of a class; earlier ones take the time that they cover.

    The :attr:`~_Events.weak` intervals are last, and only included if ``weak``.
    """
    if kinds := _KINDS_OF_CLASS.get(key):
        yield from events.of_threads(events.are(kinds))
    if key in _DEFAULT:
        return
    yield events.strong
    yield from events.works
    if weak:
        yield events.weak


_NAMED = ("class", "kind", "cause", *PLACES)
"""Columns that distinguish causes of one process."""


def _with_names(events: _Events, owned: pl.DataFrame) -> pl.DataFrame:
    """Return ``owned`` with the name and the places of each owner, as they are stored."""
    owner = owned["owner"].to_numpy()
    names = {"cause": owner, **{place: events.around.rows(place, owner) for place in PLACES}}
    return owned.drop("owner").with_columns(names_of(events.tree, rows).alias(name) for name, rows in names.items())


def _names_around(events: _Events, owned: pl.DataFrame) -> pl.DataFrame:
    """Return ``part, name, inside_ns, total_ns`` of the events around the owners of time, and of the owners.

    Args:
        events: The events.
        owned: ``context, kind, class, time_ns``: time by the context of its owner.
    """
    tree, contexts, first = events.tree, events.around.contexts, events.around.first
    names, first_of_name = alike(codes(tree.calls["name"]))
    above = tree.parent[first]
    parent = chosen(contexts, above)
    own = owned.with_columns(
        pl.col("class").cast(pl.String), pl.col("kind").replace_strict(_KINDS, return_dtype=pl.String)
    )
    current, times = own["context"].to_numpy(), own["time_ns"].to_numpy()
    rows, seen = np.arange(current.size), [pl.DataFrame(schema={"row": pl.Int64, "code": pl.Int64})]
    while rows.size:  # once per depth
        seen.append(pl.DataFrame({"row": rows, "code": names[first[current]].astype(np.int64)}))
        outer = parent[current]
        rows, current = rows[outer >= 0], outer[outer >= 0]
    pairs = pl.concat(seen).unique()  # a name counts once for each owner, however deep its calls nest
    of_owner = own.select(part_of_cause().alias("part"))["part"]
    pairs = pairs.with_columns(
        of_owner.gather(pairs["row"]).alias("part"), pl.Series("inside_ns", times[pairs["row"].to_numpy()])
    )
    inside = pairs.group_by("part", "code").agg(pl.col("inside_ns").sum())
    is_outer = outer_alike(tree.calls["thread_id"].to_numpy().astype(np.int64, copy=False), tree.ends, names)
    totals = summed(names[is_outer], tree.durations[is_outer], first_of_name.size)
    code = inside["code"].to_numpy()
    text = tree.calls["name"].gather(first_of_name[code]).cast(pl.String)
    named = inside.with_columns(text.alias("name"), pl.Series("total_ns", totals[code], pl.Int64))
    # A call that ends before one it is around has less of that one's time
    named = named.with_columns(pl.min_horizontal("inside_ns", "total_ns").alias("inside_ns"))
    return named.filter(~matches(pl.col("name"), _ENCLOSES_NOTHING)).select(list(_AROUND))


def _to_text(named: pl.DataFrame) -> pl.DataFrame:
    """Convert names to text, without the parts that differ between calls."""
    # There are few rows by now, so text functions are cheap
    texts = named.with_columns(pl.col("class", "cause", *PLACES).cast(pl.String))
    return texts.with_columns(
        pl.col("kind").replace_strict(_KINDS, return_dtype=pl.String),
        cause_name(pl.col("cause")),
        *(without_id(pl.col(place)).alias(place) for place in ("operator", "range")),
        replaced(pl.col("module"), MODULE, ""),
        located(pl.col("location")),
    )


def _read_events(trace: TraceView, rank: int, judged: IntervalSet) -> _Events:
    """Return the events of a process that run in ``judged`` time."""
    leader = training_thread(trace, rank)
    sources = [source for source in _SOURCES if trace.tables.rows(source)] or _SOURCES[:1]
    frames = [_read_rows(trace, source, rank, leader, judged) for source in sources]
    if (runs := migration_runs(trace).get(rank)) is not None:
        frames.append(_read_migrations(runs.intersect(judged), frames[0]))
    rows = pl.concat([frame for frame in frames if frame.height] or frames[:1]).with_columns(_unless_step(trace, rank))
    # The tree's sort is stable, so equal events keep their order
    tree = CallTree.of(rows.rename({"inside": "op_id"}), ("thread_id", "source", "name", "kind", "part"))
    kinds = tree.calls["kind"].to_physical().fill_null(_NO_KIND).to_numpy()
    kinds, first_use = _mark_first_uses(trace, tree, kinds)
    leads = tree.calls["thread_id"].to_numpy() == leader
    is_range, is_transfer = _is_of_kinds(kinds, ("range",)), _is_of_kinds(kinds, ("parameter_transfer",))
    if is_transfer.any():  # a range within a transfer is a part of it
        kinds = np.where(is_range & (tree.nearest(is_transfer) >= 0), np.uint8(_CODES["parameter_transfer"]), kinds)
    is_system = (tree.calls["source"] == "os_calls").to_numpy()
    names = tree.calls["name"].filter(pl.Series(is_system)).unique().cast(pl.String)
    may_wait = _is_of_kinds(kinds, _WEAK)
    if waits := names.filter(matching(names, THREAD_CALLS)).to_list():
        may_wait |= is_system & are_named(tree.calls["name"], waits).to_numpy()
    explaining = _find_explaining_calls(tree, kinds, is_system)
    if first_use is not None:
        explaining = np.arange(kinds.size) if explaining is None else explaining
        explaining = np.where(first_use[explaining] >= 0, first_use[explaining], explaining)
    return _Events(tree, kinds, may_wait, places_around(tree), explaining, leads, leader)


def _mark_first_uses(
    trace: TraceView, tree: CallTree, kinds: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], Rows | None]:
    """Return ``kinds`` with those of the first uses of operators, and the operator of each event in one, or -1.

    The second is ``None`` if there are no first uses.
    """
    uses = first_uses(trace)
    places = np.flatnonzero(np.isin(tree.starts, uses["start_ns"].to_numpy()))
    if not places.size:
        return kinds, None
    key = ["thread_id", "start_ns", "end_ns", "name"]
    times = pl.Series("start_ns", tree.starts[places]), pl.Series("end_ns", tree.ends[places])
    near = taken(tree.calls[["thread_id", "name"]], places).with_columns(pl.col("name").cast(pl.String), *times)
    near = near.with_columns(pl.Series("row", places)).join(uses, on=key, how="semi")
    is_first = np.zeros(kinds.size, dtype=bool)
    is_first[near["row"].to_numpy()] = True
    first_use = np.where(_is_of_kinds(kinds, _OF_FIRST_USE), tree.nearest(is_first), -1)
    return np.where(first_use >= 0, np.uint8(_CODES["first_launch"]), kinds), first_use


DRIVER_THREAD = -2
"""Thread of events that the driver causes on any thread."""


def _read_migrations(runs: IntervalSet, like: pl.DataFrame) -> pl.DataFrame:
    """Return runs of migrations as events: columns of :func:`_read_rows`."""
    columns = {
        "start_ns": pl.lit(pl.Series(runs.starts)),
        "end_ns": pl.lit(pl.Series(runs.ends)),
        "thread_id": pl.lit(DRIVER_THREAD),
        "source": pl.lit("cuda_api"),
        "name": pl.lit(MIGRATION),
        "kind": pl.lit("migration"),
        "part": pl.lit(None),
        "inside": pl.lit(0),
    }
    return pl.select(columns[name].cast(dtype).alias(name) for name, dtype in like.schema.items())


def _is_of_kinds(kinds: npt.NDArray[np.uint8], wanted: Iterable[KindKey]) -> npt.NDArray[np.bool_]:
    """Return a mask of the ``kinds`` that are ``wanted``."""
    lookup = np.zeros(_NO_KIND + 1, dtype=bool)
    lookup[[_CODES[kind] for kind in wanted]] = True
    return np.asarray(lookup[kinds])


@once_per_trace
def _kinds_by_behaviour(trace: TraceView) -> npt.NDArray[np.uint8]:
    """Return, for each row of ``cuda_api``, the kind that no name shows: blocking or other copies, and first calls.

    :data:`_NO_KIND` if the name determines the kind.
    """
    did = np.full(trace.tables.rows("cuda_api"), _NO_KIND, np.uint8)
    copies = copy_calls(trace)
    waits = copies["wait_ns"].is_not_null().to_numpy()
    did[copies["row"].to_numpy()] = np.where(waits, _CODES["blocking_copy"], _CODES["launch"])
    did[first_calls(trace)["row"].to_numpy()] = _CODES["first_launch"]
    return did


def _replace_by_behaviour(trace: TraceView, kinds: pl.Series, rows: npt.NDArray[np.integer]) -> pl.Series:
    """Return ``kinds`` of calls in these ``rows`` of ``cuda_api``, replaced by what the calls did if that is known."""
    did = _kinds_by_behaviour(trace)[rows]
    told = did != _NO_KIND
    if not told.any():
        return kinds
    numbers = np.where(told, did, kinds.to_physical().fill_null(_NO_KIND).to_numpy())
    return pl.Series([*KIND.categories, None], dtype=KIND).gather(numbers).alias(kinds.name)


def _rows_within(judged: IntervalSet, events: pl.DataFrame) -> Codes:
    """Return the rows of ``events`` that run in ``judged`` time."""
    rows, count = np.empty(events.height, np.int32), 0  # only the written part takes memory
    for part in blocks(events.height):
        inside = np.flatnonzero(judged.overlap(*bounds(events[part])))
        rows[count : count + inside.size] = inside + part.start
        count += inside.size
    return rows[:count]


def _read_rows(trace: TraceView, source: str, rank: int, leader: int, judged: IntervalSet) -> pl.DataFrame:
    """Return the events of a table that run in ``judged`` time.

    Columns are ``start_ns, end_ns, thread_id, source, name``; ``kind`` and ``part``, from the name; and ``inside``, the
    nesting order of events with the same bounds.
    """
    kind = ("kind",) if source == "nvtx" else ()
    parts, before = [], 0
    for piece in trace.pieces(source, "process_id", "start_ns", "dur_ns", "thread_id", "name", *kind):
        numbered = piece
        if source == "host_ops":
            numbered = piece.with_columns(pl.Series("said", trace.host_name_rows[before : before + piece.height]))
        elif source == "cuda_api":
            numbered = piece.with_row_index("row", before)
        before += piece.height
        own = of_process(numbered, rank)
        if source == "os_calls":
            own = having(own, "thread_id", leader)
        elif source == "nvtx":
            own = own.filter(pl.col("kind") != "mark")
        parts.append(taken(own.drop("process_id", *kind), _rows_within(judged, own)))
    rows = in_one_piece(parts)
    name = rows["name"].cast(pl.Categorical)
    if "said" in rows.columns:
        said, distinct = rows["said"].to_numpy(), trace.host_names
    else:
        said, first = alike(codes(name))
        distinct = pl.DataFrame([name.gather(first).cast(pl.String)])
    meanings = taken(_find_meanings(source, distinct), said)
    if source == "os_calls" and _runs_python(trace, rank):
        is_gil = are_named(name, [GIL_WAIT]) & (rows["dur_ns"] <= LONGEST_GIL_WAIT_NS)
        meanings = meanings.with_columns(pl.when(is_gil).then(pl.lit("gil", KIND)).otherwise("kind").alias("kind"))
    if source == "nvtx" and (fetches := parameter_fetches(trace)):
        of_parts = taken(distinct.select(pl.col("name").is_in(list(fetches)).alias("part")), said)["part"]
        moved = pl.when(of_parts).then(pl.lit("parameter_transfer", KIND)).otherwise("kind")
        meanings = meanings.with_columns(moved.alias("kind"))
    if "row" in rows.columns:
        meanings = meanings.with_columns(_replace_by_behaviour(trace, meanings["kind"], rows["row"].to_numpy()))
    known = pl.lit(source, _SOURCE).alias("source"), name
    return rows.select("start_ns", end_ns(), "thread_id", *known).hstack(meanings)


def _runs_python(trace: TraceView, rank: int) -> bool:
    names = of_process(trace.frame("processes", "process_id", "name"), rank)["name"].drop_nulls().cast(pl.String)
    return bool(len(names) and any(matching(names, r"(?i)\bpython[\d.]*$")))


_SOURCE = pl.Enum(_SOURCES)
_CLASS = pl.Enum([c.key for c in CLASSES])


def _find_meanings(source: str, names: pl.DataFrame) -> pl.DataFrame:
    """Return ``kind`` of cause, ``part`` of the program, and ``inside`` for distinct names (text) of a table.

    If events have the same bounds, those of earlier tables enclose the others. Among host operations, those of earlier
    categories do.
    """
    category = pl.col("category") if "category" in names.columns else pl.lit(None, pl.String).alias("category")
    distinct = names.select(category, "name")
    part = pl.lit(None, pl.String)
    if source in {"nvtx", "host_ops"}:
        part = part_of_program(pl.lit(source), pl.col("category"), pl.col("name"))
    order = {name: number for number, name in enumerate(_CATEGORY_ORDER, 1)}
    last, table = len(order) + 1, _SOURCES.index(source) - _SOURCES.index("host_ops")
    inside = pl.lit(0 if table < 0 else last + table)
    if not table:
        inside = pl.col("category").replace_strict(order, default=last, return_dtype=pl.Int32)
    said = part.cast(pl.Enum(PARTS)).alias("part"), inside.cast(pl.UInt8).alias("inside")
    return distinct.select(kinds_of(source, distinct), *said)


def _unless_step(trace: TraceView, rank: int) -> pl.Expr:
    """Return the kind of an event, null for a step mark: it covers everything and explains nothing.

    A range that only repeats once per step, and was inferred to mark steps, is work like any other.
    """
    steps = training_steps(trace)
    if steps.source in INFERRED:
        return pl.col("kind")
    marks = having(steps.frame, "process_id", rank)
    thread = steps.thread_id.get(rank)
    if thread is None or not marks.height or not trace.tables.rows("nvtx"):
        return pl.col("kind")
    is_mark = (pl.col("thread_id") == thread) & pl.col("start_ns").is_in(marks["start_ns"].implode())
    is_mark &= pl.col("source") == "nvtx"
    return pl.when(~is_mark).then("kind").alias("kind")


def _find_explaining_calls(
    tree: CallTree, kinds: npt.NDArray[np.uint8], is_system: npt.NDArray[np.bool_]
) -> Array | None:
    """Return, for each call, the call that explains its time; ``None`` if each call explains its own.

    This is the outermost call of the device's API around it, which includes calls of the driver and the system. The
    same holds for operators within a collective on the host, and for calls within a wait for a device. A system call
    directly within a call of the framework is explained by that call.
    """
    if not tree.depth.any():
        return None
    explains = _is_of_kinds(kinds, ("host_collective", "device_wait")) | (tree.calls["source"] == "cuda_api").to_numpy()
    rows = np.arange(explains.size)
    found = rows
    if is_system.any():
        caller = tree.nearest(~is_system)
        found = np.where(is_system & (caller >= 0) & _is_of_kinds(kinds, _FRAMEWORK)[caller], caller, rows)
    if explains.any():
        outermost = tree.topmost(explains)
        # Memory that a collective allocates or registers, and code that it loads, explain their own time
        device_call = tree.topmost((tree.calls["source"] == "cuda_api").to_numpy())
        prepares = (device_call >= 0) & _is_of_kinds(kinds, _PREPARES)[device_call]
        outermost = np.where(prepares, device_call, outermost)
        found = np.where(outermost >= 0, outermost, found)
    return None if found is rows or np.array_equal(found, rows) else found


def describe_first_use(trace: TraceView, causes: pl.DataFrame) -> str:
    """Return the sentence about the first and later calls of the operator with most of ``cause, time_ns``, if known."""
    names = causes.group_by("cause").agg(pl.col("time_ns").sum()).sort("time_ns", "cause", descending=[True, False])
    uses = first_uses(trace).filter(pl.col("name").is_in(names["cause"].head(1).implode()))
    if not uses.height:
        return ""
    first = uses.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("first_ns"))
    longest = first.sort("first_ns", descending=True).row(0, named=True)
    later = f"{format_ns(longest['later_ns'])}{' in the median' if longest['later'] > 1 else ''}"
    which = "later ones take" if longest["later"] > 1 else "the next one"
    return f"The first {shortened(longest['name'])} takes {format_ns(longest['first_ns'])}, {which} {later}."


def time_in_calls(trace: TraceView, causes: pl.Series) -> pl.DataFrame:
    """Return ``cause, total_ns``: judged time in all calls of each cause, even while a device works.

    Args:
        trace: The trace.
        causes: Distinct names of causes.

    Returns:
        One row for each of ``causes``. Times of calls that nest, or run on several threads, add up.
    """
    judged = union_all(judged_time(trace, rank) for rank in trace.ranks)
    parts = [_sum_times(trace, source, causes, judged) for source in _SOURCES if trace.tables.rows(source)]
    empty = pl.DataFrame(schema={"cause": pl.String, "total_ns": pl.Int64})
    sums = pl.concat([empty, *parts]).group_by("cause").agg(pl.col("total_ns").sum())
    return pl.DataFrame({"cause": causes}).join(sums, on="cause", how="left", maintain_order="left")


def _sum_times(trace: TraceView, source: str, causes: pl.Series, judged: IntervalSet) -> pl.DataFrame:
    """Return rows of :func:`time_in_calls` of one table. Names are compared once each; events use name numbers."""
    events = trace.frame(source, "start_ns", "dur_ns", "name")
    groups = Groups.of(events, "name")
    names = groups.keys.select(cause_name(pl.col("name")).alias("cause"))
    is_asked = names["cause"].is_in(causes.implode()).fill_null(value=False).to_numpy()
    if not is_asked.all():
        asked = is_asked[groups.codes]
        events = events.filter(pl.Series(asked, dtype=pl.Boolean))
        groups = Groups(groups.keys, groups.codes[asked])
    totals = groups.sums(judged.overlap(*bounds(events)))
    return names.with_columns(pl.Series("total_ns", totals)).filter(pl.Series(is_asked, dtype=pl.Boolean))
