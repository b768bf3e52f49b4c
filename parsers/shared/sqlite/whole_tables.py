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
    Codes,
    Combination,
    Label,
    Lasting,
    NotPlainError,
    Number,
    NumberColumn,
    Result,
    Wish,
)
from traceviz.parsers.shared.events.row_filter import Keep
from traceviz.parsers.shared.prefetch import Prefetch, map_early
from traceviz.parsers.shared.sqlite.pages import Integers, Pages, compiled_decoder
from traceviz.trace import schema

STRETCH_BYTES = 4 << 20
"""Bytes of leaf pages that one thread decodes at once."""

_buffer: Any = pa.py_buffer
"""View of a NumPy array as a buffer, without a copy; the stubs of pyarrow do not declare this."""

_UTF8 = 1
_INTEGER, _LASTING, _CODE, _TEXT = range(4)


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
            # Return the number of rows of each leaf if none was ever deleted; ``None`` if ids show a deletion.
            #
            # Then rows are numbered from 1, and parents state the greatest number in each leaf except the last.
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
        self._step = max(STRETCH_BYTES // page_size, 1)
        self._stretches = [leaves[begin : begin + self._step] for begin in range(0, leaves.size, self._step)]
        self._alone = alone
        self._counts: dict[tuple[Keep, ...], list[int]] = {}
        self._prefetched: _Prefetched | None = None
        self.expected: Integers | None = None
        """Most likely number of rows of each leaf; ``None`` if unknown. Decoding verifies it."""

    def prefetch(self, prefetch: Prefetch, wishes: Sequence[Wish], measured: Sequence[Wish], room: int) -> int:
        """See :meth:`WholeTable.prefetch`."""
        size = 8 * len(wishes) * int(self.expected.sum()) if self.expected is not None else 0
        are_few, are_distinct = self._leaves.size < 2 * self._step, len(set(wishes)) == len(wishes)
        if self.expected is None or self._prefetched or are_few or not are_distinct or not 0 < size <= room:
            return 0
        counts = np.add.reduceat(self.expected, np.arange(0, self._leaves.size, self._step)).tolist()
        everything = list(dict.fromkeys([*wishes, *measured]))
        outs = [np.zeros(sum(counts), _type(wish).to_pandas_dtype()) if wish in wishes else None for wish in everything]
        pages = Pages(self._path)
        try:
            decode = self._decoder(pages, (), everything, outs, counts)
        except NotPlainError:
            pages.close()
            return 0
        parts = [prefetch.submit(partial(decode, at)) for at in range(len(counts))]
        self._prefetched = _Prefetched(pages, prefetch, everything, outs, parts)
        return size

    def _prefetched_results(self, keeps: Sequence[Keep], progress: Callable[[int], None]) -> dict[Wish, Result]:
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

    def measure(self, keeps: Sequence[Keep], wishes: Sequence[Wish]) -> tuple[int, list[Result]]:
        """See :meth:`WholeTable.measure`."""
        known = self._prefetched_results(keeps, lambda _: None)
        if known and self._prefetched and known.keys() >= set(wishes):
            return self._prefetched.rows, [known[wish] for wish in wishes]
        done = list(self._decoded(keeps, wishes, None, lambda _: None))
        self._counts[tuple(keeps)] = [rows for rows, _ in done]
        return sum(rows for rows, _ in done), _merged(wishes, done, [None] * len(wishes))

    def columns(
        self, keeps: Sequence[Keep], wishes: Sequence[Wish], progress: Callable[[int], None]
    ) -> tuple[int, list[Result]]:
        """See :meth:`WholeTable.columns`."""
        known = self._prefetched_results(keeps, progress)
        if known and self._prefetched and known.keys() >= set(map(_unshifted, wishes)):
            rows, self._prefetched = self._prefetched.rows, None  # callers reuse the memory of codes
            return rows, [_shifted(known[_unshifted(wish)], wish) for wish in wishes]
        self.close()
        if tuple(keeps) not in self._counts:
            self.measure(keeps, ())
        rows = sum(self._counts[tuple(keeps)])
        outs = [np.zeros(rows, _type(wish).to_pandas_dtype()) for wish in wishes]  # untouched zeros take no memory
        done = list(self._decoded(keeps, wishes, outs, progress))
        return rows, _merged(wishes, done, outs)

    def _decoded(
        self,
        keeps: Sequence[Keep],
        wishes: Sequence[Wish],
        outs: Sequence[npt.NDArray[Any] | None] | None,
        progress: Callable[[int], None],
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number of rows of each range, and the compiled function's results for its columns."""
        counts = None if outs is None else self._counts[tuple(keeps)]
        with Pages(self._path) as pages:
            decode = self._decoder(pages, keeps, wishes, outs or [None] * len(wishes), counts)
            rows = 0
            for decoded in map_early(decode, range(len(self._stretches))):
                rows += decoded[0]
                progress(rows)
                yield decoded

    def _decoder(
        self,
        pages: Pages,
        keeps: Sequence[Keep],
        wishes: Sequence[Wish],
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
        columns = [self._wanted(wish, pages) for wish in wishes]

        def decode(at: int) -> tuple[int, Any]:
            leaves = self._stretches[at]
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

    def _wanted(self, wish: Wish, pages: Pages) -> tuple[int, tuple[int, ...], int, int, bool, int]:
        match wish:
            case Number():
                width = wish.kind.bit_width // 8
                unset = wish.unset is not None, wish.unset or 0
                return (_INTEGER, (self._integer(wish.column),), width, wish.less, *unset)
            case Lasting():
                return _LASTING, (self._integer(wish.end), self._integer(wish.start)), 8, 0, False, 0
            case Combination():
                return _CODE, tuple(map(self._integer, wish.columns)), 4, 0, False, 0
        if pages.encoding != _UTF8 or self._stored[wish.text] is None:
            raise NotPlainError("texts in another encoding")
        number = () if wish.number is None else (self._integer(wish.number),)
        return _TEXT, (list(self._stored).index(wish.text), *number), 4, 0, False, 0

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
        wishes: The columns.
        outs: Output of each; ``None`` for those that are only measured.
        parts: Future results of each range of leaves.
    """

    pages: Pages
    prefetch: Prefetch
    wishes: Sequence[Wish]
    outs: Sequence[npt.NDArray[Any] | None]
    parts: Sequence[Future[tuple[int, Any]]]
    rows: int = 0
    _results: dict[Wish, Result] = field(default_factory=dict)

    def results(self, progress: Callable[[int], None]) -> dict[Wish, Result]:
        """Return the columns by wish, once all are decoded.

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
        self._results = dict(zip(self.wishes, _merged(self.wishes, done, self.outs), strict=True))
        return self._results

    def close(self) -> None:
        """Stop decoding."""
        self.prefetch.cancel(self.parts)
        self.pages.close()


def _unshifted(wish: Wish) -> Wish:
    """Return the column that is prefetched for ``wish``, before the zero of times is known."""
    return replace(wish, less=0) if isinstance(wish, Number) and wish.kind == pa.int64() else wish


def _shifted(result: Result, wish: Wish) -> Result:
    """Return ``result`` less the zero of ``wish``, in the same memory, which has no other user."""
    if wish != _unshifted(wish) and isinstance(wish, Number):
        assert isinstance(result, NumberColumn)
        assert result.array is not None
        values = np.frombuffer(result.array.buffers()[1], np.int64)
        values -= wish.less
    return result


def _type(wish: Wish) -> pa.DataType:
    match wish:
        case Number():
            return wish.kind
        case Lasting():
            return pa.int64()
    return pa.int32()


def _merged(
    wishes: Sequence[Wish], done: list[tuple[int, Any]], outs: Sequence[npt.NDArray[Any] | None]
) -> list[Result]:
    """Return the results of all ranges as those of the table."""
    rows = [count for count, _ in done]
    results: list[Result] = []
    for place, (wish, out) in enumerate(zip(wishes, outs, strict=True)):
        parts = [part[place] for _, part in done]
        if isinstance(wish, Number | Lasting):
            results.append(_numbers(_type(wish), rows, parts, out))
        else:
            results.append(_coded(wish, rows, parts, out))
    return results


def _numbers(kind: pa.DataType, rows: list[int], parts: list[Any], out: npt.NDArray[Any] | None) -> NumberColumn:
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


def _coded(wish: Combination | Label, rows: list[int], parts: list[Any], out: npt.NDArray[Any] | None) -> CodeColumn:
    """Return the codes of all ranges as those of the table, in place."""
    listed = [_binary(keys, begins) for keys, begins, _ in parts]
    merged: Any = pa.concat_arrays([pa.array([], pa.large_binary()), *listed]).dictionary_encode()
    recoded = merged.indices.to_numpy()
    counted = np.concatenate([np.zeros(0, np.int64), *(np.frombuffer(counts, np.int64) for *_, counts in parts)])
    total = np.zeros(len(merged.dictionary), np.int64)
    np.add.at(total, recoded, counted)
    if out is not None:
        _recode(out, rows, [len(keys) for keys in listed], recoded)
    keys = _combinations(wish, merged.dictionary) if isinstance(wish, Combination) else _labels(wish, merged.dictionary)
    return CodeColumn(out, keys, total)


def _recode(codes: Codes, rows: list[int], sizes: list[int], recoded: npt.NDArray[Any]) -> None:
    """Replace the codes of each range by those of the table."""
    library = compiled_decoder()
    ends = np.cumsum(rows).tolist()
    lists = np.split(recoded.astype(np.int32), np.cumsum(sizes)[:-1])
    strange = [at for at, part in enumerate(lists) if not np.array_equal(part, np.arange(part.size))]

    def recode(at: int) -> None:
        part = codes[ends[at] - rows[at] : ends[at]]
        library.recode(part, lists[at], 4, part)

    deque(map_early(recode, strange), maxlen=0)


def _binary(keys: bytes, begins: bytes) -> Array:
    offsets = np.append(np.frombuffer(begins, np.int64), len(keys))
    return pa.Array.from_buffers(pa.large_binary(), offsets.size - 1, [None, _buffer(offsets), pa.py_buffer(keys)])


def _bytes(keys: Array) -> tuple[npt.NDArray[np.uint8], Integers]:
    """Return the bytes of ``keys``, and the start of each key followed by the end of the last."""
    offsets = np.frombuffer(keys.buffers()[1], np.int64)[keys.offset : keys.offset + len(keys) + 1]
    return np.frombuffer(keys.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]], offsets - offsets[0]


def _combinations(wish: Combination, keys: Array) -> pa.RecordBatch:
    """Return the integers of each key; its last word is a mask of the missing ones."""
    width = len(wish.columns)
    words = _bytes(keys)[0].view(np.int64).reshape(-1, width + 1)
    arrays = [
        pa.array(np.ascontiguousarray(words[:, place]), mask=(words[:, width] >> place) & 1 == 1)
        for place in range(width)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(wish.columns))


def _labels(wish: Label, keys: Array) -> pa.RecordBatch:
    """Return the text of each key, or its integer; the first byte of a key is its kind."""
    content, offsets = _bytes(keys)
    kinds, rest = content[offsets[:-1]], np.delete(content, offsets[:-1])
    texts = _binary(rest.tobytes(), (offsets[:-1] - np.arange(len(keys))).tobytes())
    are_texts, are_numbers = kinds == ord("t"), kinds == ord("i")
    columns = {wish.text: pc.if_else(pa.array(are_texts), texts, pa.scalar(None, texts.type)).cast(pa.binary())}
    if wish.number is not None:
        numbers = np.zeros(len(keys), np.int64)
        numbers[are_numbers] = np.frombuffer(b"".join(texts.filter(pa.array(are_numbers)).to_pylist()), np.int64)
        columns[wish.number] = pa.array(numbers, mask=~are_numbers)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
