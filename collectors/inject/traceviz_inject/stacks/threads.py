"""Threads of this process: their ids in the system, their processor time, and their state.

Python identifies a thread by its memory address, which the kernel does not know; another thread may later get the same
address. The handle of an ended thread must not be used at all: ``time.pthread_getcpuclockid`` then reads freed memory.
So time is read by the kernel's own number. The number of an ended thread is a harmless error of the system call.

A thread that does not run waits for something, or only for the interpreter's lock. It releases the lock between two
instructions, or within a call. At an instruction that calls nothing (a jump back, the start of a function), it can only
wait for the lock, or for a core. At a call, the system shows the address at which it sleeps. Addresses at which threads
of the first kind slept belong to the lock.

::

    thread 1  ###....####....      # runs    . is at a jump: waits for the lock, asleep at 0x7f52
    thread 2  ...####....###+      + is at a call, asleep at 0x7f52: waits for the lock as well
    thread 3  ==============~      = is at a call, asleep elsewhere: waits for a queue, a file, a time
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident, get_native_id

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType
    from typing import Protocol

    class Timed(Protocol):
        """A thread with the times that determine its state."""

        native: int | None
        used_ns: int | None
        ran_lately: bool


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
        known once the numbers of two threads were found at it: of this thread and of the first.
        """
        if self._at is None:
            place = _common_place({**self._own, get_ident(): get_native_id()})
            self._at = _NOWHERE if place is None else place
        if self._at == _NOWHERE:
            return None
        noted = read_kernel_file("/proc/self/mem", _NUMBER_BYTES, ident + self._at)
        number = int.from_bytes(noted, sys.byteorder)
        return number if len(noted) == _NUMBER_BYTES and 0 < number < 1 << 30 else None


def _common_place(known: dict[int, int]) -> int | None:
    """Return the only offset from their addresses at which all of these threads have their numbers."""
    if len(known) < 2:
        return None
    places = None
    for ident, native in known.items():
        memory, number = read_kernel_file("/proc/self/mem", _SEARCHED_BYTES, ident), native.to_bytes(4, sys.byteorder)
        offsets = range(0, len(memory) - _NUMBER_BYTES + 1, _NUMBER_BYTES)
        found = {offset for offset in offsets if memory[offset : offset + _NUMBER_BYTES] == number}
        places = found if places is None else places & found
    return places.pop() if places is not None and len(places) == 1 else None


def read_kernel_file(path: str, size: int, at: int = 0) -> bytes:
    """Return bytes of a file of the kernel; fewer if it has no more, none if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            return os.pread(handle, size, at)
        finally:
            os.close(handle)
    except (OSError, OverflowError, ValueError):
        return b""


RUNNING, WAITING, GIL = '"running"', '"waiting"', '"gil"'
"""The states as they are written."""

LATELY_NS = 200_000_000
"""A thread that has not run for so long waits for something other than the lock, which changes hands often."""

_RUNS = 0.5
"""Smallest share of the time that a running thread runs, in any current state."""
_MOST_PLACES = 2
_MOST_CODES = 5_000
_HARMLESS = ("JUMP", "POP_JUMP", "RESUME", "NOP", "LOAD_FAST", "LOAD_CONST")
"""Prefixes of the names of instructions that call nothing."""
_FUTEX = frozenset({"202", "98"})
"""Number of the system call that waits at an address: on x86-64, and on the others."""
_ON_CORE, _ELSEWHERE = "running", "elsewhere"


class States:
    """Distinguishes running, waiting and waiting for the lock."""

    __slots__ = ("_has_lock", "_names", "_places", "_plain", "_sleeps")

    def __init__(self) -> None:
        self._has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
        self._names: list[str] = []
        self._plain: dict[tuple[int, int], bool] = {}
        self._places: set[str] = set()
        self._sleeps = False

    def load(self) -> None:
        """Load the names of instructions; programs that end at once do not need them."""
        from opcode import opname  # noqa: PLC0415

        self._names = opname

    def state(self, thread: Timed, frame: FrameType, elapsed_ns: int, *, is_first: bool) -> str:
        """Return the state of a thread.

        Args:
            thread: Its number in the system, and its processor time since the last tick.
            frame: Its innermost frame.
            elapsed_ns: Time since the last tick.
            is_first: True if no other thread used more: then it had the lock until the sampler asked for it.
        """
        if thread.used_ns is None:
            return "null"
        if thread.used_ns >= _RUNS * elapsed_ns:
            return RUNNING
        if not thread.ran_lately:
            return WAITING
        if self._wants_lock(thread.native, frame.f_code, frame.f_lasti):
            return RUNNING if is_first else GIL
        return WAITING if self._sleeps else RUNNING

    def _wants_lock(self, native: int | None, code: CodeType, instruction: int) -> bool:
        """Return whether a thread that hardly runs would continue if it had the interpreter's lock, or a core."""
        self._sleeps = True
        is_plain = bool(self._names) and self._is_plain(code, instruction)
        if is_plain and len(self._places) >= _MOST_PLACES:
            return self._has_lock
        place = _sleeps_at(native)
        self._sleeps = place != _ON_CORE
        if is_plain and place not in ("", _ON_CORE, _ELSEWHERE):
            self._places.add(place)
        return self._has_lock and (is_plain or place in self._places)

    def _is_plain(self, code: CodeType, instruction: int) -> bool:
        """Return whether the instruction calls nothing."""
        key = (id(code), instruction)
        known = self._plain.get(key)
        if known is None:
            if len(self._plain) > _MOST_CODES:
                self._plain.clear()
            text = code.co_code
            name = self._names[text[instruction]] if 0 <= instruction < len(text) else ""
            known = self._plain[key] = name.startswith(_HARMLESS)
        return known


def _sleeps_at(native: int | None) -> str:
    """Return the address at which a thread of this process sleeps; ``running`` if it runs, empty if unknown."""
    words = read_kernel_file(f"/proc/self/task/{native}/syscall", 64).decode().split()
    if not words or words[0] == _ON_CORE:
        return _ON_CORE if words else ""
    return words[1] if words[0] in _FUTEX and len(words) > 1 else _ELSEWHERE
