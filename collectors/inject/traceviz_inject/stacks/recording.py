"""Recording the stacks of this process: start and end of sampling, also across forks, and notes from hooks.

It starts with the process, before a framework is imported, so that imports are sampled. It is off while the process
forks, and continues in both processes: a child has a file of its own, if it lives long enough.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import time
from _thread import get_native_id
from importlib import import_module

from .. import hooks
from ..status import complain, guarded
from .file import StackFile
from .frame_names import Places
from .metrics import Metrics
from .sampler import Sampler

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from ..config import Settings

COLLECTOR = "stacks"
LONG_NS = 100_000
"""Shorter garbage collections are not noted."""

JOINED = ((50_000, 1), (500_000, 10), (float("inf"), 100))
"""Number of steps up to which groups of the given size are noted as one."""

PHASES: tuple[str, ...] = ("phases.run_phases", "facts.metrics", "facts.event_folders", "facts.training")
"""Modules that report parts of the run to :func:`note_phase`, quality figures to :func:`note_metric`, or folders of
files with such figures. Each has ``install(settings)``."""

_monotonic_ns = time.monotonic_ns


class Steps:
    """Notes steps: first each one, then ten or a hundred as one, so that the file stays small in a run of days."""

    __slots__ = ("_begin_ns", "_count", "_first_ns", "_held")

    def __init__(self) -> None:
        self._count = self._held = 0
        self._begin_ns = self._first_ns = 0

    def begin(self, number: int) -> None:  # noqa: ARG002 called by the clock
        """Start a step."""
        now = _monotonic_ns()
        if not self._held:
            self._first_ns = now
        self._begin_ns = now

    def end(self, source: str, number: int) -> None:
        """End the step."""
        if not self._begin_ns:
            return
        self._count += 1
        self._held += 1
        if self._held >= next(joined for most, joined in JOINED if self._count <= most):
            self._held = 0
            note_phase("step", source, self._first_ns, _monotonic_ns(), number)


class _Recording:
    """The sampler of this process, and the settings to start it again in a child."""

    sampler: Sampler | None = None
    folder = ""
    rate_hz = 0.0
    places: Places | None = None
    collecting_ns = 0
    listens = False
    is_watching = False
    """True if forks, exits and garbage collections are watched; once for all recordings of a process."""


_STATE = _Recording()
_STEPS = Steps()
_METRICS = Metrics()


def begin(
    run: str, rate_hz: float, around: tuple[frozenset[int], CodeType | None, CodeType | None] | None = None
) -> None:
    """Sample this process from now on.

    Args:
        run: The run folder.
        rate_hz: Samples per second.
        around: If a part of this process is sampled: threads that are not sampled, the function that runs the part,
            and the function that records it. Such a recording is kept even if it is short.
    """
    if _STATE.sampler is not None or rate_hz <= 0:
        return
    _STATE.folder = os.path.join(os.path.abspath(run), "raw", COLLECTOR)  # noqa: PTH100, PTH118
    _STATE.rate_hz = rate_hz
    try:
        working = os.getcwd()  # noqa: PTH109
    except OSError:  # it was removed
        working = ""
    _STATE.places = Places(working)
    sampler = _begin_here()
    if around is not None:
        sampler.leave_out(*around)
    if not _STATE.is_watching:
        _STATE.is_watching = True
        atexit.register(finish)  # the first to register is the last to be called
        gc.callbacks.append(_on_collection)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=pause, after_in_parent=_go_on, after_in_child=_begin_in_child)
        hooks.replace(os, "_exit", _saving, mark="__traceviz_stacks__")
        for replacing in ("execv", "execve"):
            hooks.replace(os, replacing, _saving_before_replaced, mark="__traceviz_stacks__")


def note_phase(kind: str, name: str, start_ns: int, end_ns: int, number: int | None = None) -> None:
    """Note a part of the program's run; nothing happens if stacks are not recorded.

    Args:
        kind: Its kind: see the table ``phases``.
        name: Its source, or the function that did it.
        start_ns: Its start, on the clock of ``time.monotonic_ns``.
        end_ns: Its end.
        number: Number of the step or epoch.
    """
    sampler = _STATE.sampler
    if sampler is not None and sampler.takes_notes:
        sampler.phases.append((kind, name, number, start_ns, end_ns, get_native_id()))


def note_fact(name: str, value: int, *, unless_known: bool = False) -> None:
    """Note a fact about this whole process; the last value counts, and nothing happens without stacks.

    Args:
        name: Its name: see :mod:`..facts.training`.
        value: A whole number.
        unless_known: Keep an earlier value.
    """
    sampler = _STATE.sampler
    if sampler is not None and not (unless_known and name in sampler.facts):
        sampler.facts[name] = value


@guarded
def note_metric(name: str, value: Any, step: Any = None, epoch: Any = None, source: str = "program") -> None:
    """Note a quality figure; nothing happens if stacks are not recorded.

    Args:
        name: The program's name for it: ``val_loss``.
        value: The figure: anything that ``float`` accepts.
        step: Its training step.
        epoch: Its epoch, counted from 0.
        source: Its source: see the table ``metrics``.
    """
    sampler = _STATE.sampler
    if sampler is None or not sampler.takes_notes:
        return
    at = _monotonic_ns()
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        complain(f"metric {name!s:.100} is not recorded: its value is no number, but of type {type(value).__name__}")
        return
    shown = number if number - number == 0 else None  # None for infinities and NaN
    at_step, in_epoch = (None if counted is None else int(counted) for counted in (step, epoch))
    sampler.metrics.extend(_METRICS.take((str(name)[:200], shown, at_step, in_epoch, at, source)))


def in_window(*, begins: bool) -> None:
    """Note the start or end of a profiler's window: within it, samples are taken at the full rate."""
    if _STATE.sampler is not None:
        _STATE.sampler.is_judged = begins


def install(settings: Settings) -> None:
    """Listen to the clock of steps and to hooks, after a framework's import; sampling started long before."""
    clock_of_steps()
    for name in PHASES:
        guarded(import_module(f"..{name}", __package__).install)(settings)


def clock_of_steps() -> Any:
    """Listen to the clock of steps and return it, also for a program without any framework."""
    from .. import process, step_clock  # noqa: PLC0415 only needed with steps

    if not _STATE.listens:
        _STATE.listens = True
        process.watch_forks()

        def step_ends(number: int, complete: bool) -> None:  # noqa: FBT001 called by the clock
            if complete:
                source = step_clock.CLOCK.source or ""
                found = sys.modules.get(f"{__package__}.discovered_loop")
                if source.startswith("found_") and found is not None:
                    source = f"{source} {found.LEADING[0]}"
                _STEPS.end(source, number)

        step_clock.CLOCK.listen(_STEPS.begin, step_ends)
    return step_clock.CLOCK


class ProgramStep:
    """Context whose body is a step that the program declares, if no framework makes any: ``traceviz.step_range``."""

    __slots__ = ()

    def __enter__(self) -> None:
        clock_of_steps().begin("program_step")

    def __exit__(self, *raised: object) -> None:
        clock_of_steps().boundary("program_step", more=False)


def _seeker() -> Any:
    from . import discovered_loop  # noqa: PLC0415 most programs have no such function

    return discovered_loop.Seeker(clock_of_steps)


def _begin_here() -> Sampler:
    assert _STATE.places is not None
    sampler = _STATE.sampler = Sampler(StackFile(_STATE.folder), _STATE.places, _STATE.rate_hz)
    sampler.make_seeker = _seeker
    sampler.start()
    return sampler


def _on_collection(phase: str, info: Any) -> None:
    now = _monotonic_ns()
    if phase == "start":
        _STATE.collecting_ns = now
    elif now - _STATE.collecting_ns >= LONG_NS and _STATE.collecting_ns:
        note_phase("collection", f"generation {info.get('generation')}", _STATE.collecting_ns, now)


@guarded
def finish() -> None:
    """Save what was sampled; the process may continue, and be sampled again."""
    sampler, _STATE.sampler = _STATE.sampler, None
    if sampler is not None:
        _save(sampler)
    _STATE.listens = False
    _STEPS.__init__()  # type: ignore[misc]  # listeners hold this object


def _save(sampler: Sampler) -> None:
    sampler.metrics.extend(_METRICS.rest())
    sampler.stop(ends=True)


@guarded
def pause() -> None:
    """Take no more samples for now; notes of hooks are still kept."""
    if _STATE.sampler is not None:
        _STATE.sampler.stop(ends=False)


@guarded
def _go_on() -> None:
    if _STATE.sampler is not None:
        _STATE.sampler.start()


@guarded
def _begin_in_child() -> None:
    if _STATE.sampler is not None:
        _METRICS.rest()  # its parent writes them
        _begin_here()


def _saving(leave: Any) -> Any:
    def _exit(status: int) -> Any:
        finish()
        leave(status)

    return _exit


def _saving_before_replaced(execute: Any) -> Any:
    """Return ``os.exec*`` that saves first; it may fail, and the program may continue."""

    def executed(*arguments: Any, **named: Any) -> Any:
        sampler = _STATE.sampler
        if sampler is not None:
            guarded(_save)(sampler)
        try:
            execute(*arguments, **named)
        finally:
            _go_on()

    return executed
