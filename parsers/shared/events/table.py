"""Columns of event tables: raw batches of 64-bit integers become the narrow types of the contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.mapping import Whole, Word
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.plausible import since_each


@dataclass(slots=True)
class Repairs:
    """Rows of one table that were dropped or repaired."""

    without_start: int = 0
    negative: int = 0
    without_owner: int = 0
    untimed: int = 0
    too_large: dict[str, int] = field(default_factory=dict)


def note_repairs(notes: Notes, name: str, repairs: Repairs) -> None:
    """Note repairs in the table ``name`` of the contract."""
    notes.add("start-missing", "warning", f"{name}: rows without a start, left out.", repairs.without_start)
    notes.add(
        "negative-duration",
        "warning",
        f"{name}: rows that end before they start, kept without a duration.",
        repairs.negative,
    )
    notes.add(
        "owner-unknown",
        "warning",
        f"{name}: rows without a process, counted as process 0; verdicts may be wrong.",
        repairs.without_owner,
    )
    for column, count in repairs.too_large.items():
        notes.add("value-too-large", "info", f"{name}.{column}: values beyond 32 bits, left out.", count)
    untimed = f"{name}: rows whose time the profiler could not take, left out."
    notes.add("not-timed", "warning", untimed, repairs.untimed)


def of_each(function: Callable[..., Array], *columns: Array) -> Array:
    """Return ``function`` of integer ``columns``, computed once if each column has one value, as in most batches."""
    rows = len(columns[0])
    ranges = [pc.min_max(column, skip_nulls=False) for column in columns]
    if not rows or any(not bounds["min"].is_valid or bounds["min"] != bounds["max"] for bounds in ranges):
        return function(*columns)
    return pa.repeat(function(*(column.slice(0, 1) for column in columns))[0], rows)


def first(names: tuple[str, ...], available: frozenset[str] | set[str]) -> str | None:
    """Return the first of ``names`` that is available."""
    return next((name for name in names if name in available), None)


def raw_column(batch: pa.RecordBatch, name: str | None) -> Array:
    """Return the column ``name`` of integers; nulls if ``batch`` does not have it."""
    return batch[name] if name in batch.schema.names else pa.nulls(batch.num_rows, pa.int64())


def combination_codes(columns: Sequence[Any], rows: int) -> npt.NDArray[np.int64]:
    """Return a number for each row, equal for rows in which all ``columns`` are equal."""
    codes = np.zeros(rows, dtype=np.int64)
    for column in columns:
        values = pc.unique(column)
        if len(values) > 1:  # in most columns all values are equal
            codes = codes * len(values) + pc.index_in(column, value_set=values).to_numpy()
    return codes


def durations(starts: Array, ends: Array | None, repairs: Repairs) -> Array:
    """Return ``ends - starts``. Negative durations become null and are counted; without recorded ends, all are null."""
    if ends is None:
        return pa.nulls(len(starts), pa.int64())
    lasting = since_each(starts, ends)
    negative = pc.sum(pc.less(lasting, 0)).as_py() or 0
    repairs.negative += negative
    return pc.if_else(pc.less(lasting, 0), pa.scalar(None, pa.int64()), lasting) if negative else lasting


def converted(values: Array, column: Whole | Word, kind: pa.DataType, repairs: Repairs) -> Array:
    """Return raw ``values`` as the contract's ``column`` of type ``kind``. Too large ones are null and counted."""
    if isinstance(column, Word):
        # The dictionary is the same for every batch.
        words = list(dict.fromkeys([*column.words.values(), column.other]))
        codes: Array = pa.array([words.index(word) for word in column.words.values()], pa.int32())
        numbers = pa.array(list(column.words), pa.int64())
        otherwise = words.index(column.other)
        indices = of_each(lambda part: codes.take(pc.index_in(part, value_set=numbers)).fill_null(otherwise), values)
        return pa.DictionaryArray.from_arrays(indices, pa.array(words))
    if column.unset is not None:
        values = pc.if_else(pc.equal(values, column.unset), pa.scalar(None, pa.int64()), values)
    if values.type == kind:
        return pc.add(values, 0)  # sharing memory with the values would keep the whole batch in memory
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        wrapped = values.cast(kind, safe=False)
        fits = pc.equal(wrapped.cast(pa.int64()), values)
        too_large = repairs.too_large.get(column.name, 0) + (pc.sum(pc.invert(fits)).as_py() or 0)
        repairs.too_large[column.name] = too_large
        return pc.if_else(fits, wrapped, pa.scalar(None, kind))
