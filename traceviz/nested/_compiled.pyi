# What is slow in NumPy about calls that nest on their threads. Columns are buffers in the byte order of the machine:
# int64, but bytes for what is true or false, and int32 for `alike`, owners and codes. The last ones of a function are
# written.

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
def nest(group: Buffer, start: Buffer, end: Buffer, depth: Buffer, parent: Buffer, /) -> bool: ...
def nearest(parent: Buffer, wanted: Buffer, found: Buffer, /) -> bool: ...
def outer(group: Buffer, end: Buffer, code: Buffer, codes: int, outer: Buffer, /) -> None: ...
def innermost(
    group: Buffer,
    start: Buffer,
    end: Buffer,
    parent: Buffer,
    wanted: Buffer,
    begins: Buffer,
    ends: Buffer,
    owner: Buffer,
    /,
) -> int: ...
def alike(columns: tuple[Buffer, ...], group: Buffer, first: Buffer, /) -> int: ...
def add(
    opens: Buffer, closes: Buffer, done: Buffer, start: Buffer, end: Buffer, owner: Buffer, total: Buffer, /
) -> None: ...
