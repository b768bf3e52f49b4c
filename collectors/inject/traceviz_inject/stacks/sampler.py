"""Samples the stacks of all threads of this process, from our own thread, which ``threading`` does not know.

::

    program   ----- f -----|---- g ----|-- f --          a sample covers the time
    samples        x    x    x    x      x   x           since the previous one
    rows      [ f, 2 samples ][g, 2     ][f, 2  ]        one row for equal samples in a row

A tick holds the interpreter's lock for some ten microseconds. A thread that used no processor time since the last tick
still has the same stack, and is not inspected. The time between ticks is random around its mean, so that all parts of a
loop with that period are sampled. No frame is kept from one tick to the next: it would keep the program's objects
alive.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found,unused-ignore]
import gc
import os
import sys
import time
from _json import encode_basestring_ascii as quoted
from _thread import allocate_lock, get_ident, get_native_id, start_new_thread

from ..status import explain
from .interning import Interning
from .threads import LATELY_NS, States, ThreadIds, cpu_ns, read_kernel_file

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from .file import StackFile
    from .frame_names import Places
    from .metrics import Metric

    Phase = tuple[str, str, int | None, int, int, int]

# Programs replace functions of these modules (gevent, freezegun); these are the interpreter's own.
_monotonic_ns, _time_ns, _own_cpu_ns, _sleep = time.monotonic_ns, time.time_ns, time.thread_time_ns, time.sleep
_stacks_of_threads = sys._current_frames  # noqa: SLF001 the one way to see other threads

FLUSH_NS = 1_000_000_000
FIRST_FLUSH_NS = 500_000_000
"""A process that ends earlier leaves no file: it is a helper."""
CLOCK_NS = 10_000_000_000
"""Time between two comparisons of the two clocks."""
MOST_OF_A_CORE = 0.005
"""Share of a core that sampling may take; the rate falls before it takes more."""
SLOWEST_NS = 50_000_000
"""Longest time between ticks to which the rate may fall."""
JUDGED_TICKS = 10
"""Ticks over which the cost of a tick is averaged: work done once a second counts, and one slow tick does not."""
LEAST_NS = 10_000_000_000
MOST_BYTES = 64 << 20
"""Size limit of the file in bytes: the rate is halved at one half of it, at three quarters, at seven eighths etc."""
END_BYTES = 4 * MOST_BYTES
"""Size at which the file ends; threads, phases and frames may add this much."""
SWITCH_S = 0.0001
"""Time for which the only thread that runs may keep the interpreter's lock once this sampler wants it. With Python's
5 ms, functions of pure Python between calls that release the lock are hardly ever sampled."""
_PATIENCE_S = 2.0
_SYNCHRONOUS = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS"}


class _Thread:
    """A thread of the program, and its unfinished row."""

    __slots__ = (
        *("cpu_ns", "end_ns", "name", "native", "number", "ran_lately", "ran_ns", "row_cpu_ns"),
        *("samples", "seen", "stack", "start_ns", "state", "used_ns"),
    )

    def __init__(self, number: int, native: int | None) -> None:
        self.number = number
        self.native = native
        self.name = ""
        self.cpu_ns: int | None = None
        self.used_ns: int | None = None
        self.ran_ns = 0
        self.ran_lately = False
        self.stack = -1
        self.start_ns = 0
        self.end_ns = 0
        self.samples = 0
        self.row_cpu_ns: int | None = 0
        self.state = ""
        self.seen = 0


class Sampler:
    """Samples until it is stopped.

    Args:
        file: The output.
        places: Names files.
        rate_hz: Maximum samples per second.
    """

    def __init__(self, file: StackFile, places: Places, rate_hz: float) -> None:
        self._file = file
        self._lines: list[str] = []
        self._rows: list[str] = []
        self._interning = Interning(self._lines, places)
        self._seeker: Any = None
        self.make_seeker: Callable[[], Any] | None = None
        """Makes the object that searches for the loop of an unknown framework."""
        self._states = States()
        self._ids = ThreadIds()
        self._threads: dict[int, _Thread] = {}
        self._numbers = 0
        self._asked_hz = rate_hz
        self._interval_ns = self._shortest_ns = int(1e9 / rate_hz)
        self._next_bytes = MOST_BYTES // 2
        self._main = get_ident()
        self._described = ""
        self._started_unix_ns = _time_ns()
        self._own = 0
        self._native = 0
        self._wake, self._ended = allocate_lock(), allocate_lock()
        self._is_running = False
        self._is_lost = False
        self._stops = False
        self._usual_switch_s = sys.getswitchinterval()
        self._switch_s = self._usual_switch_s
        self._random = os.getpid() | 1
        self._began_ns = self._last_ns = _monotonic_ns()
        self._clocked_ns = 0
        self._flushed_ns = self._began_ns
        self._flushed_cpu_ns = self._flushed_ticks = 0
        self.ticks = 0
        self.cpu_ns = 0
        self.late_ns = 0
        self._cpu_before_ns = 0
        self._has_clocks = cpu_ns(get_native_id()) is not None
        # The clock of a thread moves whenever it runs; some containers count in larger units.
        self._clock_is_exact = len({_own_cpu_ns() for _ in range(8)}) > 4
        self.apart: frozenset[int] = frozenset()
        """Threads that are not inspected: those of a notebook's kernel."""
        self.is_wanted = False
        """True if the recording is kept even if it is short."""
        self.is_judged = False
        """True while a profiler records. The report judges these steps, so their samples are worth more than their cost
        in addition to the profiler's."""
        self.phases: list[Phase] = []
        """Kind, name, number, start, end, thread: notes to be written in addition to the stacks."""
        self.metrics: list[Metric] = []
        """Name, value, step, epoch, time, source: also to be written."""
        self.facts: dict[str, int] = {}
        """Facts about the whole process, by name."""

    def leave_out(self, threads: frozenset[int], outside: CodeType | None, around: CodeType | None) -> None:
        """Sample a part of a process, even if short, without these threads and without the callers of ``outside``.

        What ``around`` does is not part of it, either.
        """
        self.apart, self.is_wanted = threads, True
        self._interning.outside, self._interning.around = outside, around

    def start(self) -> None:
        """Start or continue."""
        if self._is_running:
            return
        self._stops = False
        self._wake, self._ended = allocate_lock(), allocate_lock()
        self._wake.acquire()
        self._ended.acquire()
        try:
            start_new_thread(self._run, ())
        except RuntimeError as error:  # the system has no thread left
            self._lose(error)
        else:
            self._is_running = True

    @property
    def takes_notes(self) -> bool:
        """True if notes of hooks are still written."""
        return not self._file.is_broken

    def stop(self, *, ends: bool) -> None:
        """End the thread and wait for its end; write all data if the process ``ends``."""
        if self._is_running and get_ident() != self._own:
            self._is_running = False
            self._stops = True
            self._wake.release()
            if self._ended.acquire(True, _PATIENCE_S):
                # The system removes the thread a little later. Python warns if a process with threads is forked.
                path = f"/proc/self/task/{self._native}"
                for _ in range(200):
                    if not os.path.exists(path):  # noqa: PTH110
                        break
                    _sleep(0.0001)
        # A process that was too short leaves no file.
        is_short = _monotonic_ns() - self._began_ns < FIRST_FLUSH_NS
        if ends and (not is_short or self._file.exists or self.metrics or self.is_wanted):
            now = _monotonic_ns()
            self._flush(now)
            self._file.append(f'["end",{now}]\n')
            self._file.tell(self._status("stopped" if self._is_lost or self._file.is_broken else "saved"))

    def _run(self) -> None:
        try:
            self._sample()
        except BaseException as error:  # noqa: BLE001 the program has priority, even if it ends all threads
            self._file.fail(explain(error))
        finally:
            self._switch_soon(alone=False)
            self.cpu_ns = self._cpu_before_ns + _own_cpu_ns()
            self._cpu_before_ns = self.cpu_ns
            self._ended.release()

    def _sample(self) -> None:
        # Block the program's signals in this thread, except those for faults of the thread itself.
        kept = {getattr(_signal, name) for name in _SYNCHRONOUS if hasattr(_signal, name)}
        _signal.pthread_sigmask(_signal.SIG_BLOCK, set(_signal.valid_signals()) - kept)
        self._own, self._native = get_ident(), get_native_id()
        try:  # other profilers show this thread by its name in the system
            with open(f"/proc/self/task/{self._native}/comm", "w", encoding="ascii") as comm:  # noqa: PTH123
                comm.write("traceviz")
        except OSError:
            pass
        due = _monotonic_ns()
        while True:
            if self._is_lost:
                due += FLUSH_NS
            else:  # between half and one and a half times the mean
                self._random = (self._random * 1103515245 + 12345) & 0x7FFFFFFF
                mean = self._shortest_ns if self.is_judged else self._interval_ns
                due += mean // 2 + mean * (self._random >> 8) // 0x7FFFFF
            now = _monotonic_ns()
            if due < now:  # the machine was busy, or the process stopped
                due = now + self._interval_ns // 4
            if self._wake.acquire(True, (due - now) / 1e9):
                return
            if self._stops or self._file.is_broken:
                return
            now = _monotonic_ns()
            self.late_ns += now - due
            if not self._is_lost:
                try:
                    self._tick(now)
                except BaseException as error:  # noqa: BLE001 notes of hooks are still written
                    self._lose(error)
            if now - self._flushed_ns >= (FLUSH_NS if self._file.exists else FIRST_FLUSH_NS):
                self.cpu_ns = self._cpu_before_ns + _own_cpu_ns()
                self._flush(now)
                # Lower the rate if sampling costs too much, and raise it again if it does not.
                self._flushed_ns = now
                ticks = self.ticks - self._flushed_ticks
                if ticks >= JUDGED_TICKS:
                    cost_ns = (self.cpu_ns - self._flushed_cpu_ns) / ticks
                    self._flushed_cpu_ns, self._flushed_ticks = self.cpu_ns, self.ticks
                    self._interval_ns = max(self._shortest_ns, min(SLOWEST_NS, int(cost_ns / MOST_OF_A_CORE)))
                if self._file.bytes > self._next_bytes:
                    self._shortest_ns = min(LEAST_NS, self._shortest_ns * 2)
                    self._next_bytes += (MOST_BYTES - self._next_bytes) // 2

    def _lose(self, error: BaseException) -> None:
        """Take no more samples, and note the time of the last one."""
        if self._is_lost:
            return
        self._is_lost = True
        reason = explain(error)
        self._lines.append(f'["stopped",{self._last_ns},{quoted(reason[:500])}]\n')
        self._file.note_loss(reason)

    def _tick(self, now: int) -> None:
        """Inspect all threads. Garbage collection is paused, so that it does not happen in this thread."""
        collects = gc.isenabled()
        if collects:
            gc.disable()
        try:
            self.ticks += 1
            frames = _stacks_of_threads()
            frames.pop(self._own, None)
            for ident in self.apart:
                frames.pop(ident, None)
            stated = self._ids.stated(frames)
            most = max([self._measure(ident, stated[ident], now) for ident in frames], default=0)
            running = sum(self._threads[ident].ran_lately for ident in frames) if self._has_clocks else len(frames)
            self._switch_soon(alone=running <= 1)
            for ident in frames:
                self._look(self._threads[ident], frames[ident], now, most)
            frames.clear()
        finally:
            if collects:
                gc.enable()
        self._last_ns = now

    def _switch_soon(self, *, alone: bool) -> None:
        """Let this sampler have the lock early if one thread of the program runs: no others take turns faster.

        A program that changes the interval itself keeps its own.
        """
        wanted = SWITCH_S if alone else self._usual_switch_s
        if wanted != self._switch_s and abs(sys.getswitchinterval() - self._switch_s) < SWITCH_S / 2:
            sys.setswitchinterval(wanted)
            self._switch_s = wanted

    def _measure(self, ident: int, native: int | None, now: int) -> int:
        """Find the thread, and return the processor time that it used since the last tick.

        Args:
            ident: Its number in Python.
            native: Its number in the system, if Python knows it.
            now: The time.
        """
        thread = self._threads.get(ident)
        if native is None and thread is not None:
            native = thread.native
        cpu = cpu_ns(native)
        if cpu is None and self._has_clocks:  # it has ended, or compiled code started it
            native = self._ids.found(ident) or native
            cpu = cpu_ns(native)
        if thread is None or thread.native != native:
            if thread is not None:
                self._close(thread)
            thread = self._threads[ident] = _Thread(self._numbers, native)
            self._numbers += 1
            self._name(ident, thread)  # at once: it may have ended when all are written
        before, thread.cpu_ns = thread.cpu_ns, cpu
        if cpu is None:
            thread.used_ns = None
            return 0
        used = thread.used_ns = cpu - before if before is not None else min(cpu, now - self._last_ns)
        if used:
            thread.ran_ns = now
        thread.ran_lately = now - thread.ran_ns < LATELY_NS
        return used

    def _look(self, thread: _Thread, frame: FrameType, now: int, most: int) -> None:
        """Note what a thread does.

        Args:
            thread: The thread.
            frame: Its innermost frame.
            now: The time.
            most: The maximum processor time that a thread used since the last tick.
        """
        last, used = self._last_ns, thread.used_ns
        stays = used == 0 and thread.seen and self._clock_is_exact
        stack = thread.stack if stays else self._interning.number(frame)
        if self._interning.stepping and (code := self._interning.stepping.get(stack)) is not None:
            # Search for the loop of an unknown framework.
            if self._seeker is None and self.make_seeker is not None:
                self._seeker = self.make_seeker()
            if self._seeker is not None:
                again = self._interning.stepping.get(thread.stack) is code and thread.seen == self.ticks - 1
                self._seeker.seen(code, frame, again=again)
        state = self._states.state(thread, frame, now - last, is_first=used == most > 0)
        if stack == thread.stack and state == thread.state and thread.samples and thread.seen == self.ticks - 1:
            thread.samples += 1
            if used is not None and thread.row_cpu_ns is not None:
                thread.row_cpu_ns += used
        else:
            self._close(thread)
            thread.stack, thread.state, thread.start_ns = stack, state, last
            thread.samples, thread.row_cpu_ns = 1, used
        thread.seen, thread.end_ns = self.ticks, now

    def _close(self, thread: _Thread) -> None:
        """End the row of a thread, whose last sample is at the last tick in which it was seen."""
        if not thread.samples:
            return
        if thread.stack >= 0:
            cpu = "null" if thread.row_cpu_ns is None else str(thread.row_cpu_ns)
            self._rows.append(
                f"[{thread.start_ns},{thread.end_ns - thread.start_ns},{thread.number},{thread.stack},"
                f"{thread.samples},{cpu},{thread.state}]"
            )
        thread.samples = 0

    def _flush(self, now: int) -> None:
        """Write all data."""
        if not self._file.exists:
            # The resource tracker of multiprocessing only waits for others to end, to clean up.
            tracker = "multiprocessing.resource_tracker"
            if tracker in sys.modules and tracker.encode() in read_kernel_file("/proc/self/cmdline", 4096):
                self._file.is_broken = True
                return
            self._states.load()
        # Write the description of this process, again if it has changed: a fork may turn out to train.
        described = describe_process(self._asked_hz, self._started_unix_ns, self.facts)
        if described != self._described:
            self._lines.insert(0, described)
            self._described = described
        if now - self._clocked_ns >= CLOCK_NS or not self._clocked_ns:
            self._clocked_ns = now
            self._lines.append(f'["clock",{_monotonic_ns()},{_time_ns()}]\n')
        gone = []
        for ident, thread in self._threads.items():
            self._close(thread)
            self._name(ident, thread)
            if thread.seen != self.ticks:
                gone.append(ident)
        for ident in gone:
            del self._threads[ident]
        if self._rows:
            self._lines.append(f'["samples",[{",".join(self._rows)}]]\n')
            self._rows.clear()
        # Write the notes of hooks and the program, which may be adding more.
        phases, metrics = len(self.phases), len(self.metrics)
        for kind, name, number, start_ns, end_ns, native in self.phases[:phases]:
            shown = "null" if number is None else str(int(number))
            times = f"{start_ns},{max(0, end_ns - start_ns)}"
            self._lines.append(f'["phase",{quoted(kind)},{quoted(name[:200])},{shown},{times},{native}]\n')
        for name, value, step, epoch, at_ns, source in self.metrics[:metrics]:
            numbers = ",".join(["null" if number is None else repr(number) for number in (value, step, epoch)])
            self._lines.append(f'["metric",{quoted(name)},{numbers},{at_ns},{quoted(source)}]\n')
        del self.phases[:phases], self.metrics[:metrics]
        self._lines.append(f'["cost",{{"cpu_ns":{self.cpu_ns},"ticks":{self.ticks},"late_ns":{self.late_ns}}}]\n')
        text = "".join(self._lines)
        self._lines.clear()
        is_first = not self._file.exists
        self._file.append(text)
        if is_first:
            self._file.tell(self._status("recording"))
        self._interning.forget_if_full()
        if self._file.bytes > END_BYTES:
            self._file.fail("they fill 256 MB")

    def _name(self, ident: int, thread: _Thread) -> None:
        """Write the name of the thread, again if it has changed."""
        known = getattr(sys.modules.get("threading"), "_active", {}).get(ident)
        name = getattr(known, "_name", None)
        if not isinstance(name, str):
            comm = f"/proc/self/task/{thread.native}/comm"
            name = thread.name or read_kernel_file(comm, 64).decode("utf-8", "replace").strip() or "thread"
        if name != thread.name:
            thread.name = name
            native = "null" if thread.native is None else str(thread.native)
            is_main = "true" if ident == self._main else "false"
            self._lines.append(f'["thread",{thread.number},{native},{quoted(name[:100])},{is_main},{ident}]\n')

    def _status(self, state: str) -> str:
        return (
            f'{{"pid":{os.getpid()},"state":"{state}","ticks":{self.ticks},"cpu_ns":{self.cpu_ns},'
            f'"wall_ns":{_monotonic_ns() - self._began_ns},"late_ns":{self.late_ns},"bytes":{self._file.bytes},'
            f'"rate_hz":{self._asked_hz:g},"rate_at_last_hz":{1e9 / self._interval_ns:.1f}}}\n'
        )


def describe_process(rate_hz: float, started_unix_ns: int, facts: dict[str, int]) -> str:
    """Return the line that describes this process."""
    from .. import process  # noqa: PLC0415

    named = sys.modules.get("multiprocessing.process")
    parent = named.parent_process() if named is not None and hasattr(named, "parent_process") else None
    is_worker = not process.claimed() and (parent is not None or process.inherited_owner() or not process.may_train())
    name = ""
    if parent is not None and named is not None:
        name = str(named.current_process().name)
    if not name:
        arguments = getattr(sys, "argv", None) or [""]
        name = os.path.basename(arguments[0])  # noqa: PTH119
        name = name if name not in ("", "-", "-c", "-m") else "python"
    python = "%d.%d.%d" % sys.version_info[:3]  # noqa: UP031
    known = "".join(f',"{key}":{value}' for key, value in sorted(facts.copy().items()))
    return (
        f'["process",{{"pid":{os.getpid()},"ppid":{os.getppid()},"role":"{"worker" if is_worker else "program"}",'
        f'"name":{quoted(name[:100])},"python":"{python}","rate_hz":{rate_hz:g},"started_unix_ns":{started_unix_ns}{known}}}]\n'
    )
