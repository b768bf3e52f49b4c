"""The TensorFlow profiler, around the steps of the window."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from . import hooks
from .recorder import Profiler, attach_once, giving_way
from .steps import CLOCK, DECLARED

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .config import Settings
    from .recorder import Recorder

PROFILER_MODULE = "tensorflow.python.profiler.profiler_v2"
TRACE_MODULE = "tensorflow.python.profiler.trace"

MARK = "train"
"""Name of the step marks; tools take events of this name for training steps."""


def install(settings: Settings) -> None:
    """Wait for TensorFlow."""

    def watch(module: ModuleType, recorder: Recorder) -> None:
        hooks.replace(module, "start", functools.partial(giving_way, recorder=recorder))

    attach_once(PROFILER_MODULE, settings, functools.partial(TensorFlowProfiler, settings), watch)


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
