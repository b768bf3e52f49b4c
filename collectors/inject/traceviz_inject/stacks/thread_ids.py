"""Thread ids of the system for the threads of this process, and the processor time that the kernel counts for each.

Python identifies a thread by its memory address, which the kernel does not know; another thread may later get the same
address. The handle of an ended thread must not be used at all: ``time.pthread_getcpuclockid`` then reads freed memory.
So time is read by the kernel's own number. The number of an ended thread is a harmless error of the system call.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident, get_native_id

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable

# Programs replace functions of these modules (freezegun); these are the interpreter's own.
_clock_ns = getattr(time, "clock_gettime_ns", None)

_PER_THREAD, _SCHEDULED = 4, 2
"""Bits of a clock's number (linux/posix-timers.h): that of one thread, and the time that the scheduler counted."""
_SEARCHED_BYTES = 2304
"""Size of a thread's description in glibc on x86-64; its number is in the first half on all platforms."""
_NUMBER_BYTES = 4
_NOWHERE = -1


def cpu_ns(native: int | None) -> int | None:
    """Return the processor time of a thread; ``None`` if it has ended, or the system does not count it.

    It is the first number of ``/proc/self/task/<native>/schedstat``, by one system call instead of three.
    """
    if native is None or _clock_ns is None:
        return None
    try:
        used: int = _clock_ns((~native << 3) | _PER_THREAD | _SCHEDULED)
    except OSError:
        return None
    return used


class ThreadIds:
    """Finds the system's number of threads by Python's."""

    __slots__ = ("_at", "_own")

    def __init__(self) -> None:
        # Python 3.9 to 3.11 do not renew the number of the main thread after a fork.
        self._own = {get_ident(): get_native_id()}
        self._at: int | None = None

    def stated(self, idents: Iterable[int]) -> dict[int, int | None]:
        """Return the numbers that Python knows for these threads; it knows none for threads of compiled code."""
        threads = getattr(sys.modules.get("threading"), "_active", {})
        known = {ident: getattr(threads.get(ident), "_native_id", None) for ident in idents}
        known.update(self._own)
        return known

    def found(self, ident: int) -> int | None:
        """Return the number that the C library stored at the thread's address; ``None`` if the memory is gone.

        The kernel reads our memory for us, and returns an error if a plain access would end the process. The offset is
        known
        once the numbers of two threads were found at it: of this thread and of the first.
        """
        if self._at is None:
            place = _common_place({**self._own, get_ident(): get_native_id()})
            self._at = _NOWHERE if place is None else place
        if self._at == _NOWHERE:
            return None
        noted = _memory(ident + self._at, _NUMBER_BYTES)
        number = int.from_bytes(noted, sys.byteorder)
        return number if len(noted) == _NUMBER_BYTES and 0 < number < 1 << 30 else None


def _common_place(known: dict[int, int]) -> int | None:
    """Return the only offset from their addresses at which all of these threads have their numbers."""
    if len(known) < 2:
        return None
    places = None
    for ident, native in known.items():
        memory, number = _memory(ident, _SEARCHED_BYTES), native.to_bytes(_NUMBER_BYTES, sys.byteorder)
        offsets = range(0, len(memory) - _NUMBER_BYTES + 1, _NUMBER_BYTES)
        found = {offset for offset in offsets if memory[offset : offset + _NUMBER_BYTES] == number}
        places = found if places is None else places & found
    return places.pop() if places is not None and len(places) == 1 else None


def _memory(address: int, size: int) -> bytes:
    """Return bytes of this process; fewer if the rest is not mapped."""
    try:
        handle = os.open("/proc/self/mem", os.O_RDONLY)
        try:
            return os.pread(handle, size, address)
        finally:
            os.close(handle)
    except (OSError, OverflowError, ValueError):
        return b""
