"""The JAX profiler, around the steps of the window."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from . import hooks, status
from .recorder import Profiler, Recorder
from .steps import CLOCK, DECLARED

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .config import Settings

PROFILER_MODULE = "jax._src.profiler"

MARK = "train"
"""Name of the step marks; tools take events of this name for training steps."""


def install(settings: Settings) -> None:
    """Wait for JAX."""
    recorders: list[Recorder] = []

    def attach(module: ModuleType) -> None:
        if not recorders:
            recorders.append(Recorder(JaxProfiler(settings, module), settings))
            recorders[0].attach()
        hooks.replace(module, "start_trace", functools.partial(_giving_way, recorder=recorders[0]))

    hooks.when_imported(PROFILER_MODULE, attach)


class JaxProfiler(Profiler):
    """``jax.profiler``, of the JAX that the program imported."""

    collector = "jax"
    framework = "jax"

    def __init__(self, settings: Settings, module: ModuleType) -> None:
        self._module = module
        self._start = module.start_trace
        self._annotation = module.TraceAnnotation
        self._traces_device = settings.traces_device(self.collector)

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
        self._start(folder, profiler_options=options)

    def is_ready(self) -> bool:
        """Not before the program has chosen its devices: starting the profiler would choose them."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        return bool(getattr(bridge, "backends_are_initialized", lambda: True)())

    def stop(self) -> None:
        """Stop and save, once the devices have finished what the recorded steps gave them to do."""
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


def _wait_for_devices() -> None:
    """Calls of jitted functions return before their work is done; every array that exists is waited for."""
    live_arrays = getattr(sys.modules.get("jax"), "live_arrays", tuple)
    for array in live_arrays():
        if not array.is_deleted():
            array.block_until_ready()


def _giving_way(start: Any, recorder: Recorder) -> Any:
    @functools.wraps(start)
    def started_by_the_program(*arguments: Any, **named: Any) -> Any:
        status.guarded(recorder.give_way)()
        return start(*arguments, **named)

    return started_by_the_program
