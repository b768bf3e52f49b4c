"""Records of a world: values that writers turn into captures. Times are nanoseconds from its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of spans of a host thread."""

    STEP = "step"
    RANGE = "range"  # a range that the program or the framework annotates
    OPERATOR = "operator"
    PYTHON = "python"
    API = "api"  # a call of the CUDA runtime
    OS = "os"  # a call of the operating system that blocks


class Work(StrEnum):
    """Kinds of device work."""

    KERNEL = "kernel"
    COLLECTIVE = "collective"
    HOST_TO_DEVICE = "h2d"
    DEVICE_TO_HOST = "d2h"
    DEVICE_TO_DEVICE = "d2d"
    FILL = "fill"

    @property
    def is_copy(self) -> bool:
        """True if a copy engine does it."""
        return self._value_ in _COPIES


_COPIES = frozenset({"h2d", "d2h", "d2d"})


@dataclass(frozen=True, slots=True)
class Span:
    """Time of a host thread. ``correlation`` joins a call with the device work of its rank that it launched, if any."""

    rank: int
    thread: int
    kind: Kind
    name: str
    start: int
    end: int
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class DeviceSpan:
    """Time of a device stream."""

    rank: int
    stream: int
    work: Work
    name: str
    start: int
    end: int
    correlation: int
    bytes: int = 0
    pinned: bool = True
    grid: int = 1
    block: int = 128
    graph: int | None = None
    """Number of the executable graph that it belongs to. Its ``correlation`` is that of the launch of the graph."""
    node: int = 0
    """Number of its node in the graph."""
    operation: str = "allreduce"
    """Of a collective: its name as PyTorch writes it (``allreduce``, ``send``, ``recv``)."""
    members: tuple[int, ...] = ()
    """Of a collective: the ranks that meet; empty for all."""


@dataclass(frozen=True, slots=True)
class Migration:
    """Pages of managed memory that move between host and device. It belongs to no call and no stream."""

    rank: int
    to_device: bool
    start: int
    end: int
    bytes: int
    faults: int
    """Page faults of the side that needs the pages: the device's if they move to it, else the host's."""
    address: int


@dataclass(frozen=True, slots=True)
class ThreadFacts:
    """A host thread: its rank, its number, its name, and the number of its process."""

    rank: int
    thread: int
    name: str
    process: int


@dataclass(frozen=True, slots=True)
class Record:
    """Everything that happened: spans by their end, and the end of the last rank."""

    spans: tuple[Span, ...]
    device: tuple[DeviceSpan, ...]
    threads: tuple[ThreadFacts, ...]
    ranks: int
    end: int
    start: int = 0
    lost: int = 0
    """Events that the profiler reports as lost."""
    migrations: tuple[Migration, ...] = ()
    """Only profilers that record unified memory have them (nsys and nvprof)."""

    @property
    def step_times(self) -> list[int]:
        """Durations of the steps of the first rank."""
        return [span.end - span.start for span in self.spans if span.kind is Kind.STEP and span.rank == 0]


@dataclass(slots=True)
class Recorder:
    """Collects a record while a world runs.

    Args:
        keeps: False if only the end of the world is of interest.
    """

    keeps: bool = True
    end: int = 0
    """End of the last program, or of the device work if that is later."""
    spans: list[Span] = field(default_factory=list)
    device: list[DeviceSpan] = field(default_factory=list)
    threads: list[ThreadFacts] = field(default_factory=list)
    migrations: list[Migration] = field(default_factory=list)

    def finish(self, ranks: int) -> Record:
        """Return the record. Other threads of the program may run longer than it; their last spans are not recorded."""
        spans = tuple(span for span in self.spans if span.end <= self.end)
        threads, migrations = tuple(self.threads), tuple(self.migrations)
        return Record(spans, tuple(self.device), threads, ranks, self.end, migrations=migrations)
