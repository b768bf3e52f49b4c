"""The TensorFlow profiler, around the steps of the window."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from .window import attach_once
from .xplane import HOST_LEVEL, MARK, PYTHON_LEVEL, XplaneProfiler, events_in

if TYPE_CHECKING:
    from typing import Any

    from ..config import Settings

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
        self._folder = folder
        self._start(folder, options)

    def stop(self) -> None:
        """Stop and save."""
        self._module.stop()

    def drop(self) -> int:
        """Stop and save; the size of the file shows how many events there are."""
        self._module.stop()
        names = [os.path.join(folder, name) for folder, _, files in os.walk(self._folder) for name in files]  # noqa: PTH118
        return events_in(sum(os.path.getsize(name) for name in names if name.endswith(".pb")))  # noqa: PTH202

    def make_mark(self, number: int) -> Any:  # noqa: ARG002 set at the end, once it is a step
        """Return a ``Trace``, once TensorFlow has imported its module."""
        trace = sys.modules.get(TRACE_MODULE)
        return None if trace is None else trace.Trace(MARK)
