"""Parts of a training loop as hooks see them: taking a batch, forward, backward, optimizer, epochs.

Hooks in frameworks announce where a part begins and ends to whoever makes ranges of them; never in a process that does
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
"""Parts of a step. They lie in each other or apart, never across; ``compute`` is the whole of a batch's work where a
framework does not show more."""

NAMES = (INPUT, FORWARD, BACKWARD, OPTIMIZER, COMPUTE)

_UNHEARD = nullcontext()
"""Around a part that nobody listens to: programs pay for the hooks at every step, recorded or not."""


class Parts:
    """Announces where parts and epochs begin and end."""

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
        """Have these called where a part begins and ends (with its name), and where an epoch does (with its number)."""
        self._listeners.append((guarded(begin), guarded(end)))
        self._epochs.append((guarded(epoch_begin), guarded(epoch_end)))

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def part(self, name: str) -> AbstractContextManager[None]:
        """The body is the part ``name``, and ends however it ends.

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
        """The next epoch begins; the one before it has ended, whether that was announced or not."""
        self.epoch += 1
        if process.claimed():
            for begin, _ in self._epochs:
                begin(self.epoch)

    def epoch_ends(self) -> None:
        """The epoch in progress has ended."""
        for _, end in self._epochs:
            end()

    def turn_off(self) -> None:
        """This process turned out not to train."""
        self._listeners.clear()
        self._epochs.clear()


PARTS = Parts()
"""The parts of this process's loop."""

process.in_forked_child(PARTS.turn_off)
