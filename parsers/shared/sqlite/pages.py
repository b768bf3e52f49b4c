"""Integer columns of an SQLite table straight from its pages: many times as fast as stepping rows.

SQLite hands out one value of one row per call. A trace has tens of millions of values that are nearly all small
integers, so here the b-tree is read as what it is, bytes: the leaf pages of a table give the offsets of all their
cells, the first bytes of a cell give the size of each value, and an unaligned 8-byte load per value gives the value.
A compiled function does this row by row (``parsers/native/sqlite_table.c``). Where there is none, NumPy does each of
these steps for tens of thousands of rows at once. Both let other threads run meanwhile.

::

    leaf page   | header | cell pointers ... |   free   | cell | cell | cell |
    cell        | payload size | row id | header size, one type per column | value | value | ...

Only the plain case is handled: wanted columns of integers and nulls that lie in their page. For everything else
:class:`NotPlainError` sends the caller to SQLite itself, which is right for all of it. Every offset is checked
against the page before it is used, so that a damaged file can be refused but not misread.

Source of the format: https://www.sqlite.org/fileformat2.html (sections 1.3, 1.6, 2.1).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.events.column_requests import NotPlainError

S = TypeVar("S")
T = TypeVar("T")

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Sizes = Integers | int
"""One number per row, or one for all rows: in most stretches every row has the same types."""

CHUNK_BYTES = 3 << 19
"""Leaf pages decoded at once: some 40,000 rows, whose offsets and values stay in the cache."""
MAX_WORKERS = 8
"""More threads would find no work: the consumer of the columns is then the slower side."""

_LEAF, _INTERIOR = 13, 5
_LEAF_HEADER, _INTERIOR_HEADER = 8, 12
_LEAST_CELL = 6
"""Bytes of the smallest cell with its pointer."""
_LEAST_USABLE = 480
"""Bytes of a page that SQLite wants at least, besides those that an extension reserves."""
_MAX_DEPTH = 20
_LONGEST_NUMBER = 9
"""Bytes of the longest number of variable length."""
_NULL, _FLOAT, _ZERO, _ONE, _BLOB = 0, 7, 8, 9, 12
_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, -1, -1], dtype=np.int64)
"""Bytes of a value by its type: null, integers of 1 to 8 bytes, float, the constants 0 and 1; -1 for no type."""


@dataclass(frozen=True, slots=True)
class Column:
    """A decoded column of integers.

    Args:
        rows: Number of rows.
        values: The values, with anything where one is missing; ``None`` where all are.
        missing: Which values are missing; ``None`` where none is, or all are.
    """

    rows: int
    values: Integers | None
    missing: npt.NDArray[np.bool_] | None = None


def read_integers(path: Path, root: int, width: int, positions: Sequence[int]) -> Iterator[list[Column]]:
    """Decode columns of one table, in the order of its rows.

    Args:
        path: The database; no program may be writing to it.
        root: Root page of the table, from ``sqlite_master``.
        width: Columns that a row stores.
        positions: Positions of the wanted columns, from 0. None may be the table's INTEGER PRIMARY KEY, which is
            stored as null, or be declared REAL, where integers stand for floats.

    Yields:
        The wanted columns, for a stretch of rows at a time.

    Raises:
        NotPlainError: before anything is yielded or later: the rows that follow are not plain.
    """
    with Pages(path) as pages:
        leaves = pages.leaves(root)
        step = max(CHUNK_BYTES // pages.page_size, 1)
        chunks = [leaves[begin : begin + step] for begin in range(0, leaves.size, step)]
        alone = leaves.size == 1  # a table without rows is one empty page; no other page may be empty
        library = decoder()
        if library is None:
            yield from in_order(lambda chunk: _decode(pages, chunk, width, positions, alone=alone), chunks)
        else:
            yield from in_order(lambda chunk: _compiled(library, pages, chunk, width, positions, alone=alone), chunks)


def in_order(decode: Callable[[S], T], chunks: Sequence[S]) -> Iterator[T]:
    """Results in the order of ``chunks``, computed ahead by threads; few are in memory at a time."""
    workers = min(len(os.sched_getaffinity(0)), MAX_WORKERS, len(chunks))
    if workers < 2:
        yield from map(decode, chunks)
        return
    running: deque[Future[T]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for chunk in chunks:
            running.append(pool.submit(decode, chunk))
            if len(running) > workers:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


class Pages:
    """The pages of a database file.

    They are read and not mapped into memory: a file that shrinks meanwhile is then an error and not a crash, and
    memory stays that of a few chunks.

    Args:
        path: The database.

    Raises:
        NotPlainError: the file does not begin as a database whose changes are all in it.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        header = self._file.read(100)
        size = int.from_bytes(header[16:18], "big")
        self.page_size = 65536 if size == 1 else size
        usual = self.page_size >= 512 and self.page_size & (self.page_size - 1) == 0
        if len(header) < 100 or not usual or header[18] != 1 or self.page_size - header[20] < _LEAST_USABLE:
            self._file.close()
            raise NotPlainError("no plain database file")  # 2 instead of 1: with a write-ahead log
        self.usable = self.page_size - header[20]
        self.encoding = int.from_bytes(header[56:60], "big")
        self.count = os.fstat(self._file.fileno()).st_size // self.page_size
        if header[24:28] == header[92:96]:  # then the header's own count is valid
            self.count = min(self.count, int.from_bytes(header[28:32], "big"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def descriptor(self) -> int:
        """The open file."""
        return self._file.fileno()

    def most_rows(self, pages: int) -> int:
        """Rows that so many leaf pages have room for."""
        return pages * ((self.usable - _LEAF_HEADER) // _LEAST_CELL)

    def read(self, numbers: Integers, spare: int = 0) -> Bytes:
        """The pages with these numbers, one after the other, and ``spare`` zeros behind them.

        Raises:
            NotPlainError: a number is beyond the file, or the file is shorter than it was.
        """
        if numbers.min() < 2 or numbers.max() > self.count:  # page 1 begins with the file's header
            raise NotPlainError("a page number beyond the file")
        whole = numbers.size * self.page_size
        content = np.empty(whole + spare, dtype=np.uint8)
        content[whole:] = 0
        view = content.data
        firsts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) != 1)
        for first, last in zip(firsts.tolist(), [*firsts[1:].tolist(), numbers.size], strict=True):
            target = view[first * self.page_size : last * self.page_size]
            offset = (int(numbers[first]) - 1) * self.page_size
            if os.preadv(self._file.fileno(), [target], offset) != len(target):
                raise NotPlainError("a file that became shorter")
        return content

    def leaves(self, root: int) -> Integers:
        """Numbers of the leaf pages below page ``root``, in the order of the rows. All are equally deep.

        Raises:
            NotPlainError: a page is not what its parent says it is.
        """
        return self.leaves_with_ids(root)[0]

    def leaves_with_ids(self, root: int) -> tuple[Integers, Integers]:
        """:meth:`leaves`, and for each the greatest row id that it may have, as its parents say; -1 where none does.

        Raises:
            NotPlainError: as :meth:`leaves`.
        """
        level, last_ids = np.array([root], dtype=np.int64), np.array([-1], dtype=np.int64)
        for _ in range(_MAX_DEPTH):
            if self.read(level[:1])[0] == _LEAF:
                return level, last_ids
            level, last_ids = self._children(self.read(level, spare=_LONGEST_NUMBER), last_ids)
            if level.size > self.count:
                raise NotPlainError("a tree larger than its file")
        raise NotPlainError("a tree too deep")

    def _children(self, content: Bytes, last_ids: Integers) -> tuple[Integers, Integers]:
        """Page numbers that interior pages point to, the right-most of each last, and the greatest row ids there.

        Args:
            content: The pages, and some bytes behind them.
            last_ids: The greatest row id of each page.
        """
        pages = np.arange(last_ids.size, dtype=np.int64) * self.page_size
        cells = _pairs(content, pages + 3)
        if np.any(content[pages] != _INTERIOR) or np.any(cells < 1):
            raise NotPlainError("no interior page")
        if np.any(cells > (self.usable - _LEAF_HEADER) // _LEAST_CELL):
            raise NotPlainError("no interior page")
        begins, ends = np.repeat(pages, cells), np.cumsum(cells)
        number = np.arange(ends[-1]) - np.repeat(ends - cells, cells)
        pointers = _pairs(content, begins + _INTERIOR_HEADER + 2 * number)
        if pointers.min() < _INTERIOR_HEADER or pointers.max() + 4 > self.usable:
            raise NotPlainError("a cell beyond its page")
        children = np.insert(_fours(content, begins + pointers), ends, _fours(content, pages + 8))
        return children, np.insert(_long_number(content, begins + pointers + 4), ends, last_ids)


def _compiled(
    library: ModuleType, pages: Pages, leaves: Integers, width: int, positions: Sequence[int], *, alone: bool
) -> list[Column]:
    """As :func:`_decode`, by the compiled function."""
    room = pages.most_rows(leaves.size)
    outs = [np.zeros(room, np.int64) for _ in positions]
    wanted = tuple((0, (place,), out, 8, 0, False, 0) for place, out in zip(positions, outs, strict=True))
    file = (pages.descriptor, pages.page_size, pages.usable, pages.count)
    try:
        rows, results = library.decode(*file, leaves, width, alone, room, (), wanted)
    except library.NotPlainError as error:
        raise NotPlainError(str(error)) from error
    columns = []
    for out, (_, _, missing, _, mask) in zip(outs, results, strict=True):
        flags = None if mask is None or missing == rows else np.frombuffer(mask, np.bool_)
        columns.append(Column(rows, None if missing == rows else out[:rows], flags))
    return columns


def _decode(pages: Pages, leaves: Integers, width: int, positions: Sequence[int], *, alone: bool) -> list[Column]:
    content = pages.read(leaves, spare=2 * width + 32)  # a cell at the end of the last page may claim so much more
    cells, limits, counts = _cells(content, pages.page_size, pages.usable)
    if not alone and np.any(counts == 0):
        raise NotPlainError("an empty page")
    payload, behind = _short_number(content, cells)
    if np.any(payload > pages.usable - 35):
        raise NotPlainError("a row that continues on another page")
    header = _behind_number(content, behind)
    stop = header + payload
    if np.any(stop > limits):
        raise NotPlainError("a row beyond its page")
    return _values(content, header, stop, width, positions)


def _cells(content: Bytes, page_size: int, usable: int) -> tuple[Integers, Integers, Integers]:
    """Offsets of the cells of leaf pages, for each the end of its page, and for each page the number of cells."""
    pages = np.arange(0, content.size - page_size + 1, page_size, dtype=np.int64)
    counts = _pairs(content, pages + 3)
    if np.any(content[pages] != _LEAF) or np.any(counts > (usable - _LEAF_HEADER) // _LEAST_CELL):
        raise NotPlainError("no leaf page")
    begins = np.repeat(pages, counts)
    number = np.arange(begins.size) - np.repeat(np.cumsum(counts) - counts, counts)
    pointers = _pairs(content, begins + _LEAF_HEADER + 2 * number)
    if pointers.size and (pointers.min() < _LEAF_HEADER or pointers.max() + 4 > usable):
        raise NotPlainError("a cell beyond its page")
    return begins + pointers, begins + usable, counts


def _pairs(content: Bytes, offsets: Integers) -> Integers:
    """The big-endian 2-byte numbers at ``offsets``."""
    return (content[offsets].astype(np.int64) << 8) | content[offsets + 1]


def _fours(content: Bytes, offsets: Integers) -> Integers:
    """The big-endian 4-byte numbers at ``offsets``."""
    return (_pairs(content, offsets) << 16) | _pairs(content, offsets + 2)


def _long_number(content: Bytes, offsets: Integers) -> Integers:
    """Variable-length numbers of up to nine bytes."""
    numbers, going = np.zeros(offsets.size, np.int64), np.arange(offsets.size)
    for place in range(_LONGEST_NUMBER - 1):
        byte = content[offsets[going] + place]
        numbers[going] = numbers[going] << 7 | (byte & 127)
        going = going[byte >= 128]
        if not going.size:
            return numbers
    numbers[going] = numbers[going] << 8 | content[offsets[going] + _LONGEST_NUMBER - 1]
    return numbers


def _short_number(content: Bytes, offsets: Integers) -> tuple[Integers, Integers]:
    """Variable-length numbers of at most two bytes, and the offsets behind them."""
    first = content[offsets]
    if not first.size or first.max() < 128:
        return first.astype(np.int64), offsets + 1
    second, long = content[offsets + 1], first >= 128
    if np.any(long & (second >= 128)):
        raise NotPlainError("a number of more than two bytes")
    number = np.where(long, (first & 127).astype(np.int64) << 7 | second, first)
    return number, offsets + 1 + long


def _behind_number(content: Bytes, offsets: Integers) -> Integers:
    """Offsets behind variable-length numbers: up to nine bytes, the last below 128."""
    behind = offsets + 1
    going = np.flatnonzero(content[offsets] >= 128)
    for _ in range(8):
        if not going.size:
            break
        last = content[behind[going]] < 128
        behind[going] += 1
        going = going[~last]
    return behind


def _values(content: Bytes, header: Integers, stop: Integers, width: int, positions: Sequence[int]) -> list[Column]:
    """The columns at ``positions`` of rows whose headers begin at ``header`` and whose values end at ``stop``."""
    length = content[header]
    if length.size and length.max() >= 128:
        raise NotPlainError("a row with a long header")
    short = bool(np.all(length == width + 1))  # one byte for each type: neither long texts nor missing columns
    columns: dict[int, Column] = {}
    at, ends = header + 1, header + length
    for position in range(max(positions) + 1 if short else width):
        kinds, at = (content[at], at + 1) if short else _short_number(content, at)
        if short and kinds.size and kinds.max() >= 128:
            raise NotPlainError("a long type in a short header")
        size = _size(kinds)
        ends = ends + size
        if np.any(ends > stop):
            raise NotPlainError("a value beyond its row")
        if position in positions:
            columns[position] = _column(content, ends, size, kinds)
    if not short and np.any(at != header + length):
        raise NotPlainError("a row with another number of columns")
    if (not short or max(positions) == width - 1) and np.any(ends != stop):
        raise NotPlainError("a row longer than its values")
    return [columns[position] for position in positions]


def _size(kinds: Integers | Bytes) -> Sizes:
    """Bytes of values of these types."""
    if not kinds.size:
        return 0
    if kinds.min() == kinds.max():
        return int(_size_each(kinds[:1])[0])
    return _size_each(kinds)


def _size_each(kinds: Integers | Bytes) -> Integers:
    sizes = _SIZES[np.minimum(kinds, _BLOB - 1)]
    if kinds.max() >= _BLOB:  # even: blob, odd: text
        sizes = np.where(kinds >= _BLOB, (kinds.astype(np.int64) - _BLOB) >> 1, sizes)
    if sizes.min() < 0:
        raise NotPlainError("a type that does not exist")
    return sizes


def _column(content: Bytes, ends: Integers, size: Sizes, kinds: Integers | Bytes) -> Column:
    """The integers that end before ``ends``: the sign-extended end of the eight bytes before, which are in the page."""
    if not kinds.size:
        return Column(0, None)
    least, most = int(kinds.min()), int(kinds.max())
    if most > _ONE or np.any(kinds == _FLOAT):
        raise NotPlainError("a value that is no integer")
    if least == most and least in {_NULL, _ZERO, _ONE}:
        return Column(kinds.size, None if least == _NULL else np.full(kinds.size, least - _ZERO, dtype=np.int64))
    words = np.ndarray((content.size - 7,), dtype=">i8", buffer=content, strides=(1,))
    values = words[ends - 8].astype(np.int64)
    unused = 64 - 8 * size  # 64 bits where the type is the value: NumPy then shifts all out and leaves 0
    values <<= unused
    values >>= unused
    if most == _ONE:
        values += kinds == _ONE
    return Column(kinds.size, values, kinds == _NULL if least == _NULL else None)
