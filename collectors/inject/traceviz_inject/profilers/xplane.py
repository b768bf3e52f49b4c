"""Common base of the profilers of TensorFlow and JAX: both write XPlane files, and mark steps in the same way."""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import TYPE_CHECKING

from .. import hooks
from ..step_clock import CLOCK, DECLARED
from .window import Profiler, giving_way

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings
    from .window import Recorder

MARK = "train"
"""Name of the step marks; tools treat events of this name as training steps."""

HOST_LEVEL, PYTHON_LEVEL = 2, 0
"""Levels of the host's tracers. The Python tracer makes small steps several times slower."""


_EVENT_BYTES = 20
"""Approximate size of an event in these files: 18 bytes in TensorFlow 2.21, 21 in JAX 0.10."""


def events_in(size: int) -> int:
    """Return the approximate number of events in a recording of this many bytes."""
    return size // _EVENT_BYTES


class XplaneProfiler(Profiler):
    """A profiler that writes XPlane files, in which a step is an event with the stats ``step_num`` and ``_r``."""

    starter = ""
    """Function of the framework's module that starts it, for us and for the program."""

    def __init__(self, settings: Settings, module: ModuleType) -> None:
        super().__init__(settings, module)
        self._start = getattr(module, self.starter)

    def watch(self, module: ModuleType, recorder: Recorder) -> None:
        """Hook the program's start of the profiler, which stops our recording."""
        hooks.replace(module, self.starter, functools.partial(giving_way, recorder=recorder))

    def open_mark(self, number: int) -> Any:
        """Start an event that becomes a step mark if the step is completed."""
        mark = None if CLOCK.source in DECLARED else self.make_mark(number)
        if mark is not None:
            mark.__enter__()
        return mark

    @abstractmethod
    def make_mark(self, number: int) -> Any:
        """Return the event of a step; ``None`` if the framework cannot make one yet."""

    def close_mark(self, mark: Any, number: int, *, complete: bool) -> None:
        """End the event; its stat ``_r`` marks a step."""
        if complete and hasattr(mark, "set_metadata"):
            mark.set_metadata(step_num=number, _r=1)
        mark.__exit__(None, None, None)
