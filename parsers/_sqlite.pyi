# The compiled part of the readers of SQLite databases. Columns are buffers in the byte order of the machine.

from typing import TypeAlias

from typing_extensions import Buffer

# Position, 64-bit integers, and whether rows with one of these count, or all others.
Filter: TypeAlias = tuple[int, Buffer, bool]
# What is made of the columns (0: an integer, 1: the first less the second, 2: a number for each combination, 3: a
# number for each text, or where that is missing for each integer), their positions, where it goes, bytes of a value
# there, what integers are less, whether there is an integer that stands for none, and that integer.
Wanted: TypeAlias = tuple[int, tuple[int, ...], Buffer | None, int, int, bool, int]
# Of integers: least and greatest as stored, how many rows have none, of these how many for their size or sign, and
# which.
Integers: TypeAlias = tuple[int | None, int | None, int, int, bytes | None]
# Of numbers: the bytes of all that they stand for, where each begins (uint64), and how many rows have each (uint64).
Keys: TypeAlias = tuple[bytes, bytes, bytes]

class NotPlainError(Exception): ...

# pages: the numbers of leaf pages (int64); room: how many rows each column has room for.
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
