"""State of a thread that does not run: does it wait for something, or only for the interpreter's lock?

A thread releases the lock between two instructions, or within a call. At an instruction that calls nothing (a jump
back, the start of a function), it can only wait for the lock, or for a core. At a call, the system shows the address at
which it sleeps. Addresses at which threads of the first kind slept belong to the lock.

::

    thread 1  ###....####....      # runs    . is at a jump: waits for the lock, asleep at 0x7f52
    thread 2  ...####....###+      + is at a call, asleep at 0x7f52: waits for the lock as well
    thread 3  ==============~      = is at a call, asleep elsewhere: waits for a queue, a file, a time
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Protocol

    class Timed(Protocol):
        """A thread with the times that determine its state."""

        native: int | None
        used_ns: int | None
        ran_lately: bool


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
    try:
        handle = os.open(f"/proc/self/task/{native}/syscall", os.O_RDONLY)
        try:
            words = os.read(handle, 64).decode().split()
        finally:
            os.close(handle)
    except OSError:
        return ""
    if not words or words[0] == _ON_CORE:
        return _ON_CORE if words else ""
    return words[1] if words[0] in _FUTEX and len(words) > 1 else _ELSEWHERE
