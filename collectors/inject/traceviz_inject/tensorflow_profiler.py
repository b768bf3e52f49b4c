"""The TensorFlow profiler, around the steps of the window."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .recorder import attach_once
from .xplane_profiler import HOST_LEVEL, MARK, PYTHON_LEVEL, XplaneProfiler

if TYPE_CHECKING:
    from typing import Any

    from .config import Settings

TRACE_MODULE = "tensorflow.python.profiler.trace"


def install(settings: Settings) -> None:
    """Wait for TensorFlow."""
    attach_once(TensorFlowProfiler, settings)


class TensorFlowProfiler(XplaneProfiler):
    """``tf.profiler.experimental``, of the TensorFlow that the program imported."""

    framework = "tensorflow"
    module_name = "tensorflow.python.profiler.profiler_v2"
    starter = "start"

    def start(self, folder: str) -> None:
        """Start without the Python tracer."""
        options = self._module.ProfilerOptions(
            host_tracer_level=HOST_LEVEL,
            python_tracer_level=PYTHON_LEVEL,
            device_tracer_level=int(self._traces_device),
        )
        self._start(folder, options)

    def stop(self) -> None:
        """Stop and save."""
        self._module.stop()

    def make_mark(self, number: int) -> Any:  # noqa: ARG002 set at the end, once it is a step
        """A ``Trace``, once TensorFlow has imported its module."""
        trace = sys.modules.get(TRACE_MODULE)
        return None if trace is None else trace.Trace(MARK)
