# Sweeps over sorted times in one pass (traceviz/native/intervals.c); traceviz.sweeps calls them, or NumPy. Buffers hold
# int64. Those named `out_...` are written; functions that fill a set return how many members it has.

from typing_extensions import Buffer

def merge(starts: Buffer, ends: Buffer, out_starts: Buffer, out_ends: Buffer, /) -> int: ...
def unite(
    starts: Buffer, ends: Buffer, other_starts: Buffer, other_ends: Buffer, out_starts: Buffer, out_ends: Buffer, /
) -> int: ...
def intersect(
    starts: Buffer, ends: Buffer, other_starts: Buffer, other_ends: Buffer, out_starts: Buffer, out_ends: Buffer, /
) -> int: ...
def subtract(
    starts: Buffer, ends: Buffer, other_starts: Buffer, other_ends: Buffer, out_starts: Buffer, out_ends: Buffer, /
) -> int: ...
def running(begins: Buffer, ends: Buffer, out_starts: Buffer, out_ends: Buffer, at_least: int, /) -> int: ...
def before(starts: Buffer, ends: Buffer, done: Buffer, moments: Buffer, out_spent: Buffer, /) -> None: ...
def shared(
    starts: Buffer, ends: Buffer, done: Buffer, begins: Buffer, lasts: Buffer, out_shared: Buffer, /
) -> None: ...
def weigh(
    starts: Buffer,
    ends: Buffer,
    begins: Buffer,
    begun_loads: Buffer,
    lasts: Buffer,
    ended_loads: Buffer,
    full: int,
    /,
) -> float: ...
