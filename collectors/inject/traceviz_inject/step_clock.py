"""The one step clock of the process.

Hooks in frameworks report the start and end of steps; profilers and ranges listen. Several hooks may see the same
loop (Keras calls an optimizer, which reads an iterator). The hook nearest to the user's notion of a step drives it.

::

    source:     begin      boundary      boundary          pause            begin      boundary
    listeners:  on_step 0  on_end 0      on_end 1          on_end 2         on_step 2  on_end 2
                           on_step 1     on_step 2         (not complete)              on_step 3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import process
from .status import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = (
    *("keras", "paddle_fit", "jax_step", "tf_step"),
    *("torch_optimizer", "paddle_optimizer", "mxnet_optimizer"),
    *("torch_loader", "paddle_loader", "mxnet_loader", "tf_iterator"),
    *("jax_call", "tf_call", "torch_call", "paddle_call", "mxnet_call"),
    *("program_step", "found_update"),
)
"""Sources of steps, the most trusted first: Keras' batches, the program's own annotations, optimizer steps, then calls
that only repeat; if no framework makes any, ``traceviz.step``, and calls that look like an optimizer."""

DECLARED = frozenset({"jax_step", "tf_step"})
"""Sources whose steps the program itself annotates: no other marks are needed."""

FOUND = "found_update"
"""Source of the steps of a loop that was found in samples of stacks."""

_RANKS = {source: rank for rank, source in enumerate(SOURCES)}
_NONE = len(SOURCES)


class StepClock:
    """Counts steps, and notifies listeners."""

    __slots__ = ("_counts", "_driver", "_listeners", "_off", "_running", "recording")

    def __init__(self) -> None:
        self.recording = 0
        """Number of the recording in progress: a process whose parts are recorded has several in sequence."""
        self._start()

    def _start(self) -> None:
        self._counts = dict.fromkeys(SOURCES, 0)
        self._driver = _NONE
        self._running = False
        self._off = False
        self._listeners: list[tuple[Callable[[int], None], Callable[[int, bool], None] | None]] = []

    @property
    def source(self) -> str | None:
        """The source that drives the clock."""
        return SOURCES[self._driver] if self._driver < _NONE else None

    @property
    def rank(self) -> int:
        """Rank in trust of the source that drives the clock: 0 is best."""
        return self._driver

    @property
    def step(self) -> int | None:
        """Number of the step in progress; ``None`` between steps."""
        return self._counts[SOURCES[self._driver]] if self._running else None

    @property
    def steps_seen(self) -> int:
        """Complete steps of the best source that had any."""
        return next((count for count in self._counts.values() if count), 0)

    def listen(
        self,
        on_step: Callable[[int], None],
        on_end: Callable[[int, bool], None] | None = None,
        *,
        outermost: bool = False,
    ) -> None:
        """Have ``on_step(number)`` called at the start of a step, and ``on_end(number, complete)`` at its end.

        Args:
            on_step: Called with the number of the step that starts, counted from 0. An abandoned step (``complete`` is
                false: the epoch was over, there was no further batch) starts again later, with the same number.
            on_end: Called when that step has ended.
            outermost: Called first at the start and last at the end: a profiler, which so records others' ranges.
        """
        entry = (guarded(on_step), guarded(on_end) if on_end else None)
        self._listeners.insert(0 if outermost else len(self._listeners), entry)

    def hears(self, source: str) -> bool:
        """Return whether ``source`` drives the clock, or would drive it with its next report."""
        return _RANKS[source] <= self._driver and not self._off

    def begin(self, source: str) -> None:
        """Start the first step, or the first after a pause. Nothing happens while a step is in progress."""
        if self._follows(source) and not self._running:
            self._begin()

    def boundary(self, source: str, *, more: bool = True) -> None:
        """End a step and, if ``more``, start the next one."""
        if not self._follows(source):
            return
        self._end(complete=True)
        self._counts[source] += 1
        if more:
            self._begin()

    def pause(self, source: str) -> None:
        """Abandon the step that was started: the epoch is over, or the loop."""
        if self._driver < _NONE and SOURCES[self._driver] == source:
            self._end(complete=False)

    def release(self, source: str) -> None:
        """Release the clock, because ``source`` has no more steps for now; others may drive it until it comes back."""
        if self._driver < _NONE and SOURCES[self._driver] == source:
            self._end(complete=False)
            self._driver = _NONE

    def start_over(self) -> None:
        """Count from 0, for a new recording, which has no listeners yet."""
        self.recording += 1
        self._start()

    def turn_off(self) -> None:
        """Count no more steps: this process does not train, or the recording of a part of it is over."""
        self._off = True
        self._listeners.clear()

    def _follows(self, source: str) -> bool:
        """Return whether ``source`` drives the clock after its current report."""
        if not self.hears(source):
            return False
        rank = _RANKS[source]
        if rank < self._driver:
            if not process.claimed():
                if not process.may_train() or process.inherited_owner():
                    self.turn_off()
                    return False
                process.claim()
            self._end(complete=False)
            self._driver = rank
        return True

    def _begin(self) -> None:
        self._running = True
        number = self._counts[SOURCES[self._driver]]
        for on_step, _ in tuple(self._listeners):
            on_step(number)

    def _end(self, *, complete: bool) -> None:
        if not self._running:
            return
        self._running = False
        number = self._counts[SOURCES[self._driver]]
        for _, on_end in reversed(tuple(self._listeners)):
            if on_end:
                on_end(number, complete)


class Leader:
    """Picks, among repeating things, the one whose repetition is the step.

    The first that is called leads. It loses the lead once it is deleted, or once others were called :data:`PATIENCE`
    times in a row without it: it was a peek at the data, an initialisation, or its loop is over.
    """

    PATIENCE = 8

    __slots__ = ("_leader", "_others", "_recording")

    def __init__(self) -> None:
        self._leader: Callable[[], object | None] = lambda: None
        self._others = 0
        self._recording = 0

    def leads(self, thing: object, reference: Callable[[], object | None]) -> bool:
        """Return whether ``thing``, which is called now, leads; ``reference()`` returns it, or ``None`` if deleted."""
        leader = self._leader() if self._recording == CLOCK.recording else None
        if leader is thing:
            self._others = 0
            return True
        self._others += 1
        if leader is not None and self._others < self.PATIENCE:
            return False
        self._leader = reference
        self._others = 0
        self._recording = CLOCK.recording
        return True

    def retire(self, thing: object) -> bool:
        """Retire ``thing``, which has come to its end; return whether it was the leader."""
        if self._leader() is not thing:
            return False
        self._leader = lambda: None
        return True


CLOCK = StepClock()
"""The step clock of this process."""

process.in_forked_child(CLOCK.turn_off)
