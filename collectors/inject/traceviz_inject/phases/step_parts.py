"""Parts of a training loop as hooks see them: taking a batch, forward, backward, optimizer, epochs.

Hooks in frameworks announce the start and end of a part to the listeners that make ranges; never in a process that does
not train.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from .. import process
from ..status import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

INPUT, FORWARD, BACKWARD, OPTIMIZER, COMPUTE = "data loading", "forward", "backward", "optimizer", "compute"
"""Parts of a step. They are nested or separate, and never overlap partially. ``compute`` is the whole of a batch's work
if a framework shows no finer parts."""

NAMES = (INPUT, FORWARD, BACKWARD, OPTIMIZER, COMPUTE)

_UNHEARD = nullcontext()
"""Context around a part without listeners: programs pay for the hooks at every step, recorded or not."""


class Parts:
    """Announces the start and end of parts and epochs."""

    __slots__ = ("_epochs", "_innermost", "_listeners", "epoch")

    def __init__(self) -> None:
        self._listeners: list[tuple[Callable[[str], None], Callable[[str], None]]] = []
        self._epochs: list[tuple[Callable[[int], None], Callable[[], None]]] = []
        self._innermost = threading.local()
        self.epoch: int = -1
        """Number of the epoch in progress, or of the last one; -1 before the first."""

    def listen(
        self,
        begin: Callable[[str], None],
        end: Callable[[str], None],
        epoch_begin: Callable[[int], None],
        epoch_end: Callable[[], None],
    ) -> None:
        """Have these called at the start and end of a part (with its name) and of an epoch (with its number)."""
        self._listeners.append((guarded(begin), guarded(end)))
        self._epochs.append((guarded(epoch_begin), guarded(epoch_end)))

    @property
    def is_heard(self) -> bool:
        """True if there are listeners."""
        return bool(self._listeners)

    def part(self, name: str) -> AbstractContextManager[None]:
        """Return a context whose body is the part ``name``, which ends in any case.

        A part directly within itself is the same part: Keras takes its batches from tf.data.
        """
        around = getattr(self._innermost, "part", None)
        if not self._listeners or name == around or not process.claimed():
            return _UNHEARD
        return self._heard(name, around)

    @contextmanager
    def _heard(self, name: str, around: str | None) -> Iterator[None]:
        self._innermost.part = name
        for begin, _ in self._listeners:
            begin(name)
        try:
            yield
        finally:
            self._innermost.part = around
            for _, end in reversed(self._listeners):
                end(name)

    def epoch_begins(self) -> None:
        """Start the next epoch; the previous one has ended, announced or not."""
        self.epoch += 1
        if process.claimed():
            for begin, _ in self._epochs:
                begin(self.epoch)

    def epoch_ends(self) -> None:
        """End the epoch in progress."""
        for _, end in self._epochs:
            end()

    def turn_off(self) -> None:
        """Drop all listeners, because this process does not train."""
        self._listeners.clear()
        self._epochs.clear()


PARTS = Parts()
"""The parts of this process's loop."""

process.in_forked_child(PARTS.turn_off)
