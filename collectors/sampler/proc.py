"""The sampled files of ``/proc``: parsing them, and the processes of a program.

Files are opened once and read repeatedly. That takes 9 µs for a process instead of the 75 µs of psutil, and a reused
process id is never mistaken for the old process. Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PROFILERS = ("nsys", "QdstrmImporter")
"""Prefixes of the names of processes that belong to a profiler, not to the program."""

PROCESS_BYTES = 1 << 12
"""Buffer size for a file about one process, larger than its contents."""
MACHINE_BYTES = 1 << 18
"""Buffer size for a file about the machine, larger than its contents: 40 kB for 256 cores."""
_CHUNK = 1 << 14
_OWN_PID = os.getpid()


class ProcessStat(NamedTuple):
    """One line of ``/proc/PID/stat``; ``cpu_ns`` includes the children that were waited for."""

    name: str
    state: str
    parent: int
    cpu_ns: int
    own_cpu_ns: int
    threads: int
    rss_bytes: int


class MachineStat(NamedTuple):
    """``/proc/stat``: busy and total ticks of every core by its number."""

    busy: dict[int, int]
    total: dict[int, int]


class Load(NamedTuple):
    """``/proc/loadavg``: threads of the machine that run or wait for a core, and the newest process."""

    runnable: int
    newest: int


def parse_stat(line: bytes) -> ProcessStat:
    """Parse ``/proc/PID/stat``; the name may hold spaces and parentheses, so the last parenthesis ends it."""
    opened, closed = line.find(b"("), line.rfind(b")")
    fields = line[closed + 2 :].split(None, 22)
    own, reaped = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
    return ProcessStat(
        name=line[opened + 1 : closed].decode("utf-8", "replace"),
        state=fields[0].decode(),
        parent=int(fields[1]),
        cpu_ns=(own + reaped) * TICK_NS,
        own_cpu_ns=own * TICK_NS,
        threads=int(fields[17]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


def parse_io(text: bytes) -> tuple[int, int]:
    """Return bytes read from and written to storage, the fifth and sixth name-number pair of ``/proc/PID/io``."""
    words = text.split()
    return (int(words[9]), int(words[11])) if len(words) > 11 else (0, 0)


def parse_machine(text: bytes) -> MachineStat:
    """Parse ``/proc/stat``. Time that the hypervisor gave to others is neither busy nor idle: it is in the total."""
    busy: dict[int, int] = {}
    total: dict[int, int] = {}
    for line in text.partition(b"\nintr ")[0].splitlines():
        word, _, rest = line.partition(b" ")
        if word.startswith(b"cpu") and word != b"cpu":
            user, nice, system, idle, waiting, irq, soft, stolen = (int(value) for value in rest.split()[:8])
            number = int(word[3:])
            busy[number] = user + nice + system + irq + soft
            total[number] = busy[number] + idle + waiting + stolen
    return MachineStat(busy, total)


def parse_load(text: bytes) -> Load:
    """Parse ``/proc/loadavg``. The reading thread itself is not counted."""
    _, _, _, threads, newest = text.split()
    return Load(max(int(threads.partition(b"/")[0]) - 1, 0), int(newest))


def parse_children(text: bytes) -> list[int]:
    """Parse ``/proc/PID/task/TID/children``: each number is followed by a space, except a truncated one."""
    return [int(number) for number in text[: text.rfind(b" ") + 1].split()]


def parse_available(meminfo: bytes) -> int | None:
    """Return the memory that programs can still use without swapping, from ``/proc/meminfo``."""
    for line in meminfo.splitlines():
        if line.startswith(b"MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def grown(before: Mapping[int, tuple[int, int]], now: Mapping[int, tuple[int, int]]) -> int:
    """Return the total growth of counters of processes, given as ``(parent, count)`` by pid.

    The counter of a process takes over those of its children when it waits for them. Counts of a vanished child that
    were
    seen before are therefore not counted again, and its later counts are not lost::

        parent  100 ──────────── 130   grew by 30: 25 from the child, 20 of them already counted, and 5 of its own
        child    20 ── ends at 25      so the tree grew by 10
    """
    taken_over: dict[int, int] = {}
    for pid, (parent, count) in before.items():
        if pid not in now:
            taken_over[parent] = taken_over.get(parent, 0) + count
    changes = (count - before.get(pid, (0, 0))[1] - taken_over.get(pid, 0) for pid, (_, count) in now.items())
    return sum(max(change, 0) for change in changes)


class ProcFile:
    """A file of ``/proc`` that is read repeatedly, into the same memory.

    Args:
        path: The file.
        size: The maximum size of its contents.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: str | Path, size: int = PROCESS_BYTES) -> None:
        self._buffer = bytearray(size)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """Return the current contents of the file.

        Raises:
            OSError: its process or thread has ended.
        """
        count = os.preadv(self._descriptor, [self._buffer], 0)
        return bytes(memoryview(self._buffer)[:count])

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read_once(path: str | Path) -> bytes | None:
    """Return the contents of a file; ``None`` if it is missing or unreadable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        chunks = [os.read(descriptor, _CHUNK)]
        while chunks[-1]:
            chunks.append(os.read(descriptor, _CHUNK))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(chunks)


@dataclass(slots=True)
class Process:
    """A process of the program: its open files, and their last contents."""

    pid: int
    stat_file: ProcFile
    io_file: ProcFile | None
    children_file: ProcFile | None
    stat: ProcessStat
    io: tuple[int, int] | None = None

    @property
    def is_profiler(self) -> bool:
        """True if it belongs to a profiler and not to the program."""
        return self.stat.name.startswith(PROFILERS)

    @property
    def is_alive(self) -> bool:
        """True if it still runs. A zombie has only a line in ``/proc``."""
        return self.stat.state not in {"Z", "X"}

    def close(self) -> None:
        """Close its files."""
        for file in (self.stat_file, self.io_file, self.children_file):
            if file is not None:
                file.close()


@dataclass(slots=True)
class ProcessTree:
    """A process and its current descendants.

    Descendants are found in two ways. A member's main thread lists its children, which takes 1 µs if it has none.
    Children of other threads, or on a kernel without such lists, are found among all processes of the machine. That
    takes 1 µs for each process, and 20 µs for each new one.

    Args:
        root: Process id of the program.
        proc: The folder of the process files.
        members: Living processes by pid; after :meth:`update`.
        denied: Number of processes whose reads and writes may not be seen.
        wrapped: File that will hold the process id of the program, if the root wraps it.
        names: The name of every process that was ever a member, by pid.
        read_ns: When :meth:`update` read the members.
    """

    root: int
    proc: Path = Path("/proc")
    wrapped: Path | None = None
    members: dict[int, Process] = field(default_factory=dict)
    denied: int = 0
    names: dict[int, str] = field(default_factory=dict)
    read_ns: int = 0
    _known: set[int] = field(default_factory=set)
    _wrappers: set[int] = field(default_factory=set)

    def discover(self) -> None:
        """Find new processes. Only new numbers are inspected: an unrelated process never becomes a descendant."""
        listed = {int(name) for name in os.listdir(self.proc) if name.isdigit()}  # noqa: PTH208 (five times as fast)
        new = listed - self._known
        self._known = listed
        if self.root in new:
            self._adopt(self.root)
        lines = {pid: read_once(f"{self.proc}/{pid}/stat") for pid in new if pid != self.root}
        parents = {pid: parse_stat(line).parent for pid, line in lines.items() if line}
        while children := [pid for pid, parent in parents.items() if parent in self.members]:
            for pid in children:
                del parents[pid]
                self._adopt(pid)

    def follow(self) -> None:
        """Find processes that the main threads of members have started, and their descendants."""
        fresh = list(self.members.values())
        while fresh:
            children: set[int] = set()
            for process in fresh:
                with suppress(OSError):
                    if process.children_file is not None:
                        children.update(parse_children(process.children_file.read()))
            children -= self.members.keys()
            for pid in children:
                self._known.add(pid)
                self._adopt(pid)
            fresh = [self.members[pid] for pid in children if pid in self.members]

    def update(self, now_ns: int) -> None:
        """Read every member again, at time ``now_ns``, and drop those that have ended."""
        self.read_ns = now_ns
        for process in list(self.members.values()):
            try:
                process.stat = parse_stat(process.stat_file.read())
            except OSError:
                process.close()
                del self.members[process.pid]
                continue
            self.names[process.pid] = process.stat.name
            if process.io_file is None:
                process.io = None
                continue
            try:
                process.io = parse_io(process.io_file.read())
            except OSError:  # hidden for programs with raised privileges, and for ended ones
                self.denied += process.is_alive and process.io is None
                process.io_file.close()
                process.io_file = None
        if self.wrapped is not None and not self._wrappers:
            pid = int(read_once(self.wrapped) or 0)
            ancestors: set[int] = set()
            while pid in self.members and self.members[pid].stat.parent in self.members:
                pid = self.members[pid].stat.parent
                ancestors.add(pid)
            self._wrappers = ancestors

    @property
    def program(self) -> list[Process]:
        """Members of the program itself, without profilers and without wrappers that wait for its end."""
        return [process for process in self.members.values() if not self.is_around(process)]

    def is_around(self, process: Process) -> bool:
        """Return whether a member is not part of the program; always true until the wrapper has started the program."""
        if self.wrapped is not None and not self._wrappers:
            return True
        is_sampler = process.pid == _OWN_PID != self.root  # started by the program itself, to record a part of it
        return is_sampler or process.is_profiler or process.pid in self._wrappers

    @property
    def has_ended(self) -> bool:
        """True if no member runs any more."""
        return not any(process.is_alive for process in self.members.values())

    def close(self) -> None:
        """Close all files."""
        for process in self.members.values():
            process.close()
        self.members.clear()

    def _adopt(self, pid: int) -> None:
        """Make ``pid`` a member, unless it has ended. It is tried again later if no more files could be opened."""
        try:
            stat_file = ProcFile(f"{self.proc}/{pid}/stat")
        except OSError:
            self._known.discard(pid)
            return
        try:
            stat = parse_stat(stat_file.read())
        except OSError:
            stat_file.close()
            return
        files: list[ProcFile | None] = [None, None]
        for place, name in enumerate(("io", f"task/{pid}/children")):
            with suppress(OSError):
                files[place] = ProcFile(f"{self.proc}/{pid}/{name}")
        self.names[pid] = stat.name
        self.members[pid] = Process(pid, stat_file, files[0], files[1], stat)
