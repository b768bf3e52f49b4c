"""The events of a decoded trace by role, on a clock that starts with the first of them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from traceviz.parsers.kineto.categories import (
    CATEGORIES,
    CODES,
    COUNTED,
    DEVICE_NAMES,
    DEVICE_ROLES,
    MEMORY_NAME,
    OF_CUDA,
    OUT_OF_MEMORY_NAME,
    UNKNOWN,
    Role,
    host_category,
)
from traceviz.parsers.kineto.columns import Words
from traceviz.parsers.kineto.raw import RawTrace
from traceviz.parsers.shared.arrays.operations import NONE, Array, looked_up, positions, stretches, take
from traceviz.trace.plausible import LONGEST_NS, elapsed, window_of

_COMPLETE, _BEGIN, _END, _COUNTER = "X", "B", "E", "C"
_INSTANTS = frozenset("iI")

_API_CALL = re.compile(r"(?:cuda|cu|hip)[A-Z][A-Za-z]{3,}(?:_v\d+)?(?:_ptsz|_ptds)?")
"""Names of functions of CUDA and HIP, as tools that trace these record them: ``cuLaunchKernel``, ``cuMemAlloc_v2``."""

MEASURED_WITH_COUNTERS = "kernels-measured-with-counters"
"""Code of the note on ranges of CUPTI's range profiler."""


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """The events of a file, in its order.

    Args:
        frame: Their arguments, see :mod:`traceviz.parsers.kineto.raw`.
        role: Role of each (int8), a :class:`~traceviz.parsers.kineto.categories.Role`.
        category: Code of the host category of those on threads (int8).
        name: Their names.
        label: Their categories as the file spells them.
        pid: Their process as the file states it.
        tid: Their thread as the file states it.
        start: Start in ns after the first event (int64).
        dur: Duration in ns (int64), :data:`NONE` if unknown.
        never_ended: Positions of events without an end (int32), which last to the end of the capture.
        zero_ns: The clock of the file at the first event, in ns.
        span_ns: From the first event to the end of the last, in ns.
        set_aside: Number of events that became no row, by code of the note.
        strays: Starts of the events left out as too far from the others for one capture, in the file's ns.
        too_long: Durations left out, in ns.
        cut_ns: Stated time of kernels that was cut off, see :mod:`traceviz.parsers.kineto.in_order`.
        kernels_cut: Number of these kernels.
    """

    frame: pl.DataFrame
    role: Array
    category: Array
    name: Words
    label: Words
    pid: Words
    tid: Words
    start: Array
    dur: Array
    never_ended: Array
    zero_ns: int
    span_ns: int
    set_aside: Counter[str]
    strays: Array
    too_long: Array
    cut_ns: int = 0
    kernels_cut: int = 0

    def rows(self, *roles: Role) -> Array:
        """Return positions (int32) of the events with one of ``roles``."""
        return positions(self.has(*roles))

    def has(self, *roles: Role) -> Array:
        """Return whether each event has one of ``roles`` (bool)."""
        wanted = np.zeros(len(Role), dtype=bool)
        wanted[list(roles)] = True
        return looked_up(wanted, self.role)

    @property
    def is_counted_only(self) -> bool:
        """True if device work was measured with counters, so that the profiler does not record it."""
        return self.set_aside[MEASURED_WITH_COUNTERS] > 0 and not self.rows(*DEVICE_ROLES).size

    def extent(self, rows: Array) -> Array:
        """Return the durations of the events ``rows`` for nesting (int64); zero for instants."""
        length = take(self.dur, rows)
        unknown = positions(length < 0)
        if unknown.size:
            open_ended = np.isin(rows[unknown], self.never_ended)
            length[unknown] = np.where(open_ended, self.span_ns - self.start[rows[unknown]], 0)
        return length


def classify_events(raw: RawTrace) -> Events:
    """Return the events of ``raw`` with role, category and time."""
    frame = raw.events
    phase, label, pid, tid = (Words.of(frame[key], narrow=True) for key in ("phase", "category", "pid", "tid"))
    name = Words.of(frame["name"])
    set_aside: Counter[str] = Counter()
    role, category = _classify(phase, label, name)
    start = frame["start_ns"].fill_null(0).to_numpy()
    dur = frame["dur_ns"].fill_null(NONE).to_numpy(writable=True)
    begun = phase.each(lambda word: word == _BEGIN, False, np.bool_)
    ended = phase.each(lambda word: word == _END, False, np.bool_)
    if ended.any() or begun.any():
        marks = pl.DataFrame({"begun": begun, "ended": ended, "pid": pid.codes, "tid": tid.codes, "start": start})
        set_aside["ends-without-begin"] = pair(marks, dur)
        role[ended] = Role.IGNORED
    never_ended = positions(begun & (dur < 0))
    set_aside["events-never-ended"] = never_ended.size
    set_aside[MEASURED_WITH_COUNTERS] = int(label.each(partial(_is_of, COUNTED), False, np.bool_).sum())
    set_aside["counters-unread"] = int(phase.each(_COUNTER.__eq__, False, np.bool_).sum())
    strays, too_long = _ignore_strays(role, start, dur)
    kept = role != Role.IGNORED
    firsts, lasts = [], []
    for part in stretches(kept.size):
        starts = start[part][kept[part]]
        if starts.size:
            firsts.append(int(starts.min()))
            lasts.append(int((starts + np.maximum(dur[part][kept[part]], 0)).max()))
    zero, last = min(firsts, default=0), max(lasts, default=0)
    start = start - zero
    instant = phase.each(_INSTANTS.__contains__, False, np.bool_)
    set_aside["out-of-memory"] = int((instant & name.each(OUT_OF_MEMORY_NAME.__eq__, False, np.bool_)).sum())
    arguments = frame.drop("phase", "category", "name", "pid", "tid", "start_ns", "dur_ns")
    return Events(
        arguments, role, category, name, label, pid, tid, start, dur, never_ended, zero, last - zero, +set_aside,
        strays, too_long,
    )  # fmt: skip


def with_ranges_of_the_program(events: Events) -> Events:
    """Return ``events`` of a program that PyTorch's profiler did not record: its named events are its own ranges.

    Nodes of ONNX Runtime are operators, and events with names of CUDA's or HIP's functions are calls of these. In
    PyTorch's traces, events of unknown categories are the framework's.
    """
    called = events.name.each(lambda word: _API_CALL.fullmatch(word) is not None, False, np.bool_)
    called &= (events.role == Role.HOST) & (events.category == CODES["runtime"])
    events = replace(events, role=np.where(called, np.int8(Role.API), events.role))
    node = events.label.each(lambda word: word.lower() == "node", False, np.bool_)
    named = (events.category == CODES["runtime"]) | ((events.category == CODES["op"]) & ~node)
    named &= events.role == Role.HOST
    return replace(events, category=np.where(named, np.int8(CODES["annotation"]), events.category))


def _ignore_strays(role: Array, start: Array, dur: Array) -> tuple[Array, Array]:
    """Ignore events that are too far from the others for one capture, and remove impossible durations.

    Their times count from another moment, or are zero.

    Returns:
        The starts of the ignored events, and the removed durations.
    """
    kept = role != Role.IGNORED
    window = window_of(start[kept])
    stray = kept & ~window.has(start) if window is not None else np.zeros(start.size, np.bool_)
    role[stray] = Role.IGNORED
    wrong = (dur > LONGEST_NS) | (dur < NONE)
    too_long = dur[wrong & kept & ~stray]
    dur[wrong] = NONE
    return start[stray], too_long


def _classify(phase: Words, label: Words, name: Words) -> tuple[Array, Array]:
    """Return role and code of the host category of the events (int8 both)."""
    meanings = [CATEGORIES.get(word.lower(), UNKNOWN) for word in label.words]
    role, category = (
        looked_up(np.array(answers, dtype=np.int8), label.codes)
        for answers in (
            [*(meaning.role for meaning in meanings), Role.HOST],
            [*(CODES[meaning.category] for meaning in meanings), CODES["runtime"]],
        )
    )
    shown = name.each(lambda word: CODES.get(host_category(word) or "", NONE), NONE, np.int8)
    renamed = (shown >= 0) & (role == Role.HOST) & (category != CODES["python"])
    category[renamed] = shown[renamed]
    for actual_role, of, prefix in DEVICE_NAMES:
        named = np.array([*(word.startswith(prefix) for word in name.words), False], np.bool_)
        of_category = label.each(partial(_is_of, of), False, np.bool_)
        role[(role == Role.KERNEL) & looked_up(named, name.codes) & of_category] = actual_role
    role[(role == Role.OVERHEAD) & name.each(lambda word: word.lower() in OF_CUDA, False, np.bool_)] = Role.IGNORED
    lasts = phase.each(lambda word: word in (_COMPLETE, _BEGIN), False, np.bool_)
    instant = phase.each(_INSTANTS.__contains__, False, np.bool_)
    memory = instant & name.each(MEMORY_NAME.__eq__, False, np.bool_)
    role[~lasts] = Role.IGNORED
    role[memory] = Role.MEMORY
    return role, category


def _is_of(category: str, word: str) -> bool:
    return category in ("", word.lower())


def pair(marks: pl.DataFrame, dur: Array) -> int:
    """Write into ``dur`` the durations of events whose start and end are two events of the file.

    Per thread, an end belongs to the last start that is still open::

        B   B   E   E   E          level of each event: 1 2 2 1 -, the last end closes nothing
        a   b   b   a   ?

    Args:
        marks: All events in the order of the file: start (``begun``) or end (``ended``), codes of its ``pid`` and
            ``tid``, and ``start`` in ns.
        dur: Output: durations in ns (int64).

    Returns:
        Number of ends without a start.
    """
    thread = ["pid", "tid"]
    change = pl.when("begun").then(1).otherwise(-1).alias("change")
    events = marks.with_row_index().filter(pl.col("begun") | pl.col("ended")).sort("start", maintain_order=True)
    summed = events.with_columns(change).with_columns(pl.col("change").cum_sum().over(thread).alias("sum"))
    lows = summed.with_columns(pl.min_horizontal(pl.col("sum").cum_min().over(thread), 0).alias("low"))
    # At a new low of the sum, an end closes nothing; subtract the lows so far.
    levelled = lows.with_columns(
        (pl.col("sum") - pl.col("low") + pl.col("ended")).alias("level"),
        (pl.col("low") < pl.col("low").shift(1, fill_value=0).over(thread)).alias("stray"),
    )
    closed = levelled.filter(~pl.col("stray")).with_columns(
        pl.col("start").shift(-1).over([*thread, "level"]).alias("end")
    )
    pairs = closed.filter(pl.col("begun") & pl.col("end").is_not_null())
    dur[pairs["index"].to_numpy()] = elapsed(pairs["start"].to_numpy(), pairs["end"].to_numpy())
    return int(levelled["stray"].to_numpy().sum())
