"""The TensorFlow profiler, around the steps of the window."""

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

PROFILER_MODULE = "tensorflow.python.profiler.profiler_v2"
TRACE_MODULE = "tensorflow.python.profiler.trace"

MARK = "train"
"""Name of the step marks; tools take events of this name for training steps."""


def install(settings: Settings) -> None:
    """Wait for TensorFlow."""
    recorders: list[Recorder] = []

    def attach(module: ModuleType) -> None:
        if not recorders:
            recorders.append(Recorder(TensorFlowProfiler(settings, module), settings))
            recorders[0].attach()
        hooks.replace(module, "start", functools.partial(_giving_way, recorder=recorders[0]))

    hooks.when_imported(PROFILER_MODULE, attach)


class TensorFlowProfiler(Profiler):
    """``tf.profiler.experimental``, of the TensorFlow that the program imported."""

    collector = "tensorflow"
    framework = "tensorflow"

    def __init__(self, settings: Settings, module: ModuleType) -> None:
        self._module = module
        self._start = module.start
        self._traces_device = settings.traces_device(self.collector)

    def version(self) -> str | None:
        """``tf.__version__``."""
        return getattr(sys.modules.get("tensorflow"), "__version__", None)

    def start(self, folder: str) -> None:
        """Start without the Python tracer, which makes small steps several times slower."""
        self._start(
            folder,
            self._module.ProfilerOptions(
                host_tracer_level=2, python_tracer_level=0, device_tracer_level=int(self._traces_device)
            ),
        )

    def is_ready(self) -> bool:
        """Not while TensorFlow is still being imported."""
        spec = getattr(sys.modules.get("tensorflow"), "__spec__", None)
        return not getattr(spec, "_initializing", False)

    def stop(self) -> None:
        """Stop and save."""
        self._module.stop()

    def open_mark(self, number: int) -> Any:  # noqa: ARG002 the number is told at the end, when it is known to be a step
        """Begin an event that becomes a step mark if the step is completed."""
        trace = sys.modules.get(TRACE_MODULE)
        return None if trace is None or CLOCK.source in DECLARED else trace.Trace(MARK)

    def close_mark(self, mark: Any, number: int, *, complete: bool) -> None:
        """End the event; what makes it a step mark is the stat ``_r``."""
        if complete:
            mark.set_metadata(step_num=number, _r=1)
        mark.__exit__(None, None, None)


def _giving_way(start: Any, recorder: Recorder) -> Any:
    @functools.wraps(start)
    def started_by_the_program(*arguments: Any, **named: Any) -> Any:
        status.guarded(recorder.give_way)()
        return start(*arguments, **named)

    return started_by_the_program
