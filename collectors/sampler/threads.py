"""The scheduler's counters for the threads of a program: how long they ran, and how long they waited for a core.

Counters are read, not states: their growth covers the whole time between two readings, even if readings are rare. Files
stay open, as those of processes do: 5 µs for a thread instead of 60 µs. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from traceviz.collectors.sampler.proc import Process, read_once

_BYTES = 64
"""Buffer size for a file of three numbers."""


class Clocks(NamedTuple):
    """Time that a thread ran, and that it waited in the scheduler's queue while runnable; nanoseconds."""

    ran_ns: int
    queued_ns: int


class Switches(NamedTuple):
    """Number of times that a thread gave up its core, and lost it; and whether it is runnable."""

    runnable: bool
    voluntary: int
    involuntary: int


def parse_clocks(schedstat: bytes) -> Clocks | None:
    """Parse ``schedstat`` of a thread; ``None`` if the kernel keeps no such statistics."""
    words = schedstat.split()
    return Clocks(int(words[0]), int(words[1])) if len(words) == 3 else None


def parse_switches(status: bytes) -> Switches:
    """Parse ``status`` of a thread."""
    fields = dict(line.split(b":\t", 1) for line in status.splitlines() if b":\t" in line)
    return Switches(
        runnable=fields.get(b"State", b"").startswith(b"R"),
        voluntary=int(fields.get(b"voluntary_ctxt_switches", 0)),
        involuntary=int(fields.get(b"nonvoluntary_ctxt_switches", 0)),
    )


def growth(before: Mapping[int, tuple[int, ...]], now: Mapping[int, tuple[int, ...]], column: int) -> list[int]:
    """Return the growth of a counter for each thread; for a new thread, since it started."""
    return [max(row[column] - (before[number][column] if number in before else 0), 0) for number, row in now.items()]


@dataclass(slots=True)
class ThreadClocks:
    """The clocks of all threads of a program.

    Args:
        proc: The folder of the process files.
        most: Number of files that are kept open; further files are opened for every reading.
    """

    proc: Path = Path("/proc")
    most: int = field(default_factory=lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    _files: dict[int, dict[int, int]] = field(default_factory=dict)

    def read(self, processes: Iterable[Process]) -> dict[int, Clocks]:
        """Return the clocks by thread id; empty if the kernel keeps none."""
        clocks: dict[int, Clocks] = {}
        alive = {process.pid: process for process in processes}
        for pid in self._files.keys() - alive.keys():
            _close(self._files.pop(pid).values())
        for pid, process in alive.items():
            own = self._files.setdefault(pid, {})
            clocks |= self._kept(own)
            if len(own) != process.stat.threads:
                clocks |= self._appeared(pid, own)
        return clocks

    def close(self) -> None:
        """Close all files."""
        for own in self._files.values():
            _close(own.values())
        self._files.clear()

    def _kept(self, own: dict[int, int]) -> dict[int, Clocks]:
        """Return the clocks of threads whose files are open; close the files of ended threads."""
        by_thread = {}
        for thread, descriptor in list(own.items()):
            try:
                clocks = parse_clocks(os.pread(descriptor, _BYTES, 0))
            except OSError:
                os.close(own.pop(thread))
                continue
            if clocks is not None:
                by_thread[thread] = clocks
        return by_thread

    def _appeared(self, pid: int, own: dict[int, int]) -> dict[int, Clocks]:
        """Return the clocks of other threads, whose files are kept open from now on, up to the limit."""
        folder, by_thread = f"{self.proc}/{pid}/task", {}
        for thread in _listed(folder) - own.keys():
            path = f"{folder}/{thread}/schedstat"
            clocks = parse_clocks(read_once(path) or b"")
            if clocks is None:
                continue
            by_thread[thread] = clocks
            if sum(map(len, self._files.values())) < self.most:
                with contextlib.suppress(OSError):
                    own[thread] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return by_thread


def read_switches(processes: Iterable[Process], proc: Path = Path("/proc")) -> dict[int, Switches]:
    """Return how often every thread of ``processes`` was switched, by thread id."""
    switches = {}
    for process in processes:
        folder = f"{proc}/{process.pid}/task"
        for thread in _listed(folder):
            status = read_once(f"{folder}/{thread}/status")
            if status:
                switches[thread] = parse_switches(status)
    return switches


def _listed(folder: str) -> set[int]:
    try:
        return {int(thread) for thread in os.listdir(folder)}  # noqa: PTH208 (five times as fast)
    except OSError:
        return set()


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
