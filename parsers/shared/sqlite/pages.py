"""Integer columns of an SQLite table directly from its pages: many times as fast as stepping rows.

SQLite returns one value of one row per call. A trace has tens of millions of values that are nearly all small integers,
so here the b-tree is read as bytes. The leaf pages of a table give the offsets of all their cells, and the first bytes
of a cell give the size of each value. An unaligned 8-byte load gives the value. A compiled function does this row by
row (``parsers/native/sqlite_table.c``), and lets other threads run. If the package was built without a C compiler,
SQLite reads all tables.

::

    leaf page   | header | cell pointers ... |   free   | cell | cell | cell |
    cell        | payload size | row id | header size, one type per column | value | value | ...

Only the plain case is handled: wanted columns of integers and nulls that lie in their page. Otherwise
:class:`NotPlainError` sends callers to SQLite itself, which handles every case. Every offset is checked against the
page before it is used, so a damaged file is rejected, never misread.

Source of the format: https://www.sqlite.org/fileformat2.html (sections 1.3, 1.6, 2.1).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Self

import numpy as np
import numpy.typing as npt

from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.events.column_requests import NotPlainError
from traceviz.parsers.shared.prefetch import map_early

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

CHUNK_BYTES = 3 << 19
"""Bytes of leaf pages decoded at once: some 40,000 rows, whose offsets and values stay in the cache."""

_LEAF, _INTERIOR = 13, 5
_LEAF_HEADER, _INTERIOR_HEADER = 8, 12
_LEAST_CELL = 6
"""Bytes of the smallest cell with its pointer."""
_LEAST_USABLE = 480
"""Minimum bytes of a page that SQLite requires, besides those that an extension reserves."""
_MAX_DEPTH = 20
_LONGEST_NUMBER = 9
"""Bytes of the longest number of variable length."""


@dataclass(frozen=True, slots=True)
class Column:
    """A decoded column of integers.

    Args:
        rows: Number of rows.
        values: The values, arbitrary where one is missing; ``None`` if all are missing.
        missing: Mask of missing values; ``None`` if none or all are missing.
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
        The wanted columns, for one range of rows at a time.

    Raises:
        NotPlainError: before anything is yielded or later: the rows that follow are not plain, or nothing is compiled.
    """
    library = compiled_decoder()
    with Pages(path) as pages:
        leaves = pages.leaves(root)
        step = max(CHUNK_BYTES // pages.page_size, 1)
        chunks = [leaves[begin : begin + step] for begin in range(0, leaves.size, step)]
        alone = leaves.size == 1  # an empty table has one empty page; no other page may be empty
        yield from map_early(lambda chunk: _decode(library, pages, chunk, width, positions, alone=alone), chunks)


class Pages:
    """The pages of a database file.

    They are read, not mapped into memory. So a file that shrinks causes an error instead of a crash, and memory is
    limited to a few chunks.

    Args:
        path: The database.

    Raises:
        NotPlainError: the file does not start as a database without pending changes.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        header = self._file.read(100)
        size = int.from_bytes(header[16:18], "big")
        self.page_size = 65536 if size == 1 else size
        usual = self.page_size >= 512 and self.page_size & (self.page_size - 1) == 0
        if len(header) < 100 or not usual or header[18] != 1 or self.page_size - header[20] < _LEAST_USABLE:
            self._file.close()
            raise NotPlainError("no plain database file")  # byte 18 is 2 instead of 1 with a write-ahead log
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
        """Descriptor of the open file."""
        return self._file.fileno()

    def most_rows(self, pages: int) -> int:
        """Return the rows that ``pages`` leaf pages have room for."""
        return pages * ((self.usable - _LEAF_HEADER) // _LEAST_CELL)

    def read(self, numbers: Integers, spare: int = 0) -> Bytes:
        """Return the pages with these numbers in a row, followed by ``spare`` zeros.

        Raises:
            NotPlainError: a number is beyond the file, or the file is shorter than it was.
        """
        if numbers.min() < 2 or numbers.max() > self.count:  # page 1 starts with the file's header
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
        """Return the numbers of the leaf pages below page ``root``, in the order of the rows. All are equally deep.

        Raises:
            NotPlainError: a page does not match its parent.
        """
        return self.leaves_with_ids(root)[0]

    def leaves_with_ids(self, root: int) -> tuple[Integers, Integers]:
        """Return :meth:`leaves`, and the greatest row id of each according to its parents; -1 if unknown.

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
        """Return page numbers that interior pages point to, the right-most of each last, and their greatest row ids.

        Args:
            content: The pages, followed by some bytes.
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


def compiled_decoder() -> ModuleType:
    """Return the compiled decoder.

    Raises:
        NotPlainError: there is none.
    """
    library = decoder()
    if library is None:
        raise NotPlainError("no compiled decoder")
    return library


def _decode(
    library: ModuleType, pages: Pages, leaves: Integers, width: int, positions: Sequence[int], *, alone: bool
) -> list[Column]:
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


def _pairs(content: Bytes, offsets: Integers) -> Integers:
    """Return the big-endian 2-byte numbers at ``offsets``."""
    return (content[offsets].astype(np.int64) << 8) | content[offsets + 1]


def _fours(content: Bytes, offsets: Integers) -> Integers:
    """Return the big-endian 4-byte numbers at ``offsets``."""
    return (_pairs(content, offsets) << 16) | _pairs(content, offsets + 2)


def _long_number(content: Bytes, offsets: Integers) -> Integers:
    """Return the numbers of variable length, up to nine bytes, at ``offsets``."""
    numbers, going = np.zeros(offsets.size, np.int64), np.arange(offsets.size)
    for place in range(_LONGEST_NUMBER - 1):
        byte = content[offsets[going] + place]
        numbers[going] = numbers[going] << 7 | (byte & 127)
        going = going[byte >= 128]
        if not going.size:
            return numbers
    numbers[going] = numbers[going] << 8 | content[offsets[going] + _LONGEST_NUMBER - 1]
    return numbers
