"""Reader of Parquet files into one-piece columns. Columns of zeros or nulls take no memory.

A file of many row groups is read as many pieces. Any use of a column as an array would copy the pieces together.
Here each piece is copied to its place while it is still in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from traceviz.trace import schema
from traceviz.untrusted.parquet import open_parquet, read_group

if TYPE_CHECKING:
    import pyarrow.parquet as pq


_buffer: Any = pa.py_buffer
_chunked: Any = pa.chunked_array
"""Untyped alias: the stubs of pyarrow lack memory of NumPy arrays as it is, and columns of any type."""


def read_whole(path: Path, columns: frozenset[str] | None = None, window: Window | None = None) -> pa.Table:
    """Read the rows of a file, each column in one piece.

    Args:
        path: The file.
        columns: Columns to read, if the file has them; ``None`` for all.
        window: Time window. Row groups without any event in it are left out.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`traceviz.untrusted.parquet.read_parquet`.
    """
    with open_parquet(path) as file:
        names = [name for name in file.schema_arrow.names if columns is None or name in columns]
        return _read(file, names, groups_in(file, window))


def read_pieces(path: Path, columns: frozenset[str], rows: int) -> Iterator[pa.Table]:
    """Yield the rows of a file in tables of whole row groups, each column in one piece.

    Args:
        path: The file.
        columns: Columns to read, if the file has them.
        rows: Most rows of several row groups that are read together. A file without rows is one table.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`traceviz.untrusted.parquet.read_parquet`.
    """
    with open_parquet(path) as file:
        names = [name for name in file.schema_arrow.names if name in columns]
        together: list[int] = []
        count = 0
        for group in range(file.metadata.num_row_groups):
            own = file.metadata.row_group(group).num_rows
            if together and count + own > rows:
                yield _read(file, names, together)
                together, count = [], 0
            together.append(group)
            count += own
        yield _read(file, names, together)


def _read(file: pq.ParquetFile, names: list[str], groups: list[int]) -> pa.Table:
    rows = sum(file.metadata.row_group(group).num_rows for group in groups)
    kinds = [file.schema_arrow.field(name).type for name in names]
    wholes: list[_Whole] = [
        _Numbers(kind, rows) if pa.types.is_integer(kind) or pa.types.is_floating(kind) else _Pieces(kind)
        for kind in kinds
    ]
    for group in groups:
        part = read_group(file, group, names)
        for whole, piece in zip(wholes, part.columns, strict=True):
            whole.add(piece)
        del part
    return pa.table([whole.column() for whole in wholes], names=names)


class _Whole(Protocol):
    """A column under construction."""

    def add(self, piece: pa.ChunkedArray[Any]) -> None:
        """Append the next rows."""

    def column(self) -> Any:
        """Return all rows."""


class _Numbers:
    """Numbers, in memory that is touched only for values other than 0."""

    def __init__(self, kind: pa.DataType, rows: int) -> None:
        self._kind = kind
        self._bits = np.zeros(rows, f"u{kind.bit_width // 8}")
        self._known: np.ndarray[Any, np.dtype[np.bool_]] | None = None
        self._filled = 0
        self._nulls = 0

    def add(self, piece: pa.ChunkedArray[Any]) -> None:
        for chunk in piece.chunks:
            place = slice(self._filled, self._filled + len(chunk))
            self._filled = place.stop
            if chunk.null_count:
                self._nulls += chunk.null_count
                if self._known is None:
                    self._known = np.ones(self._bits.size, np.bool_)
                self._known[place] = chunk.is_valid().to_numpy(zero_copy_only=False)
            if chunk.null_count == len(chunk):
                continue
            bits: Any = np.frombuffer(chunk.buffers()[1], self._bits.dtype)  # type: ignore[call-overload]
            bits = bits[chunk.offset : chunk.offset + len(chunk)]
            if bits.any():
                self._bits[place] = bits

    def column(self) -> Any:
        if self._known is not None and self._nulls == self._bits.size:
            return schema.nulls(self._bits.size, self._kind)
        known = None if self._known is None else _buffer(np.packbits(self._known, bitorder="little"))
        return pa.Array.from_buffers(self._kind, self._bits.size, [known, _buffer(self._bits)])


class _Pieces:
    """Texts and other values with few distinct or few total values."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._chunks: list[Any] = []

    def add(self, piece: pa.ChunkedArray[Any]) -> None:
        self._chunks += piece.chunks

    def column(self) -> Any:
        column = _chunked(self._chunks, self._kind)
        if len(column) and column.null_count == len(column):
            return schema.nulls(len(column), column.type)
        if not pa.types.is_dictionary(column.type):
            return column.combine_chunks()
        unified = column.unify_dictionaries()
        codes = _Numbers(column.type.index_type, len(column))
        for chunk in unified.chunks:
            codes.add(_chunked([chunk.indices]))
        words = unified.chunk(0).dictionary if unified.num_chunks else pa.array([], column.type.value_type)
        return pa.DictionaryArray.from_arrays(codes.column(), words)


# Row groups with events of a time window ------------------------------------------------------------------------------
#
# The event columns decide. Statistics do not include the ends of events, and those of a damaged file may end the
# process. Other metadata of a file is no longer true if another program rewrote the file.


Window = tuple[int | None, int | None]
"""Start and end in nanoseconds on the trace's clock; ``None`` for those of the capture."""


def groups_in(file: pq.ParquetFile, window: Window | None) -> list[int]:
    """Return the row groups with events that overlap ``window`` or touch its edges; all without a window or events.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`traceviz.untrusted.parquet.read_group`.
    """
    everything = list(range(file.metadata.num_row_groups))
    times = [name for name in file.schema_arrow.names if name in {"start_ns", "dur_ns"}]
    if window is None or "start_ns" not in times:
        return everything
    begin, end = window
    groups = []
    for group in everything:
        rows = read_group(file, group, times)
        starts = rows["start_ns"].to_numpy()
        durations: Any = rows["dur_ns"] if "dur_ns" in times else None
        lengths = 0 if durations is None else durations.fill_null(0).to_numpy()
        inside = np.ones(starts.size, np.bool_) if end is None else starts < end
        if inside.any() if begin is None else (inside & (starts + lengths >= begin)).any():
            groups.append(group)
    return groups
