# What is slow in NumPy about calls that nest on their threads. Columns are buffers in the byte order of the machine:
# int64, but bytes for what is true or false, and int32 for rows and codes. The last ones of a function are written.

from typing_extensions import Buffer

def match(
    owners: Buffer,
    ids: Buffer,
    known: Buffer,
    among_owners: Buffer,
    among_ids: Buffer,
    among_known: Buffer,
    distinct: Buffer,
    least: int,
    width: int,
    row: Buffer,
    found: Buffer,
    /,
) -> None: ...

# cross: whether calls may cross
def nest(group: Buffer, start: Buffer, end: Buffer, cross: bool, depth: Buffer, parent: Buffer, /) -> bool: ...
def nearest(parent: Buffer, wanted: Buffer, found: Buffer, /) -> bool: ...
def topmost(parent: Buffer, wanted: Buffer, found: Buffer, /) -> bool: ...
def contexts(parent: Buffer, code: Buffer, context: Buffer, first: Buffer, /) -> int: ...
def add_own(first: int, parent: Buffer, time: Buffer, counted: Buffer, owner: Buffer, total: Buffer, /) -> int: ...
def order(group: Buffer, start: Buffer, end: Buffer, tie: Buffer, order: Buffer, /) -> int: ...
def outer(group: Buffer, end: Buffer, code: Buffer, codes: int, outer: Buffer, /) -> None: ...

# depth: empty where calls nest; wanted: empty for all
def innermost(
    group: Buffer,
    start: Buffer,
    end: Buffer,
    depth: Buffer,
    parent: Buffer,
    wanted: Buffer,
    begins: Buffer,
    ends: Buffer,
    owner: Buffer,
    /,
) -> int: ...
def running(
    group: Buffer, start: Buffer, end: Buffer, parent: Buffer, key: Buffer, moment: Buffer, found: Buffer, /
) -> None: ...
def alike(columns: tuple[Buffer, ...], group: Buffer, first: Buffer, /) -> int: ...
def order_times(time: Buffer, order: Buffer, /) -> int: ...
def move(order: Buffer, width: int, distance: int, column: Buffer, /) -> None: ...
def add(
    opens: Buffer, closes: Buffer, done: Buffer, start: Buffer, end: Buffer, owner: Buffer, total: Buffer, /
) -> None: ...
