"""Integer columns of an SQLite table straight from its pages, vectorised: several times as fast as stepping rows.

SQLite hands out one value of one row per call. A trace has tens of millions of values that are all small integers, so
here the b-tree is read as what it is, bytes: the leaf pages of a table give the offsets of all their cells, the first
bytes of a cell give the size of each value, and an unaligned 8-byte load per value gives the value. NumPy does each
of these steps for a hundred thousand rows at once.

::

    leaf page   | header | cell pointers ... |   free   | cell | cell | cell |
    cell        | payload size | row id | header size, one type per column | value | value | ...

Only the plain case is handled: rows that fit their page and hold nothing but integers and nulls. For everything else
:class:`NotPlainError` sends the caller to SQLite itself, which is right for all of it. Every offset is checked against
the page before it is used, so that a damaged file can be refused but not misread.

Source of the format: https://www.sqlite.org/fileformat2.html (sections 1.3, 1.6, 2.1).
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

CHUNK_PAGES = 2048
"""Leaf pages decoded at once: about a hundred thousand rows and 8 MB."""

_LEAF, _INTERIOR = 13, 5
_MAX_DEPTH = 20
_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, -1, 0, 0] + [-1] * 246, dtype=np.int64)
"""Bytes of a value by its type: null, integers of 1 to 8 bytes, the constants 0 and 1; -1 for what is no integer."""
_NULL, _ONE = 0, 9


class NotPlainError(Exception):
    """The table holds something that only SQLite itself should decode."""


@dataclass(frozen=True, slots=True)
class Column:
    """A decoded column: ``values`` with 0 where ``missing`` is true; ``missing`` is ``None`` where nothing is."""

    values: Integers
    missing: npt.NDArray[np.bool_] | None


class Pages:
    """The pages of a database file, mapped into memory and read-only.

    Args:
        path: The database; nobody may be writing it.

    Raises:
        NotPlainError: the file has no pages, or keeps changes in a write-ahead log.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as handle:
            header = handle.read(100)
            if len(header) < 100 or header[18] != 1:  # 2: write-ahead log
                raise NotPlainError("no plain database file")
            self._map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(header[16:18], "big")
        self.page_size = 65536 if size == 1 else size
        self.usable = self.page_size - header[20]
        self.bytes = np.frombuffer(self._map, dtype=np.uint8)
        self.count = self.bytes.size // self.page_size
        # One big-endian 8-byte integer at every byte offset: a view, not a copy.
        self._words = np.ndarray((self.bytes.size - 7,), dtype=">i8", buffer=self._map, strides=(1,))

    def leaves(self, root: int) -> Integers:
        """File offsets of the leaf pages below page number ``root``, in the order of the rows.

        Raises:
            NotPlainError: a page is not what its parent says it is.
        """
        level = np.array([root], dtype=np.int64)
        for _ in range(_MAX_DEPTH):
            if not level.size or level.min() < 2 or level.max() > self.count:  # page 1 begins with the file header
                raise NotPlainError("a page number beyond the file")
            offsets = (level - 1) * self.page_size
            kinds = self.bytes[offsets]
            if np.all(kinds == _LEAF):
                return offsets
            if not np.all(kinds == _INTERIOR) or level.size > self.count:
                raise NotPlainError("a page of an unexpected kind")
            level = np.concatenate([self._children(int(offset)) for offset in offsets])
        raise NotPlainError("a tree too deep")

    def _children(self, page: int) -> Integers:
        """Page numbers that one interior page points to, the right-most last."""
        cells = int.from_bytes(self._map[page + 3 : page + 5], "big")
        if 12 + 2 * cells > self.usable:
            raise NotPlainError("more cells than a page can hold")
        pointers = np.frombuffer(self._map, dtype=">u2", count=cells, offset=page + 12).astype(np.int64)
        if pointers.size and pointers.max() + 4 > self.usable:
            raise NotPlainError("a cell beyond its page")
        left = self._words[page + pointers].astype(np.int64) >> 32
        return np.append(left & 0xFFFFFFFF, int.from_bytes(self._map[page + 8 : page + 12], "big"))

    def cells(self, leaves: Integers) -> tuple[Integers, Integers]:
        """File offsets of the cells of ``leaves``, and for each the end of its page's content."""
        counts = self._pair(leaves + 3)
        if np.any(8 + 2 * counts > self.usable):
            raise NotPlainError("more cells than a page can hold")
        pages = np.repeat(leaves, counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        pointers = self._pair(pages + 8 + 2 * (np.arange(pages.size) - first))
        if np.any(pointers < 8) or np.any(pointers + 4 > self.usable):
            raise NotPlainError("a cell beyond its page")
        return pages + pointers, pages + self.usable

    def _pair(self, offsets: Integers) -> Integers:
        return (self.bytes[offsets].astype(np.int64) << 8) | self.bytes[offsets + 1]

    def skip_number(self, offsets: Integers) -> Integers:
        """Offsets behind the variable-length number at each of ``offsets``: up to nine bytes, the last below 128."""
        behind = offsets + 1
        going = np.flatnonzero(self.bytes[offsets] >= 128)
        for _ in range(8):
            if not going.size:
                break
            last = self.bytes[np.minimum(behind[going], self.bytes.size - 1)] < 128
            behind[going] += 1
            going = going[~last]
        return behind

    def small_number(self, offsets: Integers) -> Integers:
        """The variable-length number at each of ``offsets``, which has at most two bytes."""
        first, second = self.bytes[offsets].astype(np.int64), self.bytes[offsets + 1].astype(np.int64)
        if np.any((first >= 128) & (second >= 128)):
            raise NotPlainError("a row larger than its page")
        return np.where(first < 128, first, ((first & 127) << 7) | second)

    def value(self, ends: Integers, sizes: Integers, kinds: npt.NDArray[np.uint8]) -> Column:
        """The values that end before ``ends`` with ``sizes`` bytes each; the file is longer than 8 bytes before any."""
        shift = 64 - 8 * sizes
        words = self._words[ends - 8].astype(np.int64)
        stored = np.where(sizes > 0, (words << (shift & 63)) >> (shift & 63), kinds == _ONE)
        missing = kinds == _NULL
        return Column(stored, missing if missing.any() else None)


def read_integers(path: Path, root: int, width: int, positions: Sequence[int]) -> Iterator[list[Column]]:
    """Decode columns of one table, in the order of its rows.

    Args:
        path: The database.
        root: Root page of the table, from ``sqlite_master``.
        width: Columns of the table.
        positions: Positions of the wanted columns, from 0. None may be the table's INTEGER PRIMARY KEY, which is
            stored as null.

    Yields:
        The wanted columns, for a stretch of rows at a time.

    Raises:
        NotPlainError: before anything is yielded or later: a row is not plain.
    """
    pages = Pages(path)
    leaves = pages.leaves(root)
    for begin in range(0, leaves.size, CHUNK_PAGES):
        yield _decode(pages, leaves[begin : begin + CHUNK_PAGES], width, positions)


def _decode(pages: Pages, leaves: Integers, width: int, positions: Sequence[int]) -> list[Column]:
    cells, limits = pages.cells(leaves)
    payload = pages.small_number(cells)
    header = pages.skip_number(pages.skip_number(cells))
    if np.any(header + payload > limits):
        raise NotPlainError("a row beyond its page")
    if np.any(pages.bytes[header] != width + 1):  # one byte for its own size, one per column: integers only
        raise NotPlainError("a row with another number of columns, or with long texts")
    ends = header + width + 1
    found: dict[int, Column] = {}
    for position in range(max(positions) + 1):
        kinds = pages.bytes[header + 1 + position]
        sizes = _SIZES[kinds]
        if sizes.size and sizes.min() < 0:
            raise NotPlainError("a value that is no integer")
        ends = ends + sizes
        if position in positions:
            found[position] = (ends, sizes, kinds)  # type: ignore[assignment]
    if np.any(ends > header + payload):
        raise NotPlainError("a value beyond its row")
    return [pages.value(*found[position]) for position in positions]  # type: ignore[misc]
