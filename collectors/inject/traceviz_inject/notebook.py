"""Recording parts of a process that is running already, one after the other, such as cells of a notebook.

Hooks are installed once, and stay. Between recordings the clock of steps is off, and they are inactive::

    install        begin ───────── end          begin ───────── end
    hooks          profilers, stacks, steps     the same, from step 0

A framework that is imported later is hooked at its import, one that is already imported at once. Of JAX, only functions
that are jitted afterwards are visible.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from . import FRAMEWORKS, STEP_SOURCES, config, hooks, process, status
from .phases.step_parts import PARTS
from .step_clock import CLOCK

if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any

    from .config import Settings
    from .profilers.window import Profiler, Recorder

PROFILERS = {
    "jax": ("profilers.jax", "JaxProfiler"),
    "tensorflow": ("profilers.tensorflow", "TensorFlowProfiler"),
    "torch": ("profilers.torch", "TorchProfiler"),
}
"""Collector -> our module with its profiler, and the profiler."""

_QUIET = ("KINETO_LOG_LEVEL", "99")
"""Setting that keeps the profiler of torch from writing between the lines of the program."""


class _Seat:
    """A profiler's place in this process: each recording gives it a recorder of its own.

    Args:
        kind: The profiler, once the framework is imported.
    """

    def __init__(self, kind: type[Profiler]) -> None:
        self._kind = kind
        self._module: ModuleType | None = None
        self._settings: Settings | None = None
        self._recorder: Recorder | None = None

    def imported(self, module: ModuleType) -> None:
        """Watch for the program's own use of the profiler, now that its module was executed."""
        self._module = module
        made: Any = self._kind(config.Settings(""), module)
        made.watch(module, self)
        if self._settings is not None and self._recorder is None:
            self.begin(self._settings)

    def give_way(self) -> None:
        """Stop recording, because the program uses the profiler itself."""
        if self._recorder is not None:
            self._recorder.give_way()

    def begin(self, settings: Settings) -> None:
        """Start a recording in which this profiler records."""
        from .profilers.window import Recorder  # noqa: PLC0415 only with a framework

        if self._kind.framework not in settings.collectors:
            return
        self._settings = settings
        if self._module is not None:
            self._recorder = Recorder(self._kind(settings, self._module), settings)
            self._recorder.begin()

    def end(self, reason: str) -> None:
        """End the recording."""
        recorder, self._recorder, self._settings = self._recorder, None, None
        if recorder is not None:
            recorder.end(reason)


_SEATS: list[_Seat] = []
_STATE: dict[str, Any] = {"installed": False, "settings": None}


def install() -> None:
    """Install the hooks, once. They do nothing before the start of a recording."""
    if _STATE["installed"]:
        return
    _STATE["installed"] = True
    CLOCK.turn_off()
    os.environ.setdefault(*_QUIET)
    hooks.before_import(FRAMEWORKS, _install_all)


def _install_all() -> None:
    from .stacks.recording import PHASES  # noqa: PLC0415 only with a framework

    process.watch_forks()
    everything = config.Settings("", tuple(PROFILERS))
    for module in (*STEP_SOURCES, *PHASES):
        status.guarded(import_module(f"{__package__}.{module}").install)(everything)
    for module, name in PROFILERS.values():
        kind = getattr(import_module(f"{__package__}.{module}"), name)
        _SEATS.append(_Seat(kind))
        hooks.when_imported(kind.module_name, _SEATS[-1].imported)
    if _STATE["settings"] is not None:
        _begin_with_frameworks(_STATE["settings"])


def begin(
    path: str, stacks_hz: float, threads: frozenset[int], outside: CodeType | None, around: CodeType | None = None
) -> None:
    """Record from now on.

    Args:
        path: The settings, ``inject.json`` in the run folder.
        stacks_hz: Samples of stacks per second; 0 for none.
        threads: Threads that are not part of the recording.
        outside: The function that runs the recorded part.
        around: The function that records it: what it does before and after the part is not part of the recording.

    Raises:
        RuntimeError: a recording is in progress.
        OSError, ValueError: the settings cannot be read.
    """
    from .stacks import recording  # noqa: PLC0415 a program that is only hooked needs none

    if _STATE["settings"] is not None:
        raise RuntimeError("a part of this process is being recorded already")
    install()
    settings = config.load(path)
    run = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120 pathlib costs start-up time
    process.claim()
    status.note_process(run)
    _STATE["settings"] = settings
    CLOCK.start_over()
    if stacks_hz:
        recording.begin(run, stacks_hz, (threads, outside, around))
        recording.clock_of_steps()
    if _SEATS:
        _begin_with_frameworks(settings)


def _begin_with_frameworks(settings: Settings) -> None:
    from .facts import event_folders, training  # noqa: PLC0415 only with a framework

    event_folders.write_to(settings.folder)
    # Other frameworks may have compiled their gradients into functions before a recording started.
    if "torch.autograd" in sys.modules and sys.modules.keys().isdisjoint(training.DIFFERENTIATION):
        training.none_yet()
    for seat in _SEATS:
        status.guarded(seat.begin)(settings)


def end(reason: str) -> None:
    """Save what was recorded and stop recording. Afterwards, another recording may start."""
    from .facts import versions  # noqa: PLC0415 see above
    from .stacks import recording  # noqa: PLC0415 see above

    if _STATE["settings"] is None:
        return
    status.guarded(versions.note_imported)(os.path.dirname(_STATE["settings"].folder))  # noqa: PTH120
    recording.pause()  # saving is not part of the program
    for seat in _SEATS:
        status.guarded(seat.end)(reason)
    if _SEATS:
        from .facts import event_folders  # noqa: PLC0415 see above

        status.guarded(event_folders.write_to)("")
    recording.finish()
    CLOCK.turn_off()
    PARTS.turn_off()
    process.release()
    _STATE["settings"] = None
