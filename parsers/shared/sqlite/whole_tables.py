"""Whole columns of an SQLite table at once, in the requested types, by the compiled decoder.

One pass over the leaf pages makes all columns: times relative to a zero, durations, narrow integers, and numbers
(codes) for columns with few distinct values. An earlier pass counts the rows (:meth:`SqliteTable.measure`), so that
each column is written once, at its final place. Threads work on ranges of the leaves. The codes of each range are
translated to those of the table at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.events.column_requests import (
    CodeColumn,
    ColumnRequest,
    Combination,
    DurationRequest,
    Label,
    NotPlainError,
    Number,
    NumberColumn,
    Result,
)
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.prefetch import Prefetch, map_early
from traceviz.parsers.shared.sqlite.pages import Integers, Pages, compiled_decoder
from traceviz.trace import schema

RANGE_BYTES = 4 << 20
"""Bytes of leaf pages that one thread decodes at once."""

_buffer: Any = pa.py_buffer
"""View of a NumPy array as a buffer, without a copy; the stubs of pyarrow do not declare this."""

_UTF8 = 1
_INTEGER, _DURATION, _CODE, _TEXT = range(4)


def whole_table(path: Path, root: int, stored: Mapping[str, str | None]) -> SqliteTable | None:
    """Return the table with this root page and these columns.

    ``None`` if there is no compiled decoder, or if only SQLite should read the table.
    """
    if decoder() is None:
        return None
    try:
        with Pages(path) as pages:
            leaves, last_ids = pages.leaves_with_ids(root)
            table = SqliteTable(path, leaves, pages.page_size, stored, alone=leaves.size == 1)
            # If no row was ever deleted, rows are numbered from 1, and parents state the greatest number in each leaf
            # except the last.
            last = pages.read(leaves[-1:])
            rows = np.append(np.diff(last_ids[:-1], prepend=0), int(last[3]) << 8 | int(last[4]))
            table.expected = rows if rows.min() > 0 and rows.max() <= pages.most_rows(1) else None
            return table
    except NotPlainError:
        return None


class SqliteTable:
    """A decoder of whole columns of one table.

    Args:
        path: The database; no program may be writing to it.
        leaves: Numbers of the leaf pages of the table, in the order of the rows.
        page_size: Bytes of a page.
        stored: Declared type of each column in stored order; ``None`` for those of a primary key.
        alone: True if the only leaf may be empty, as in a table without rows.
    """

    def __init__(
        self, path: Path, leaves: Integers, page_size: int, stored: Mapping[str, str | None], *, alone: bool
    ) -> None:
        self._path, self._leaves, self._page_size, self._stored = path, leaves, page_size, stored
        self._step = max(RANGE_BYTES // page_size, 1)
        self._ranges = [leaves[begin : begin + self._step] for begin in range(0, leaves.size, self._step)]
        self._alone = alone
        self._counts: dict[tuple[Keep, ...], list[int]] = {}
        self._prefetched: _Prefetched | None = None
        self.expected: Integers | None = None
        """Most likely number of rows of each leaf; ``None`` if unknown. Decoding verifies it."""

    def prefetch(
        self, prefetch: Prefetch, requests: Sequence[ColumnRequest], measured: Sequence[ColumnRequest], room: int
    ) -> int:
        """See :meth:`WholeTable.prefetch`."""
        size = 8 * len(requests) * int(self.expected.sum()) if self.expected is not None else 0
        are_few, are_distinct = self._leaves.size < 2 * self._step, len(set(requests)) == len(requests)
        if self.expected is None or self._prefetched or are_few or not are_distinct or not 0 < size <= room:
            return 0
        counts = np.add.reduceat(self.expected, np.arange(0, self._leaves.size, self._step)).tolist()
        everything = list(dict.fromkeys([*requests, *measured]))
        outs = [
            np.zeros(sum(counts), _type(request).to_pandas_dtype()) if request in requests else None
            for request in everything
        ]
        pages = Pages(self._path)
        try:
            decode = self._decoder(pages, (), everything, outs, counts)
        except NotPlainError:
            pages.close()
            return 0
        parts = [prefetch.submit(partial(decode, at)) for at in range(len(counts))]
        self._prefetched = _Prefetched(pages, prefetch, everything, outs, parts)
        return size

    def _prefetched_results(
        self, keeps: Sequence[Keep], progress: Callable[[int], None]
    ) -> dict[ColumnRequest, Result]:
        """Return the results of :meth:`prefetch`, if these ``keeps`` exclude no row; waits for them."""
        if self._prefetched is None or any(keep.column in self._stored for keep in keeps):
            return {}
        try:
            return self._prefetched.results(progress)
        except NotPlainError:
            self.close()  # some rows were deleted or added: the caller decodes again
            return {}

    def close(self) -> None:
        """See :meth:`WholeTable.close`."""
        if self._prefetched is not None:
            self._prefetched.close()
            self._prefetched = None

    def parts(self, count: int) -> Sequence[SqliteTable]:
        """See :meth:`WholeTable.parts`."""
        step = -(-self._leaves.size // max(count, 1))
        leaves = (self._leaves[begin : begin + step] for begin in range(0, self._leaves.size, step))
        return [SqliteTable(self._path, part, self._page_size, self._stored, alone=self._alone) for part in leaves]

    def measure(self, keeps: Sequence[Keep], requests: Sequence[ColumnRequest]) -> tuple[int, list[Result]]:
        """See :meth:`WholeTable.measure`."""
        known = self._prefetched_results(keeps, lambda _: None)
        if known and self._prefetched and known.keys() >= set(requests):
            return self._prefetched.rows, [known[request] for request in requests]
        done = list(self._decoded(keeps, requests, None, lambda _: None))
        self._counts[tuple(keeps)] = [rows for rows, _ in done]
        return sum(rows for rows, _ in done), _merge_ranges(requests, done, [None] * len(requests))

    def columns(
        self, keeps: Sequence[Keep], requests: Sequence[ColumnRequest], progress: Callable[[int], None]
    ) -> tuple[int, list[Result]]:
        """See :meth:`WholeTable.columns`."""
        known = self._prefetched_results(keeps, progress)
        if known and self._prefetched and known.keys() >= set(map(_without_shift, requests)):
            rows, self._prefetched = self._prefetched.rows, None  # callers reuse the memory of codes
            return rows, [_shift(known[_without_shift(request)], request) for request in requests]
        self.close()
        if tuple(keeps) not in self._counts:
            self.measure(keeps, ())
        rows = sum(self._counts[tuple(keeps)])
        outs = [
            np.zeros(rows, _type(request).to_pandas_dtype()) for request in requests
        ]  # untouched zeros take no memory
        done = list(self._decoded(keeps, requests, outs, progress))
        return rows, _merge_ranges(requests, done, outs)

    def _decoded(
        self,
        keeps: Sequence[Keep],
        requests: Sequence[ColumnRequest],
        outs: Sequence[npt.NDArray[Any] | None] | None,
        progress: Callable[[int], None],
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number of rows of each range, and the compiled function's results for its columns."""
        counts = None if outs is None else self._counts[tuple(keeps)]
        with Pages(self._path) as pages:
            decode = self._decoder(pages, keeps, requests, outs or [None] * len(requests), counts)
            rows = 0
            for decoded in map_early(decode, range(len(self._ranges))):
                rows += decoded[0]
                progress(rows)
                yield decoded

    def _decoder(
        self,
        pages: Pages,
        keeps: Sequence[Keep],
        requests: Sequence[ColumnRequest],
        outs: Sequence[npt.NDArray[Any] | None],
        counts: list[int] | None,
    ) -> Callable[[int], tuple[int, Any]]:
        """Return a function that decodes a range: its rows go to ``outs`` if their number agrees with ``counts``.

        Raises:
            NotPlainError: only SQLite should read one of the columns.
        """
        library = compiled_decoder()
        firsts = np.cumsum([0, *(counts or [])]).tolist()
        filters = tuple(
            (self._integer(keep.column), np.array(keep.values, np.int64), keep.inverted)
            for keep in keeps
            if keep.column in self._stored
        )
        columns = [self._decoder_column(request, pages) for request in requests]

        def decode(at: int) -> tuple[int, Any]:
            leaves = self._ranges[at]
            room = pages.most_rows(leaves.size) if counts is None else counts[at]
            parts = [None if out is None else out[firsts[at] : firsts[at] + room] for out in outs]
            wanted = tuple((*column[:2], part, *column[2:]) for column, part in zip(columns, parts, strict=True))
            file = (pages.descriptor, pages.page_size, pages.usable, pages.count)
            try:
                decoded: tuple[int, Any] = library.decode(
                    *file, leaves, len(self._stored), self._alone, room, filters, wanted
                )
            except library.NotPlainError as error:
                raise NotPlainError(str(error)) from error
            if counts is not None and decoded[0] != room:
                raise NotPlainError("fewer rows than were counted")
            return decoded

        return decode

    def _decoder_column(self, request: ColumnRequest, pages: Pages) -> tuple[int, tuple[int, ...], int, int, bool, int]:
        match request:
            case Number():
                width = request.kind.bit_width // 8
                unset = request.unset is not None, request.unset or 0
                return (_INTEGER, (self._integer(request.column),), width, request.less, *unset)
            case DurationRequest():
                return _DURATION, (self._integer(request.end), self._integer(request.start)), 8, 0, False, 0
            case Combination():
                return _CODE, tuple(map(self._integer, request.columns)), 4, 0, False, 0
        if pages.encoding != _UTF8 or self._stored[request.text] is None:
            raise NotPlainError("texts in another encoding")
        number = () if request.number is None else (self._integer(request.number),)
        return _TEXT, (list(self._stored).index(request.text), *number), 4, 0, False, 0

    def _integer(self, column: str) -> int:
        if "INT" not in (self._stored[column] or "").upper():
            raise NotPlainError("a column that is not declared as an integer")
        return list(self._stored).index(column)


@dataclass(slots=True, eq=False)
class _Prefetched:
    """Prefetched columns.

    Args:
        pages: The file, open during the reads.
        prefetch: Runs the decoding.
        requests: The columns.
        outs: Output of each; ``None`` for those that are only measured.
        parts: Future results of each range of leaves.
    """

    pages: Pages
    prefetch: Prefetch
    requests: Sequence[ColumnRequest]
    outs: Sequence[npt.NDArray[Any] | None]
    parts: Sequence[Future[tuple[int, Any]]]
    rows: int = 0
    _results: dict[ColumnRequest, Result] = field(default_factory=dict)

    def results(self, progress: Callable[[int], None]) -> dict[ColumnRequest, Result]:
        """Return the columns by request, once all are decoded.

        Raises:
            NotPlainError: the table does not have the rows that were expected, or only SQLite should read it.
        """
        if self._results:
            return self._results
        done = []
        try:
            for part in self.parts:
                decoded = self.prefetch.result(part)
                done.append(decoded)
                self.rows += decoded[0]
                progress(self.rows)
        finally:
            self.close()
        self._results = dict(zip(self.requests, _merge_ranges(self.requests, done, self.outs), strict=True))
        return self._results

    def close(self) -> None:
        """Stop decoding."""
        self.prefetch.cancel(self.parts)
        self.pages.close()


def _without_shift(request: ColumnRequest) -> ColumnRequest:
    """Return the column that is prefetched for ``request``, before the zero of times is known."""
    return replace(request, less=0) if isinstance(request, Number) and request.kind == pa.int64() else request


def _shift(result: Result, request: ColumnRequest) -> Result:
    """Return ``result`` less the zero of ``request``, in the same memory, which has no other user."""
    if request != _without_shift(request) and isinstance(request, Number):
        assert isinstance(result, NumberColumn)
        assert result.array is not None
        values = np.frombuffer(result.array.buffers()[1], np.int64)
        values -= request.less
    return result


def _type(request: ColumnRequest) -> pa.DataType:
    match request:
        case Number():
            return request.kind
        case DurationRequest():
            return pa.int64()
    return pa.int32()


def _merge_ranges(
    requests: Sequence[ColumnRequest], done: list[tuple[int, Any]], outs: Sequence[npt.NDArray[Any] | None]
) -> list[Result]:
    """Return the results of all ranges as those of the table."""
    rows = [count for count, _ in done]
    results: list[Result] = []
    for place, (request, out) in enumerate(zip(requests, outs, strict=True)):
        parts = [part[place] for _, part in done]
        if isinstance(request, Number | DurationRequest):
            results.append(_merge_numbers(_type(request), rows, parts, out))
        else:
            results.append(_merge_codes(request, rows, parts, out))
    return results


def _merge_numbers(kind: pa.DataType, rows: list[int], parts: list[Any], out: npt.NDArray[Any] | None) -> NumberColumn:
    least = min((part[0] for part in parts if part[0] is not None), default=None)
    most = max((part[1] for part in parts if part[1] is not None), default=None)
    missing, beyond = sum(part[2] for part in parts), sum(part[3] for part in parts)
    array: Array | None = None
    if out is not None and missing == out.size:
        array = schema.nulls(out.size, kind)
    elif out is not None:
        known = None
        if missing:
            masks = [
                np.zeros(count, np.bool_) if part[4] is None else np.frombuffer(part[4], np.bool_)
                for count, part in zip(rows, parts, strict=True)
            ]
            known = _buffer(np.packbits(~np.concatenate(masks), bitorder="little"))
        array = pa.Array.from_buffers(kind, out.size, [known, _buffer(out)])
    return NumberColumn(array, least, most, missing, beyond)


def _merge_codes(
    request: Combination | Label, rows: list[int], parts: list[Any], out: npt.NDArray[Any] | None
) -> CodeColumn:
    """Return the codes of all ranges as those of the table, in place."""
    listed = [_binary(keys, begins) for keys, begins, _ in parts]
    merged: Any = pa.concat_arrays([pa.array([], pa.large_binary()), *listed]).dictionary_encode()
    recoded = merged.indices.to_numpy()
    counts_of_ranges = np.concatenate(
        [np.zeros(0, np.int64), *(np.frombuffer(counts, np.int64) for *_, counts in parts)]
    )
    total = np.zeros(len(merged.dictionary), np.int64)
    np.add.at(total, recoded, counts_of_ranges)
    if out is not None:
        library = compiled_decoder()
        ends = np.cumsum(rows).tolist()
        lists = np.split(recoded.astype(np.int32), np.cumsum([len(keys) for keys in listed])[:-1])
        different = [at for at, part in enumerate(lists) if not np.array_equal(part, np.arange(part.size))]

        def recode(at: int) -> None:
            part = out[ends[at] - rows[at] : ends[at]]
            library.recode(part, lists[at], 4, part)

        deque(map_early(recode, different), maxlen=0)
    keys = (
        _combinations(request, merged.dictionary)
        if isinstance(request, Combination)
        else _labels(request, merged.dictionary)
    )
    return CodeColumn(out, keys, total)


def _binary(keys: bytes, begins: bytes) -> Array:
    offsets = np.append(np.frombuffer(begins, np.int64), len(keys))
    return pa.Array.from_buffers(pa.large_binary(), offsets.size - 1, [None, _buffer(offsets), pa.py_buffer(keys)])


def _bytes(keys: Array) -> tuple[npt.NDArray[np.uint8], Integers]:
    """Return the bytes of ``keys``, and the start of each key followed by the end of the last."""
    offsets = np.frombuffer(keys.buffers()[1], np.int64)[keys.offset : keys.offset + len(keys) + 1]
    return np.frombuffer(keys.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]], offsets - offsets[0]


def _combinations(request: Combination, keys: Array) -> pa.RecordBatch:
    """Return the integers of each key; its last word is a mask of the missing ones."""
    width = len(request.columns)
    words = _bytes(keys)[0].view(np.int64).reshape(-1, width + 1)
    arrays = [
        pa.array(np.ascontiguousarray(words[:, place]), mask=(words[:, width] >> place) & 1 == 1)
        for place in range(width)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(request.columns))


def _labels(request: Label, keys: Array) -> pa.RecordBatch:
    """Return the text of each key, or its integer; the first byte of a key is its kind."""
    content, offsets = _bytes(keys)
    kinds, rest = content[offsets[:-1]], np.delete(content, offsets[:-1])
    texts = _binary(rest.tobytes(), (offsets[:-1] - np.arange(len(keys))).tobytes())
    are_texts, are_numbers = kinds == ord("t"), kinds == ord("i")
    columns = {request.text: pc.if_else(pa.array(are_texts), texts, pa.scalar(None, texts.type)).cast(pa.binary())}
    if request.number is not None:
        numbers = np.zeros(len(keys), np.int64)
        numbers[are_numbers] = np.frombuffer(b"".join(texts.filter(pa.array(are_numbers)).to_pylist()), np.int64)
        columns[request.number] = pa.array(numbers, mask=~are_numbers)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
