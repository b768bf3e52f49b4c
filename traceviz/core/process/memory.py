"""The memory that this process may take and has, and the error that is raised before the system ends it.

Code that reads a trace knows its least memory, or measures how fast its columns grow. :class:`Allowance` compares that
with the available memory. A trace that cannot fit is refused with both figures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traceviz.core.errors import OutOfMemoryError
from traceviz.core.units import format_value

OPTION = "--max-memory"
_STATUS = Path("/proc/self/statm")
_MEMORY = Path("/proc/meminfo")
_GROUPS = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60
"""Control groups without a limit report this size or more."""
_CLEARLY = 1.1
"""Factor by which the needed memory must exceed the available memory to refuse a trace: both are estimates."""


@dataclass(frozen=True, slots=True)
class Room:
    """Memory that this process may still take.

    Args:
        more: Bytes in addition to those it has.
        most: The limit that this comes from, in bytes, or the free memory.
        words: The source of the limit, as text for ``allows``: "this machine has 3.1 GB free".
    """

    more: int
    most: int
    words: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """Memory that a reader may take.

    Args:
        most: Total memory that the process may have, in bytes; ``None`` for all that the system gives it.
    """

    most: int | None = None

    def check(self, needed: int, name: str) -> None:
        """Refuse work that would run out of memory.

        Args:
            needed: Least bytes that it takes, in addition to those that the process has.
            name: Name of the work, for the message.

        Raises:
            OutOfMemoryError: so many bytes are not available.
        """
        if self.most is not None:
            has = resident()
            if has + needed > self.most:
                raise _refused(name, has + needed, f"{OPTION} allows {format_value(self.most, 'bytes')}.")
            return
        if needed <= 0:  # always fits, and asking the system takes longer than reading a small table
            return
        room = free()
        if room is not None and needed > room.more * _CLEARLY:
            raise _refused(name, resident() + needed, f"{room.words}.")


@dataclass(slots=True, eq=False)
class Watch:
    """Watch of memory growth during work, which refuses work that would run out of memory as soon as that shows.

    Args:
        allowance: The memory that may be taken.
        name: Name of the work, for messages.
    """

    allowance: Allowance
    name: str
    _stage: str = ""
    _first: int = 0
    _began: int = 0

    def see(self, stage: str, done: int, total: int | None) -> None:
        """Record that ``done`` of ``total`` units of ``stage`` are finished. Later units are assumed to take as much.

        Raises:
            OutOfMemoryError: so much memory is not available.
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
"""After this part of a stage (one in ...), its total memory can be estimated."""
_NO_COLUMNS = 64 * 10**6
"""Memory of a stage that does not grow with the trace: blocks of text, tables of an allocator."""


def _refused(name: str, needed: int, allowed: str) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"{name} needs about {format_value(needed, 'bytes')} of memory.",
        allowed[0].upper() + allowed[1:] if not allowed.startswith("-") else allowed,
        f"Read it on a larger machine, record fewer steps, or give {OPTION} with the size to take.",
    )


def give_back() -> None:
    """Return memory to the system that this process freed and its allocators keep, as they do with large columns."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    import ctypes  # noqa: PLC0415 (only large traces need it)

    with suppress(OSError, AttributeError):  # a C library may lack it
        ctypes.CDLL(None).malloc_trim(0)


def reuse_large_blocks() -> None:
    """Let the C library reuse the pages of large blocks, which are freed and allocated all the time.

    By default it gives a large block its own pages or, once a few were freed, a place on the heap of the thread. The
    system has to clear each new page, at 1 to 2 us per 4 kB. For an nsys report with 4.5 million events, that was a
    quarter of all CPU time. With one heap for all threads, less than half as many pages are new.
    """
    _set_allocator({_ARENAS: 1, _LARGE_FROM: 32 << 20, _RETURNED_FROM: 64 << 20})


def return_freed_memory() -> None:
    """Let libraries that are not loaded yet return memory to the system soon after it is freed.

    By default they keep it for the next allocation, which is faster, because the system clears each page that it gives.
    Here the C library gives each large block its own pages. A column of a piece of a table is large. If it were freed
    among smaller blocks, it would not go back to the system.
    """
    _set_defaults(
        ARROW_DEFAULT_MEMORY_POOL="system",
        _RJEM_MALLOC_CONF="dirty_decay_ms:0,muzzy_decay_ms:0",  # for Polars: pages are freed only during some calls
    )
    _set_allocator({_LARGE_FROM: 1 << 20})


def reserve_few_addresses() -> None:
    """Let libraries that are not loaded yet start no threads and reserve no addresses under ``ulimit -v``."""
    limit = address_limit()
    if limit is None or limit >= _ENOUGH_ADDRESSES:
        return
    _set_defaults(
        ARROW_DEFAULT_MEMORY_POOL="system",  # the other pools reserve gigabytes of addresses in advance
        ARROW_IO_THREADS="1",
        OMP_NUM_THREADS="1",  # for Arrow; each thread takes the addresses of its stack
        POLARS_MAX_THREADS="1",
        TOKIO_WORKER_THREADS="1",  # for Polars, to read files
        _RJEM_MALLOC_CONF="background_thread:false,narenas:1",  # the allocator of Polars
    )
    _set_allocator({_ARENAS: 1})


_ENOUGH_ADDRESSES = 16 * 10**9


def _set_defaults(**variables: str) -> None:
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _set_allocator(values: Mapping[int, int]) -> None:
    """Set parameters of ``malloc``, if the C library has them."""
    import ctypes  # noqa: PLC0415 (only commands that read traces need it)

    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for number, value in values.items():
            library.mallopt(number, value)


_ARENAS = -8
"""The C library's number for the maximum number of heaps."""
_LARGE_FROM = -3
"""The C library's number for the block size that gets its own pages."""
_RETURNED_FROM = -1
"""The C library's number for the free end of the heap that goes back to the system."""


# Available memory -----------------------------------------------------------------------------------------------------


def resident() -> int:
    """Return the bytes of memory that this process has; 0 if the system does not report it."""
    return _status(1)


def address_space() -> int:
    """Return the bytes of address space that this process has; 0 if the system does not report it."""
    return _status(0)


def _status(place: int) -> int:
    try:
        return int(_STATUS.read_bytes().split()[place]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def free() -> Room | None:
    """Return the least room that any limit of the system leaves this process; ``None`` if no limit is known."""
    rooms = [room for room in (_in_address_space(), _in_group(), _on_machine()) if room is not None]
    return min(rooms, key=lambda room: room.more, default=None)


def address_limit() -> int | None:
    """Return the most address space that this process may have (``ulimit -v``), in bytes; ``None`` without a limit."""
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
    """Return what the system can give without ending a process: free memory, caches and swap."""
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
    """Return what the control group of a container or a job leaves; file caches do not count as used."""
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
    """Return the rooms that a group and the groups around it leave. Inside a container, its own group is the root."""
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
    """Return the bytes of a group that are file caches, which the system takes back when memory is short."""
    with suppress(OSError, ValueError):
        for line in (group / "memory.stat").read_text().splitlines():
            name, _, size = line.partition(" ")
            if name in {"file", "total_cache"}:
                return int(size)
    return 0
