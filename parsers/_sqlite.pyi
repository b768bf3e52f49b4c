# The compiled part of the readers of SQLite databases. Columns are buffers in the byte order of the machine.

from typing import TypeAlias

from typing_extensions import Buffer

# Position, 64-bit integers, and true if rows with one of these do not count (false: only they count).
Filter: TypeAlias = tuple[int, Buffer, bool]
# The kind of column (0: an integer, 1: the first less the second, 2: a number for each combination, 3: a number for
# each text, or if that is missing for each integer), the positions of its source columns, the output buffer, bytes of a
# value there, the offset subtracted from integers, whether an integer stands for none, and that integer.
Wanted: TypeAlias = tuple[int, tuple[int, ...], Buffer | None, int, int, bool, int]
# Of integers: least and greatest as stored, the number of rows without a value, the number of these that lack one for
# their size or sign, and their positions.
Integers: TypeAlias = tuple[int | None, int | None, int, int, bytes | None]
# Of numbers: the bytes of all that they stand for, where each starts (uint64), and the rows that have each (uint64).
Keys: TypeAlias = tuple[bytes, bytes, bytes]

class NotPlainError(Exception): ...

# pages: the numbers of leaf pages (int64); room: the rows that each column has room for.
def decode(
    file: int,
    page_size: int,
    usable: int,
    page_count: int,
    pages: Buffer,
    width: int,
    alone: bool,
    room: int,
    filters: tuple[Filter, ...],
    columns: tuple[Wanted, ...],
    /,
) -> tuple[int, tuple[Integers | Keys, ...]]: ...
def recode(codes: Buffer, values: Buffer, width: int, out: Buffer, /) -> None: ...
