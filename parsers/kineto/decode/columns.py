"""From the texts that a decoder found in events to typed columns: the part that all decoders share.

A decoder returns numbers for plain numbers, and for other values the place of their JSON text in a list of distinct
texts. Each text is interpreted once, and the result is copied to all events that have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from traceviz.parsers.kineto.decode.values import (
    INT64,
    WrongValueError,
    integer_value,
    real_value,
    time_value,
    triple_value,
)
from traceviz.parsers.kineto.raw import ARGUMENTS, PHASES, Argument, Kind
from traceviz.parsers.shared.json.texts import text_value
from traceviz.parsers.shared.json.walk import Step

Rows: TypeAlias = npt.NDArray[np.int32]
Codes: TypeAlias = npt.NDArray[np.int32]
Integers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

TEXT_MEMBERS = ("name", "category", "pid", "tid")
ABSENT = -1
"""Code of a value that an event does not have."""
NO_TIME = -INT64
"""Stands for a missing time, or for one that is among the odd values."""

_METADATA = PHASES.index("M")


@dataclass(frozen=True, slots=True)
class Odd:
    """Values that are not plain.

    Args:
        rows: Their events, ascending.
        codes: The places of their texts, or :data:`ABSENT`.
    """

    rows: Rows
    codes: Codes


@dataclass(frozen=True, slots=True)
class Sparse:
    """Values of one argument, for the events that have it.

    Args:
        rows: Events, ascending.
        values: Plain whole numbers, or places of texts if the argument is of another kind; one per row.
        odd: Whole numbers that are not plainly written; their events are not among ``rows``.
    """

    rows: Rows
    values: Any
    odd: Odd


class Pieces(Protocol):
    """Output of a decoder. Each part can be taken once, and is then freed."""

    rows: int
    """Number of events."""
    no_objects: int
    """Number of elements of the list that are not objects."""
    passed_over: Mapping[int, int]
    """Number of events of other phases, by the place of the phase's text."""

    def texts(self) -> Sequence[bytes]:
        """Return the distinct JSON texts of values."""

    def phases(self) -> npt.NDArray[np.uint8]:
        """Return place of each event's phase in :data:`PHASES`."""

    def codes(self, member: str) -> Codes:
        """Return places of the texts of one of :data:`TEXT_MEMBERS`."""

    def times(self, member: str) -> tuple[Integers, Odd]:
        """Return nanoseconds of ``ts`` or ``dur``."""

    def argument(self, column: str) -> Sparse:
        """Return the values of one argument."""


class Scanner(Protocol):
    """Finds the events of one file in blocks of text: compiled or portable."""

    name: str

    def feed(self, text: bytes, place: int) -> Step:
        """Take the complete elements of a list of events from ``place`` on.

        ``place`` is before an element, a comma or the bracket that ends the list.

        Raises:
            OverflowError: there are more than 2,147,483,647 events or distinct texts.
        """

    def pieces(self) -> Pieces:
        """Return the events found; called once, at the end."""


@dataclass(frozen=True, slots=True, eq=False)
class Built:
    """Events as :class:`~traceviz.parsers.kineto.raw.RawTrace` holds them, and counts from the decoding."""

    events: pl.DataFrame
    passed_over: dict[str, int]
    unusable: dict[str, int]
    repaired: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """State that all columns share: the number of events, the distinct texts, and counts of wrong values."""

    rows: int
    texts: Sequence[bytes]
    unusable: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)


def build(pieces: Pieces, arguments: Sequence[Argument] = ARGUMENTS) -> Built:
    """Return all columns of the events."""
    work = _Work(pieces.rows, pieces.texts())
    phases = pieces.phases()
    start, dur, usable = _build_times(pieces, phases == _METADATA, work)
    columns = {"phase": _categorical(phases.astype(np.int32), list(PHASES), "phase")}
    columns |= {member: _texts(pieces.codes(member), member, work, nothing="") for member in TEXT_MEMBERS}
    columns |= {"start_ns": start, "dur_ns": dur}
    for argument in arguments:
        sparse = pieces.argument(argument.column)
        if len(sparse.rows) or len(sparse.odd.rows):
            columns[argument.column] = _build_argument(sparse, argument, work)
        del sparse  # free it before taking the next one
    frame = pl.DataFrame(columns)
    work.unusable["that are no objects"] += pieces.no_objects
    passed_over: Counter[str] = Counter()
    for code, count in pieces.passed_over.items():
        if code == ABSENT:
            work.unusable["without a phase"] += count
        else:
            passed_over[text_value(work.texts[code]) or ""] += count
    kept = frame if usable.all() else frame.filter(pl.Series(usable))
    return Built(kept, dict(passed_over), dict(+work.unusable), dict(+work.repaired))


def _build_times(pieces: Pieces, metadata: Mask, work: _Work) -> tuple[pl.Series, pl.Series, Mask]:
    """Return starts, durations, and a mask of usable events. Names of threads need no time: a wrong one is left out."""
    start, odd_start = pieces.times("ts")
    dur, odd_dur = pieces.times("dur")
    usable = np.ones(work.rows, np.bool_)
    for times, odd in ((start, odd_start), (dur, odd_dur)):
        for reason, rows in _fill_odd_times(times, odd, work.texts):
            wrong = rows[~metadata[rows] & usable[rows]]
            usable[wrong] = False
            if len(wrong):
                work.unusable[reason] += len(wrong)
    negative = (dur < 0) & (dur != NO_TIME)
    work.repaired["negative durations"] += int(negative.sum())
    dur[negative] = NO_TIME
    beyond = (start > (INT64 - 1) - np.maximum(dur, 0)) & usable
    work.unusable["with a time out of range"] += int(beyond.sum())
    usable &= ~beyond
    start_ns, dur_ns = (_arrow(times, times != NO_TIME, pa.int64()) for times in (start, dur))
    return _series(start_ns, "start_ns"), _series(dur_ns, "dur_ns"), usable


def _fill_odd_times(times: Integers, odd: Odd, texts: Sequence[bytes]) -> Iterator[tuple[str, Rows]]:
    """Fill in the times that are not plain; yield each reason why texts are no times, and their rows."""
    codes, place = np.unique(odd.codes, return_inverse=True)
    outcomes: list[int | str] = []
    for code in codes.tolist():
        try:
            outcomes.append("without a time" if code == ABSENT or not texts[code] else time_value(texts[code]))
        except WrongValueError as error:
            outcomes.append(f"with a time {error}".replace("that are", "that is"))
    times[odd.rows] = np.array([time if isinstance(time, int) else NO_TIME for time in outcomes], np.int64)[place]
    for reason in dict.fromkeys(outcome for outcome in outcomes if isinstance(outcome, str)):
        of_reason = np.array([outcome == reason for outcome in outcomes], np.bool_)
        yield reason, odd.rows[of_reason[place]]


def _texts(codes: Codes, column: str, work: _Work, nothing: str | None = None) -> pl.Series:
    """Return the texts for ``codes``, ``nothing`` for codes without a text; each distinct text is decoded once."""
    size = len(work.texts)
    occurs = np.zeros(size + 1, np.bool_)
    occurs[codes] = True  # the last entry is that of ABSENT
    used = np.flatnonzero(occurs)
    meanings = [None if code == size else text_value(work.texts[code], work.repaired) for code in used.tolist()]
    words = [nothing if word is None else word for word in meanings]
    known = {word: at for at, word in enumerate(dict.fromkeys(word for word in words if word is not None))}
    names = np.full(size + 1, ABSENT, np.int32)
    names[used] = [ABSENT if word is None else known[word] for word in words]
    return _categorical(names[codes], list(known), column)


def _categorical(codes: Codes, names: list[str], column: str) -> pl.Series:
    indices = _arrow(codes, codes != ABSENT, pa.int32())
    coded = pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.large_string()))
    return _series(coded, column).cast(pl.Categorical)


_READERS: dict[Kind, tuple[Callable[[bytes], Any], Any, type[np.generic]]] = {
    Kind.INTEGER: (integer_value, 0, np.int64),
    Kind.REAL: (real_value, 0.0, np.float64),
    Kind.TRIPLE: (triple_value, (0, 0, 0), np.int32),
}
"""For each kind of numbers: the function that reads a text, the placeholder for a missing value, and the type."""


def _build_argument(sparse: Sparse, argument: Argument, work: _Work) -> pl.Series:
    """Return the column of one argument; values of a wrong kind are null and counted."""
    column, kind = argument.column, argument.kind
    if kind is Kind.TEXT:
        codes = np.full(work.rows, ABSENT, np.int32)
        codes[sparse.rows] = sparse.values
        return _texts(codes, column, work)
    read, nothing, dtype = _READERS[kind]
    values: npt.NDArray[Any] = np.zeros((work.rows, 3) if kind is Kind.TRIPLE else work.rows, dtype)
    valid = np.zeros(work.rows, np.bool_)
    odd = Odd(sparse.rows, sparse.values)
    if kind is Kind.INTEGER:
        values[sparse.rows] = sparse.values
        valid[sparse.rows] = True
        odd = sparse.odd
    if len(odd.rows):
        distinct, place = np.unique(odd.codes, return_inverse=True)
        meanings: list[Any] = []
        for code, count in zip(distinct.tolist(), np.bincount(place).tolist(), strict=True):
            try:
                meanings.append(read(work.texts[code]))
            except WrongValueError as error:
                meanings.append(None)
                work.repaired[f"values of {column} {error}"] += count
        values[odd.rows] = np.array([nothing if value is None else value for value in meanings], dtype)[place]
        valid[odd.rows] = np.array([value is not None for value in meanings], np.bool_)[place]
    if kind is Kind.TRIPLE:
        flat = pa.Array.from_buffers(pa.int32(), values.size, [None, _buffer(values)])
        lists = pa.Array.from_buffers(pa.list_(pa.int32(), 3), work.rows, [_bitmap(valid)], children=[flat])
        return _series(lists, column)
    return _series(_arrow(values, valid, pa.int64() if kind is Kind.INTEGER else pa.float64()), column)


def _series(array: pa.Array[Any], column: str) -> pl.Series:
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series.alias(column)


def _arrow(values: npt.NDArray[Any], valid: Mask, kind: pa.DataType) -> pa.Array[Any]:
    """Return an Arrow array over the memory of ``values``, without a copy."""
    return pa.Array.from_buffers(kind, len(values), [_bitmap(valid), _buffer(values)])


def _bitmap(valid: Mask) -> pa.Buffer | None:
    return None if valid.all() else _buffer(np.packbits(valid, bitorder="little"))


def _buffer(values: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values).data)
