"""How much memory this process may take, how much it has, and the error that says so before the system ends it.

What reads a trace knows what it needs at the least, or sees how fast its columns grow. :class:`Allowance` compares that
with what there is: a trace that cannot fit is refused with both figures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from traceviz.core.errors import OutOfMemoryError
from traceviz.core.units import format_value

OPTION = "--max-memory"
_STATUS = Path("/proc/self/statm")
_MEMORY = Path("/proc/meminfo")
_GROUPS = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60
"""Control groups without a limit say one of this size or more."""
_CLEARLY = 1.1
"""How far what is needed must exceed what there is before that refuses a trace: both are estimates."""


@dataclass(frozen=True, slots=True)
class Room:
    """Memory that this process may still take.

    Args:
        more: In bytes, beside what it has.
        most: The limit that this comes from, in bytes, or what is free.
        words: What sets it, as ``allows`` needs it: "this machine has 3.1 GB free".
    """

    more: int
    most: int
    words: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a reader may take.

    Args:
        most: Memory that the process may have in all, in bytes; ``None`` for what the system gives it.
    """

    most: int | None = None

    def check(self, needed: int, name: str) -> None:
        """Refuse work that cannot end well.

        Args:
            needed: Bytes that it takes at the least, beside those that the process has.
            name: What needs them, for the message.

        Raises:
            OutOfMemoryError: there are not so many.
        """
        if self.most is not None:
            has = resident()
            if has + needed > self.most:
                raise _refused(name, has + needed, f"{OPTION} allows {format_value(self.most, 'bytes')}.")
            return
        if needed <= 0:  # always fits, and to ask the system takes longer than to read a small table
            return
        room = free()
        if room is not None and needed > room.more * _CLEARLY:
            raise _refused(name, resident() + needed, f"{room.words}.")


@dataclass(slots=True, eq=False)
class Watch:
    """Sees how memory grows while work proceeds, and refuses what cannot end well as soon as that shows.

    Args:
        allowance: What may be taken.
        name: What needs it, for messages.
    """

    allowance: Allowance
    name: str
    _stage: str = ""
    _first: int = 0
    _began: int = 0

    def see(self, stage: str, done: int, total: int | None) -> None:
        """``done`` of ``total`` units of ``stage`` are finished: what they took, the rest will take as well.

        Raises:
            OutOfMemoryError: there is not so much.
        """
        has = resident()
        if stage != self._stage:
            self._stage, self._first, self._began = stage, done, has
        grown, steps = has - self._began - _NO_COLUMNS, done - self._first
        needed = 0
        if total and grown > 0 and steps * _EARLY >= total:
            needed = int(grown * max(total - done, 0) / steps)
        self.allowance.check(needed, self.name)


_EARLY = 20
"""From this part of a stage on, what it takes in all can be told."""
_NO_COLUMNS = 64 * 10**6
"""What a stage takes that does not grow with the trace: blocks of text, tables of an allocator."""


def _refused(name: str, needed: int, allowed: str) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"{name} needs about {format_value(needed, 'bytes')} of memory.",
        allowed[0].upper() + allowed[1:] if not allowed.startswith("-") else allowed,
        f"Read it on a larger machine, record fewer steps, or give {OPTION} with the size to take.",
    )


def give_back() -> None:
    """Return to the system what this process has freed and its allocators keep, as they do with large columns."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], object] | None:
    """The function of the C library, where it has one."""
    import ctypes  # noqa: PLC0415 (only large traces need it)

    with suppress(OSError, AttributeError):
        function: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
        return function
    return None


def reuse_large_blocks() -> None:
    """Have the C library use the pages of large blocks again, which are freed and allocated all the time.

    By itself it gives a large block pages of its own or, once a few were freed, a place on the heap of the thread. The
    system has to clear each page that is new, at 1 to 2 us per 4 kB: of a report of nsys with 4.5 million events that
    was a quarter of all CPU time. On one heap of all threads less than half as many pages are new.
    """
    _set_allocator({_ARENAS: 1, _LARGE_FROM: 32 << 20, _RETURNED_FROM: 64 << 20})


def keep_large_blocks_apart() -> None:
    """Have the C library give each large block pages of its own, which the system has back when the block is freed.

    That takes the least memory, and more time than :func:`reuse_large_blocks`. A column of a piece of a table is large:
    freed among smaller blocks, it would stay.
    """
    _set_allocator({_LARGE_FROM: 1 << 20})


def use_one_heap() -> None:
    """Have the C library allocate for all threads from one heap: each of them reserves addresses otherwise."""
    _set_allocator({_ARENAS: 1})


def _set_allocator(values: Mapping[int, int]) -> None:
    """Set parameters of ``malloc``, where the C library has them."""
    import ctypes  # noqa: PLC0415 (only commands that read traces need it)

    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for number, value in values.items():
            library.mallopt(number, value)


_ARENAS = -8
"""The C library's number for how many heaps there may be."""
_LARGE_FROM = -3
"""The same for the size from which a block has pages of its own."""
_RETURNED_FROM = -1
"""The same for how much of the heap's end must be free before the system has it back."""


# What there is --------------------------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes of memory that this process has; 0 where the system does not say."""
    return _status(1)


def address_space() -> int:
    """Bytes of address space that this process has; 0 where the system does not say."""
    return _status(0)


def _status(place: int) -> int:
    try:
        return int(_STATUS.read_bytes().split()[place]) * _page()
    except (OSError, ValueError, IndexError):
        return 0


@cache
def _page() -> int:
    return os.sysconf("SC_PAGE_SIZE")


def free() -> Room | None:
    """The least that any limit of the system leaves this process; ``None`` where no limit is known."""
    rooms = [room for room in (_in_address_space(), _in_group(), _on_machine()) if room is not None]
    return min(rooms, key=lambda room: room.more, default=None)


def address_limit() -> int | None:
    """Most address space that this process may have (``ulimit -v``), in bytes; ``None`` without a limit."""
    try:
        import resource  # noqa: PLC0415 (not on every system)
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def _in_address_space() -> Room | None:
    limit = address_limit()
    if limit is None:
        return None
    return Room(max(limit - address_space(), 0), limit, f"ulimit -v allows {format_value(limit, 'bytes')}")


def _on_machine() -> Room | None:
    """What the system can give without ending a process: free memory, caches and swap."""
    facts = {}
    with suppress(OSError, ValueError):
        for line in _MEMORY.read_text().splitlines():
            name, _, size = line.partition(":")
            facts[name] = int(size.split()[0]) * 1024
    if "MemAvailable" not in facts:
        return None
    more = facts["MemAvailable"] + facts.get("SwapFree", 0)
    return Room(more, more, f"this machine has {format_value(more, 'bytes')} free")


def _in_group() -> Room | None:
    """What the control group of a container or a job leaves; caches of files do not count."""
    rooms = []
    with suppress(OSError, ValueError):
        for line in _GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers:
                rooms += _up(_CGROUPS, path, "memory.max", "memory.current")
            elif "memory" in controllers.split(","):
                rooms += _up(_CGROUPS / "memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes")
    return min(rooms, key=lambda room: room.more, default=None)


def _up(root: Path, path: str, limit: str, usage: str) -> list[Room]:
    """The rooms that a group and the groups around it leave; inside a container its own is the root."""
    inner = root / path.strip("/")
    groups = [inner, *inner.parents]
    rooms = []
    for group in groups[: groups.index(root) + 1] if root in groups else [root]:
        with suppress(OSError, ValueError):
            most, used = int((group / limit).read_text()), int((group / usage).read_text())
            if most < _UNLIMITED:
                more = max(most - used + _caches(group), 0)
                rooms.append(Room(more, most, f"the limit of this container or job is {format_value(most, 'bytes')}"))
    return rooms


def _caches(group: Path) -> int:
    """Bytes of a group that are caches of files, which the system takes back when memory is short."""
    with suppress(OSError, ValueError):
        for line in (group / "memory.stat").read_text().splitlines():
            name, _, size = line.partition(" ")
            if name in {"file", "total_cache"}:
                return int(size)
    return 0
