"""Interfaces of collectors, which record a run of a program and report beforehand whether they can.

Standard library only: this module is imported before a run starts and must not slow it down.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

NSYS, NVTX, PYSPY, RESOURCES, STACKS = "nsys", "nvtx", "py-spy", "resources", "stacks"
"""Names of collectors that other collectors depend on: one records the data of another, or waits for it."""

State = Literal["ready", "not-installed", "too-old", "not-permitted", "no-device", "unsupported"]


@dataclass(frozen=True, slots=True)
class Availability:
    """Availability of a collector on this machine.

    Args:
        state: ``ready``, or the reason why not.
        detail: A version, a path or a setting, as one sentence.
        fix: The command that fixes the problem; empty if there is no problem or no fix.
    """

    state: State
    detail: str
    fix: str = ""

    @property
    def is_ready(self) -> bool:
        """True if the collector can record."""
        return self.state == "ready"

    @property
    def words(self) -> str:
        """The state as text: ``not installed``."""
        return self.state.replace("-", " ")


@dataclass(frozen=True, slots=True)
class Window:
    """The part of the run that profilers record. Samplers record the whole run.

    Args:
        first_step: First step recorded, counted from 0; earlier steps are warm-up.
        steps: Number of steps recorded; ``None`` for all that follow.
        delay_s: Start this long after the program started, instead of at a step.
        duration_s: Record this long, instead of a number of steps.
    """

    first_step: int = 10
    steps: int | None = 20
    delay_s: float | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All decisions made before the program starts; collectors derive their command and environment from them.

    Args:
        folder: The run folder while it is being written; ``raw/NAME`` in it belongs to the collector NAME.
        command: The user's command.
        collectors: Names of the collectors that record, in the order in which they wrap the command.
        window: The part of the run that they record.
        nvtx: True if NVTX ranges mark steps, input and epochs.
        device_tracer: The one collector that may trace the GPU, because a process has only one CUPTI. ``None``: no
            collector claims it, and every framework profiler may trace the GPU.
        nsys_args: The user's flags for ``nsys profile``; they override ours.
        rate_hz: Samples per second of the resource sampler.
        stacks_hz: Samples per second of Python's stacks.
        events: Folders with the program's TensorBoard event files, if the hooks cannot find them.
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
        """Return the folder of collector ``name``; it exists before the program starts."""
        return self.folder / "raw" / name


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that went wrong while recording, for the manifest and the report: what, why, what to do."""

    code: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Harvest:
    """The results of a collector.

    Args:
        sources: Files and folders to read, in the formats that :mod:`traceviz.parsers` knows.
        problems: What went wrong.
        facts: Facts for the manifest: versions, steps recorded, overhead in nanoseconds.
    """

    sources: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """The program that a collector wraps.

    Args:
        pid: Its process id.
        code: Its exit code once it has ended, 128 + n for signal n.
        began_unix_ns: When it was started.
        ended_unix_ns: When it ended.
        usage: ``user_ns`` and ``system_ns`` of the program and the children that it waited for; empty until it has
            ended.
    """

    pid: int
    code: int | None = None
    began_unix_ns: int | None = None
    ended_unix_ns: int | None = None
    usage: Mapping[str, int] = field(default_factory=dict)


class Companion(ABC):
    """A process that runs alongside the program; it starts once the program's pid is known."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it in order once the program has ended; it saves its data."""


class Collector(ABC):
    """Records a run. :meth:`command` and :meth:`environment` change nothing, so that they can be shown beforehand."""

    name: ClassVar[str]
    """Name on the command line, and of its folder under ``raw/``."""
    title: ClassVar[str]
    """Name for people."""
    traces_device: ClassVar[bool] = False
    """True if it may use CUPTI; a process has only one."""
    own_session: ClassVar[bool] = False
    """True if it wraps the program in processes that stay around it, started in a session of their own. Signals of the
    terminal do not reach these processes; they are passed on to the program itself (:meth:`program`)."""
    room_bytes: ClassVar[int] = 0
    """Free space that it needs on the disk of the run folder; with less, it would harm the program."""

    @abstractmethod
    def availability(self) -> Availability:
        """Return whether it can record on this machine. This changes nothing."""

    def command(self, command: tuple[str, ...], plan: Plan) -> tuple[str, ...]:  # noqa: ARG002
        """Return the command that runs ``command`` under this collector; ``command`` itself if it wraps nothing."""
        return command

    def typed(self, command: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Return :meth:`command` as a user would type it, without the parts that preserve terminal and exit code."""
        return self.command(command, plan)

    def caution(self, plan: Plan) -> str:  # noqa: ARG002
        """Return a warning if the recording will differ from the part that the user named; else an empty text."""
        return ""

    def program(self, plan: Plan) -> Wrapped | None:  # noqa: ARG002
        """Return the user's program if this collector wraps it and has started it; else ``None``."""
        return None

    def last_words(self, plan: Plan) -> str:  # noqa: ARG002
        """Return the last line that the wrapper wrote, as a sentence; empty if it wrote none."""
        return ""

    def may_start_again(self, plan: Plan) -> bool:  # noqa: ARG002
        """Return whether the wrapper ended without starting the program, for a reason that may be temporary."""
        return False

    def environment(self, plan: Plan, inherited: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002
        """Return variables to set for the program; values may build on ``inherited``, for example PYTHONPATH."""
        return {}

    def start(self, plan: Plan, pid: int) -> Companion | None:  # noqa: ARG002
        """Start the companion of the program with process id ``pid``."""
        return None

    def helpers(self, plan: Plan) -> Iterable[int]:  # noqa: ARG002
        """Return process ids of its daemons that descend from none of our processes; they end with the recording."""
        return ()

    def harvest(self, plan: Plan) -> Harvest:  # noqa: ARG002
        """Collect what was recorded, once the program has ended in any way. Never raises for missing files."""
        return Harvest()
