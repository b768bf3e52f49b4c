"""The JAX profiler, around the steps of the window."""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING

from . import hooks, status
from .jax_calls import IN_FLIGHT
from .loops import INPUT, PARTS_OF_LOOP
from .recorder import Profiler, attach_once, giving_way
from .steps import CLOCK, DECLARED

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .config import Settings
    from .recorder import Recorder

PROFILER_MODULE = "jax._src.profiler"

MARK = "train"
"""Name of the step marks; tools take events of this name for training steps."""


def install(settings: Settings) -> None:
    """Wait for JAX."""

    def watch(module: ModuleType, recorder: Recorder) -> None:
        hooks.replace(module, "start_trace", functools.partial(giving_way, recorder=recorder))

    attach_once(PROFILER_MODULE, settings, functools.partial(JaxProfiler, settings), watch)


class JaxProfiler(Profiler):
    """``jax.profiler``, of the JAX that the program imported."""

    collector = "jax"
    framework = "jax"

    def __init__(self, settings: Settings, module: ModuleType) -> None:
        self._module = module
        self._start = module.start_trace
        self._annotation = module.TraceAnnotation
        self._traces_device = settings.traces_device(self.collector)
        self._inputs = _Inputs(module.TraceAnnotation)

    def version(self) -> str | None:
        """``jax.__version__``."""
        return getattr(sys.modules.get("jax"), "__version__", None)

    def start(self, folder: str) -> None:
        """Start without the Python tracer, which JAX switches on unless told otherwise."""
        options = self._module.ProfileOptions()
        wanted = {"host_tracer_level": 2, "python_tracer_level": 0}
        if not self._traces_device:
            wanted["device_tracer_level"] = 0
        for option, level in wanted.items():
            if hasattr(options, option):
                setattr(options, option, level)
        status.guarded(_wait_for_devices)()  # what earlier steps left to do is none of this window's work
        self._start(folder, profiler_options=options)
        IN_FLIGHT.limit()
        PARTS_OF_LOOP.listen(self._inputs.begin, self._inputs.end, _nothing, _nothing)

    def stop(self) -> None:
        """Stop and save, once the devices have finished what the recorded steps gave them to do."""
        IN_FLIGHT.lift()
        status.guarded(_wait_for_devices)()
        self._module.stop_trace()

    def open_mark(self, number: int) -> Any:
        """Begin an event that becomes a step mark once the step is completed; at once under an older JAX."""
        if CLOCK.source in DECLARED:
            return None
        told_at_once = {} if hasattr(self._annotation, "set_metadata") else {"step_num": number, "_r": 1}
        mark = self._annotation(MARK, **told_at_once)
        mark.__enter__()
        return mark

    def close_mark(self, mark: Any, number: int, *, complete: bool) -> None:
        """End the event; what makes it a step mark is the stat ``_r``."""
        if complete and hasattr(mark, "set_metadata"):
            mark.set_metadata(step_num=number, _r=1)
        mark.__exit__(None, None, None)


class _Inputs:
    """Events around the taking of a batch."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._of_thread = threading.local()

    def begin(self, part: str) -> None:
        """A part of the loop begins on this thread."""
        if part == INPUT:
            self._of_thread.event = self._annotation(INPUT)
            self._of_thread.event.__enter__()

    def end(self, part: str) -> None:
        """It ends, unless it had begun before anybody listened."""
        event = self._of_thread.__dict__.pop("event", None) if part == INPUT else None
        if event is not None:
            event.__exit__(None, None, None)


def _nothing(*_: object) -> None:
    """Epochs need no event."""


def _wait_for_devices() -> None:
    """Calls of jitted functions return before their work is done; every array that exists is waited for."""
    live_arrays = getattr(sys.modules.get("jax"), "live_arrays", tuple)
    for array in live_arrays():
        if not array.is_deleted():
            array.block_until_ready()
