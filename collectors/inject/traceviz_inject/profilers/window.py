"""A profiler's window on the step clock: started before its first step, stopped after its last, always saved.

A profiler keeps its events in memory, and the program waits while it saves them: 5 to 50 µs of processor time each.
No profiler reports how many it holds. So it is tried for one step before the window, and these events are counted::

    step   8        9 (trial)       10       11       12
                    start .. stop   start ............. stop: 3 steps of 70,000 events
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import exits, hooks, process
from ..facts import frameworks
from ..stacks.recording import in_window, note_phase
from ..status import Status, explain, guarded
from ..step_clock import CLOCK, SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

    from ..config import Settings, Window

EVENTS = 200_000
"""Number of events after which a window of steps ends with the step in progress."""
MOST_EVENTS = 3 * EVENTS
"""Number of events at which it ends at once, within a step."""
TRIAL_S = 0.25
"""A trial ends within its step after this time, in seconds: the first step of some programs lasts for hours."""
WINDOW_S = 60.0
"""Time after which a window of steps ends with the step in progress, in seconds."""
LEAST_STEPS = 2
"""Complete steps that are recorded even with more than :data:`EVENTS` events: one step alone shows no variation."""

STEPS, TIME, TOO_MANY = "window", "time", "events"
"""Causes of the end of a window: its number of steps, :data:`WINDOW_S`, or its events."""


class Load:
    """The events of a trial, and the processor time in which they were recorded.

    Args:
        events: Number of events.
        cpu_ns: Processor time of the process during the trial.
        is_step: True if it was one complete step, false for a part of one.
    """

    __slots__ = ("cpu_ns", "events", "is_step")

    def __init__(self, events: int, cpu_ns: int, *, is_step: bool) -> None:
        self.events = events
        self.cpu_ns = max(cpu_ns, 1)
        self.is_step = is_step

    @property
    def is_heavy(self) -> bool:
        """True if a window may reach :data:`MOST_EVENTS` before its first steps end."""
        return not self.is_step or LEAST_STEPS * self.events > EVENTS

    def after(self, steps: int, cpu_ns: int) -> int:
        """Return the probable number of events after complete ``steps``, and this processor time in all.

        Steps count if the trial was a complete step: a step may compute for long without any event.
        """
        by_time = round(self.events * cpu_ns / self.cpu_ns)
        return min(by_time, self.events * (steps + 1)) if self.is_step else by_time


class Bounds:
    """The bounds of one window; made when the profiler has started.

    Args:
        load: The result of a trial; ``None`` without a trial: then events do not bound the window.
        window: The steps to record. Time bounds them only if the user named none.
    """

    __slots__ = ("_began_cpu_ns", "_began_s", "_most_s", "_steps", "load")

    def __init__(self, load: Load | None, window: Window) -> None:
        self.load = load
        self._steps = window.steps
        self._most_s = WINDOW_S if window.is_default else float("inf")
        self._began_s, self._began_cpu_ns = time.monotonic(), time.process_time_ns()

    def reached_after(self, recorded: int) -> str | None:
        """Return what ends the window after ``recorded`` complete steps; ``None`` if it continues."""
        if self._steps is not None and recorded >= self._steps:
            return STEPS
        if self.load is not None and recorded:
            used_ns = time.process_time_ns() - self._began_cpu_ns
            events = self.load.events * recorded if self.load.is_step else self.load.after(recorded, used_ns)
            fits = events + events // (2 * recorded) <= EVENTS
            if not fits and (recorded >= LEAST_STEPS or events >= MOST_EVENTS):
                return TOO_MANY
        return TIME if time.monotonic() - self._began_s > self._most_s else None

    def reached_within(self, recorded: int) -> str | None:
        """Return what ends the window within a step; ``None`` if it continues."""
        if self.load is not None:
            used_ns = time.process_time_ns() - self._began_cpu_ns
            if self.load.after(recorded, used_ns) > MOST_EVENTS:
                return TOO_MANY
        return None


WAITING, TRIAL, RECORDING, DONE = "waiting", "trial", "recording", "saved"

RETRY_S = 0.1
"""Time between two checks of a framework that is not in use when recording should start."""
LOOK_S = 0.25
"""Time between two estimates of the events of long steps."""
_TICKS_PER_SECOND = 100
"""Unit of times under /proc, on every Linux."""
TRIAL_FOLDER = "trial"
"""Folder below that of the process for the files of a trial; it is removed with them."""


class NotYetError(Exception):
    """The profiler cannot be started at this moment, and will be started later."""


class Profiler(ABC):
    """Interface that a framework's module implements to control its profiler. Any method may raise."""

    framework = ""
    """Name of the framework, and of the collector that records it."""
    module_name = ""
    """The framework's module with its profiler."""

    def __init__(self, settings: Settings, module: ModuleType) -> None:
        self._module = module
        self._traces_device = settings.traces_device(self.framework)

    @abstractmethod
    def watch(self, module: ModuleType, recorder: Recorder) -> None:
        """Hook the program's own use of the profiler, which has priority; called at each execution of its module."""

    def version(self) -> str | None:
        """Return the version of the framework; it may be no plain string, as with torch."""
        version = getattr(sys.modules.get(self.framework), "__version__", None)
        return None if version is None else str(version)

    @abstractmethod
    def start(self, folder: str) -> None:
        """Start recording; files go below ``folder``."""

    def try_out(self, folder: str) -> None:
        """Start recording only the host, for a trial.

        A device tracer that starts a second time crashes programs with CUDA graphs, with some versions of CUPTI.
        """
        traces_device, self._traces_device = self._traces_device, False
        try:
            self.start(folder)
        finally:
            self._traces_device = traces_device

    @abstractmethod
    def stop(self) -> None:
        """Stop recording and save."""

    @abstractmethod
    def drop(self) -> int:
        """End a trial without saving; return the approximate number of events that a window would have had."""

    def can_stop_here(self) -> bool:
        """Return whether this thread, which may not be the one that started it, can stop it."""
        return True

    @abstractmethod
    def open_mark(self, number: int) -> Any:
        """Mark the start of step ``number``; ``None`` if steps are marked in another way."""

    @abstractmethod
    def close_mark(self, mark: Any, number: int, *, complete: bool) -> None:
        """End the mark of step ``number``; if not ``complete``, it was no step."""


class Recorder:
    """Controls one profiler.

    It records ``window.steps`` steps from ``window.first_step`` on, or ``window.duration_s`` seconds from
    ``window.delay_s`` on. A window of steps also ends by events, which a trial in the previous step estimates, and by
    time (see :class:`Bounds`). A better source of steps may appear after other calls were taken for steps, such as a
    pass over the data before Keras trains. Then it records again and drops the first recording.
    """

    def __init__(self, profiler: Profiler, settings: Settings) -> None:
        self._profiler = profiler
        self._window = settings.window
        self._parent = settings.raw_of(profiler.framework)
        self._lock = threading.RLock()
        self._mark: Any = None
        self._rank = len(SOURCES)
        self._recorded = 0
        self._source: str | None = None
        self._folder = ""
        self._status: Status | None = None
        self._was_at_work = False
        self._is_over = False
        self._due = 0.0
        self._waiting_pid = 0
        self._trial_began = (0, 0)
        self._trial_cost_ns = 0
        self._tried_rank = self._rank
        self._before_trial = WAITING
        self._load: Load | None = None
        self._bounds: Bounds | None = None
        self.state = WAITING

    def attach(self) -> None:
        """Listen to the clock from now on; the framework was imported."""
        CLOCK.listen(self._on_step, self._on_step_end, outermost=True)
        exits.on_end(self._at_end)
        if self._window.is_timed:
            # How long this process has been running; its processor time if the system does not report it.
            try:
                with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
                    ticks = int(file.read().rpartition(b")")[2].split()[19])
                with open("/proc/uptime", "rb") as file:  # noqa: PTH123
                    ran_s = float(file.read().split()[0]) - ticks / _TICKS_PER_SECOND
            except (OSError, ValueError, IndexError):
                ran_s = time.process_time()
            self._due = time.monotonic() + (self._window.delay_s or 0.0) - ran_s
            self._wait_until_due()

    def _wait_until_due(self) -> None:
        self._waiting_pid = os.getpid()
        exits.arm()
        self._later(max(0.0, self._due - time.monotonic()), self._start_in_time)

    def begin(self) -> None:
        """Record a part of a program that is running already, as a window by time from now on."""
        if not self._window.is_timed:
            self.attach()
            return
        CLOCK.listen(self._on_step, self._on_step_end, outermost=True)
        exits.on_end(self._at_end)
        exits.arm()
        self._waiting_pid = os.getpid()
        self._start_in_time()

    def end(self, reason: str) -> None:
        """Save at the end of that part. Nothing is reported of an unused framework."""
        exits.cancel(self._at_end)
        with self._held():
            self._is_over = True
            if self.state != WAITING or self._is_at_work():
                self._at_end(reason)
            if self.state == WAITING:
                self.state = DONE

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the lock; its holder may wait for this thread, which answers between two tries."""
        while not self._lock.acquire(timeout=0.05):
            pass
        try:
            yield
        finally:
            self._lock.release()

    def give_way(self) -> None:
        """Stop recording for the program, which starts the profiler itself: there is only one."""
        self._end_trial(is_step=False)
        if self.state == RECORDING:
            self._stop("the program's own profiling")
            self._tell().problem(
                "profiler-taken",
                f"The program started the {self._profiler.framework} profiler itself; "
                f"the recording ended there, after {self._recorded} steps.",
                "Choose an earlier window with --steps, or switch the program's own profiling off.",
            )

    def _on_step(self, number: int) -> None:
        if self._window.is_timed:
            if self.state == WAITING and self._waiting_pid != os.getpid():
                self._wait_until_due()  # a fork that trains by itself: the waiting thread is not in it
        elif self._is_at_work():
            if self._status is None:
                self._tell().update(version=guarded(self._profiler.version)())
            # A clock with a better source of steps than that of the recording supersedes the recording.
            is_better = CLOCK.rank < self._rank and self.state in (RECORDING, DONE)
            if number >= self._window.first_step and (self.state == WAITING or is_better):
                if is_better:
                    if self.state == RECORDING:
                        self._stop()
                    shutil.rmtree(self._folder, ignore_errors=True)
                self._start(number)
            elif number == self._window.first_step - 1 and CLOCK.rank < self._tried_rank:
                self._try()
        if self.state == RECORDING:
            self._mark = self._profiler.open_mark(number)

    def _on_step_end(self, number: int, complete: bool) -> None:  # noqa: FBT001 called by the clock
        mark, self._mark = self._mark, None
        self._end_trial(is_step=complete)
        if self.state != RECORDING:
            return
        if mark is not None:
            self._profiler.close_mark(mark, number, complete=complete)
        self._recorded += complete
        self._source = CLOCK.source
        reached = self._bounds.reached_after(self._recorded) if self._bounds is not None else None
        if reached is not None:
            self._stop(reached)

    def _is_at_work(self) -> bool:
        """Return whether the program uses the framework; checked until it does.

        Many programs import a framework that they do not use. Starting its profiler would make it take devices, and
        their memory, from the framework in use.
        """
        if not self._was_at_work:
            self._was_at_work = bool(guarded(frameworks.is_at_work)(self._profiler.framework))
        return self._was_at_work

    def _try(self) -> None:
        """Start the profiler for one step, to count its events; a failure occurs again at the window, and is reported.

        A signal that ends the program now loses nothing: no handler is needed.
        """
        with self._held(), exits.uninterrupted():
            if self._is_over or self.state not in (WAITING, DONE):
                return
            self._tell()
            begun = time.monotonic_ns()
            self._tried_rank, self._load, self._before_trial = CLOCK.rank, None, self.state
            try:
                self._profiler.try_out(os.path.join(self._folder, TRIAL_FOLDER))  # noqa: PTH118
            except Exception:  # noqa: BLE001 frameworks raise any error
                return
            self.state = TRIAL
            self._trial_cost_ns = self._cost_since(begun)
            self._trial_began = time.process_time_ns(), time.monotonic_ns()
        self._later(TRIAL_S, self._end_long_trial)

    def _end_long_trial(self) -> None:
        if self._profiler.can_stop_here():
            self._end_trial(is_step=False)

    def _end_trial(self, *, is_step: bool) -> None:
        """Stop the profiler and count what it recorded, unless that was done already."""
        if self.state != TRIAL:
            return
        with self._held(), exits.uninterrupted():
            if self.state != TRIAL:
                return
            self.state = self._before_trial
            cpu_ns, begun = time.process_time_ns() - self._trial_began[0], time.monotonic_ns()
            try:
                self._load = Load(self._profiler.drop(), cpu_ns, is_step=is_step)
            except Exception as error:  # noqa: BLE001 frameworks raise any error
                self._tell().update(trial=explain(error))
            self._trial_cost_ns += self._cost_since(begun)
            shutil.rmtree(os.path.join(self._folder, TRIAL_FOLDER), ignore_errors=True)  # noqa: PTH118

    def _start(self, number: int | None) -> None:
        with self._held(), exits.uninterrupted():
            if self._is_over:
                return
            status = self._tell()
            self._rank, self._source, self._recorded = CLOCK.rank, CLOCK.source, 0
            begun = time.monotonic_ns()
            try:
                self._profiler.start(self._folder)
                self._bounds = None if self._window.is_timed else Bounds(self._load_of_steps(), self._window)
            except NotYetError:
                self._later(RETRY_S, self._start_in_time)
                return
            except Exception as error:  # noqa: BLE001 frameworks raise any error; it is reported
                self.state = "failed"
                exits.cancel(self._at_end)
                status.update(state=self.state, detail=explain(error), first_step=number)
                framework = self._profiler.framework
                if "already" in str(error).lower() or "another profile" in str(error).lower():
                    status.problem(
                        "profiler-taken",
                        f"The program runs the {framework} profiler itself, and there is only one: "
                        "traceviz recorded nothing.",
                        "Read the program's own trace, or switch its profiling off "
                        "(the profile_batch of a TensorBoard callback).",
                    )
                else:
                    status.problem("not-started", f"The {framework} profiler did not start: {explain(error)}")
                return
            self.state = RECORDING
            in_window(begins=True)
            exits.arm()
            status.update(
                state=self.state,
                first_step=number,
                steps_recorded=0,
                source=self._source,
                start_cost_ns=self._cost_since(begun),
                trial_cost_ns=self._trial_cost_ns or None,
                events_per_step=self._load.events if self._load is not None and self._load.is_step else None,
                started_unix_ns=time.time_ns(),
                version=guarded(self._profiler.version)(),
                threads=guarded(frameworks.threads)(self._profiler.framework),
            )
        if self._window.duration_s is not None:
            self._later(self._window.duration_s, self._stop)
        if self._bounds is not None and self._bounds.load is not None and self._bounds.load.is_heavy:
            self._later(LOOK_S, self._look)

    def _load_of_steps(self) -> Load | None:
        """Return the load of the trial, if it was a trial of steps of the clock's current source."""
        return self._load if self._tried_rank == CLOCK.rank else None

    def _look(self) -> None:
        """End the window within a step that has very many events."""
        if self.state != RECORDING or self._bounds is None or not self._profiler.can_stop_here():
            return
        reached = self._bounds.reached_within(self._recorded)
        if reached is not None:
            self._stop(reached)
        else:
            self._later(LOOK_S, self._look)

    def _start_in_time(self) -> None:
        """Start because it is time; not in a process that only starts others."""
        if self.state != WAITING or not process.may_train() or (process.is_helper() and not process.claimed()):
            return
        if not self._is_at_work():
            self._later(RETRY_S, self._start_in_time)
            return
        process.claim()
        self._start(None)

    def _stop(self, reason: str | None = None) -> None:
        with self._held(), exits.uninterrupted():
            if self.state != RECORDING:
                return
            self.state = DONE
            in_window(begins=False)
            status = self._tell()
            begun = time.monotonic_ns()
            try:
                self._profiler.stop()
            except Exception as error:  # noqa: BLE001 frameworks raise any error; it is reported
                self.state = "not-saved"
                status.problem("not-saved", f"The {self._profiler.framework} profiler could not save: {explain(error)}")
            status.update(
                state=self.state,
                steps_recorded=self._recorded,
                stop_cost_ns=self._cost_since(begun),
                source=self._source or status["source"],
                ended_by=reason or STEPS,
                accelerators=guarded(frameworks.accelerators)(self._profiler.framework),
            )
            exits.disarm()
            if reason in (TIME, TOO_MANY):
                self._explain_short_window(status, reason)

    def _explain_short_window(self, status: Status, reason: str) -> None:
        """Report a window that ended before its steps were recorded."""
        why, load = f"The window had lasted {WINDOW_S:g} s.", self._load_of_steps()
        if reason == TOO_MANY:
            known = load is not None and load.is_step
            each = f"A step has about {load.events:,} events" if known and load else "Its steps have many events"
            why = f"{each}, and a window ends at about {EVENTS:,}: the program waits while they are saved."
        steps = f"{self._recorded} {'step' if self._recorded == 1 else 'steps'}"
        wanted = "all" if self._window.steps is None else f"{self._window.steps}"
        message = f"The {self._profiler.framework} profiler recorded {steps} instead of {wanted}. {why}"
        status.problem("window-shortened", message, "To record other steps: --steps FIRST:END.", aloud=False)

    def _cost_since(self, begun: int) -> int:
        """Return nanoseconds since a start time, in which the program waited for the profiler: not part of its run."""
        ended = time.monotonic_ns()
        note_phase("recording", self._profiler.framework, begun, ended)
        return ended - begun

    def _at_end(self, reason: str) -> None:
        """Save at the end of the program, or report why there is nothing to save."""
        self._end_trial(is_step=False)
        with self._held():
            pass  # another thread saves a window that ended within a step, and would end with the process
        if self.state == RECORDING:
            self._stop(reason)
        elif self.state == WAITING and not process.is_helper() and (self._is_at_work() or not CLOCK.steps_seen):
            # A recording is expected, except of an unused framework while another one trained.
            seen, first = CLOCK.steps_seen, self._window.first_step
            if self._window.is_timed:
                why = f"it ended before recording was to begin, after {self._window.delay_s} s"
            elif not seen:
                why = "no training step was seen: use --delay and --duration to record by time"
            else:  # half of the steps that there are
                why = f"it ended after {seen} steps; recording begins at step {first}; use --steps {seen // 2}:{seen}"
            self._tell().update(
                state="not-started",
                version=guarded(self._profiler.version)(),
                steps_seen=CLOCK.steps_seen,
                detail=why,
            )

    def _tell(self) -> Status:
        if self._status is None:
            self._folder = process.own_folder(self._parent)
            self._status = Status(self._folder, self._profiler.framework)
        return self._status

    def _later(self, seconds: float, call: Any) -> None:
        def wait() -> None:
            time.sleep(seconds)
            guarded(call)()

        # A name of its own: Python would number a Timer, and the program would seem to start a thread for each step
        threading.Thread(target=wait, name="traceviz-window", daemon=True).start()


def attach_once(profiler: type[Profiler], settings: Settings) -> None:
    """Attach a recorder of this kind of profiler once the program has imported the module with it.

    Args:
        profiler: Made from the settings and the framework's module.
        settings: The part of the run to record, and the folder.
    """
    attached: list[tuple[Profiler, Recorder]] = []

    def attach(module: ModuleType) -> None:
        if not attached:
            made = profiler(settings, module)
            attached.append((made, Recorder(made, settings)))
            attached[0][1].attach()
        attached[0][0].watch(module, attached[0][1])

    hooks.when_imported(profiler.module_name, attach)


def giving_way(start: Any, recorder: Recorder) -> Any:
    """Return ``start``, the framework's function to start its profiler, which first stops ``recorder``."""

    @functools.wraps(start)
    def started_by_the_program(*arguments: Any, **named: Any) -> Any:
        guarded(recorder.give_way)()
        return start(*arguments, **named)

    return started_by_the_program
