"""What a collector is: something that records a run of a program, and says beforehand whether it can.

Standard library only: this is imported before a run starts, and must not slow it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from traceviz.untrusted.json_documents import read_object

NSYS, NVTX, PYSPY, RESOURCES, STACKS = "nsys", "nvtx", "py-spy", "resources", "stacks"
"""Names of collectors that others have to know of: one records what another one makes, or waits for."""

State = Literal["ready", "not-installed", "too-old", "not-permitted", "no-device", "unsupported"]


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a collector can record here.

    Args:
        state: ``ready``, or why not.
        detail: A version, a path, a setting; one sentence.
        fix: The command that mends it; empty where nothing needs mending, or nothing can be done.
    """

    state: State
    detail: str
    fix: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether it can record."""
        return self.state == "ready"

    @property
    def words(self) -> str:
        """The state in words: ``not installed``."""
        return self.state.replace("-", " ")


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of the run the profilers record; samplers record all of it.

    Args:
        first_step: First step recorded, counted from 0; earlier ones are warm-up.
        steps: Number of steps recorded; ``None`` for all that follow.
        delay_s: Begin this long after the program started, instead of at a step.
        duration_s: Record this long, instead of a number of steps.
    """

    first_step: int = 10
    steps: int | None = 20
    delay_s: float | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything decided before the program starts; a collector derives its command and environment from it.

    Args:
        folder: The run folder while it is being written; ``raw/NAME`` in it belongs to the collector NAME.
        command: The user's command.
        collectors: Names of the collectors that record, in the order in which they wrap the command.
        window: Which part of the run they record.
        nvtx: Whether there are NVTX ranges around steps, input and epochs.
        device_tracer: The one collector that may trace the GPU, as a process has only one CUPTI. ``None``: nobody
            claims it, and every framework profiler may trace the GPU.
        nsys_args: Flags that the user passes on to ``nsys profile``; they win over ours.
        rate_hz: Samples per second of the resource sampler.
        stacks_hz: Samples per second of Python's stacks.
        events: Folders in which the program writes event files of TensorBoard, where the hooks cannot tell.
        options: Further settings by collector.
    """

    folder: Path
    command: tuple[str, ...]
    collectors: tuple[str, ...]
    window: Window = Window()
    nvtx: bool = True
    device_tracer: str | None = None
    nsys_args: tuple[str, ...] = ()
    rate_hz: float = 10.0
    stacks_hz: float = 100.0
    events: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def raw(self, name: str) -> Path:
        """The folder of collector ``name``; it exists before the program starts."""
        return self.folder / "raw" / name


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that went wrong while recording, for the manifest and the report: what, why, what to do."""

    code: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Harvest:
    """What a collector left behind.

    Args:
        sources: Files and folders to read, in the formats that :mod:`traceviz.parsers` knows.
        problems: What went wrong.
        facts: What the manifest says of it: versions, steps recorded, overhead in nanoseconds.
    """

    sources: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The program below what wraps it.

    Args:
        pid: Its process id.
        code: Its exit code once it has ended, 128 + n for signal n.
        began_unix_ns: When it was started.
        ended_unix_ns: When it ended.
        usage: ``user_ns`` and ``system_ns`` of it and the children that it waited for; empty until it has ended.
    """

    pid: int
    code: int | None = None
    began_unix_ns: int | None = None
    ended_unix_ns: int | None = None
    usage: Mapping[str, int] = field(default_factory=dict)


class Companion(ABC):
    """A process that runs beside the program, started once the program's pid is known."""

    @abstractmethod
    def stop(self) -> None:
        """End it in order, once the program has ended; it saves what it has."""


class Collector(ABC):
    """Records a run. :meth:`command` and :meth:`environment` change nothing, so that they can be shown beforehand."""

    name: ClassVar[str]
    """Name on the command line, and of its folder under ``raw/``."""
    title: ClassVar[str]
    """Name for people."""
    traces_device: ClassVar[bool] = False
    """Whether it may use CUPTI, of which a process has only one."""
    own_session: ClassVar[bool] = False
    """Whether it wraps the program in processes that stay around it, and are started in a session of their own: signals
    of the terminal do not reach them, and are passed on to the program itself (:meth:`program`)."""
    room_bytes: ClassVar[int] = 0
    """Free space that it needs where the run folder lies; with less, it would harm the program."""

    @abstractmethod
    def availability(self) -> Availability:
        """Whether it can record on this machine; asks the machine, and changes nothing."""

    def command(self, command: tuple[str, ...], plan: Plan) -> tuple[str, ...]:  # noqa: ARG002
        """The command that runs ``command`` under this collector; ``command`` itself where it wraps nothing."""
        return command

    def typed(self, command: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """:meth:`command` as a person would type it, without what it takes to keep terminal and exit code."""
        return self.command(command, plan)

    def caution(self, plan: Plan) -> str:  # noqa: ARG002
        """A warning before the run where it will record another part than the user named; else an empty text."""
        return ""

    def program(self, plan: Plan) -> Wrapped | None:  # noqa: ARG002
        """The user's program, where this wraps it and has started it; else ``None``."""
        return None

    def last_words(self, plan: Plan) -> str:  # noqa: ARG002
        """The last line that what this wraps the program in wrote, as a sentence; empty where it wrote none."""
        return ""

    def may_start_again(self, plan: Plan) -> bool:  # noqa: ARG002
        """Whether what this wraps the program in has ended without starting that, of a fault that may pass."""
        return False

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Variables to set for the program; values may build on ``inherited``, for example PYTHONPATH."""
        return {}

    def start(self, plan: Plan, pid: int) -> Companion | None:  # noqa: ARG002
        """Start what runs beside the program with process id ``pid``."""
        return None

    def helpers(self, plan: Plan) -> Iterable[int]:  # noqa: ARG002
        """Process ids of daemons of its own, which descend from none of our processes: they end with the recording."""
        return ()

    def harvest(self, plan: Plan) -> Harvest:  # noqa: ARG002
        """Collect what was recorded, once the program has ended however it did. Never raises for missing files."""
        return Harvest()


def read_facts(path: Path) -> dict[str, Any]:
    """The facts in a file of JSON; none where it is missing or damaged."""
    return read_object(path)
