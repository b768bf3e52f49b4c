"""The JAX profiler, around the steps of the window."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from .. import status
from ..phases.step_parts import INPUT, PARTS
from ..steps.jax import IN_FLIGHT
from .window import attach_once
from .xplane import HOST_LEVEL, MARK, PYTHON_LEVEL, XplaneProfiler, events_in

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings


def install(settings: Settings) -> None:
    """Wait for JAX."""
    attach_once(JaxProfiler, settings)


class JaxProfiler(XplaneProfiler):
    """``jax.profiler``, of the JAX that the program imported."""

    framework = "jax"
    module_name = "jax._src.profiler"
    starter = "start_trace"

    def __init__(self, settings: Settings, module: ModuleType) -> None:
        super().__init__(settings, module)
        self._annotation = module.TraceAnnotation
        self._inputs = _Inputs(module.TraceAnnotation)
        self._is_listening = False
        self._folder = ""

    def start(self, folder: str) -> None:
        """Start without the Python tracer, which JAX enables by default."""
        options = self._module.ProfileOptions()
        levels = {"host_tracer_level": HOST_LEVEL, "python_tracer_level": PYTHON_LEVEL}
        if not self._traces_device:
            levels["device_tracer_level"] = 0
        for option, level in levels.items():
            if hasattr(options, option):
                setattr(options, option, level)
        status.guarded(_wait_for_devices)()  # remaining work of earlier steps is not part of this window
        self._folder = folder
        self._start(folder, profiler_options=options)
        IN_FLIGHT.limit()
        if not self._is_listening:
            self._is_listening = True
            PARTS.listen(self._inputs.begin, self._inputs.end, _ignore_epoch, _ignore_epoch)

    def stop(self) -> None:
        """Stop and save, once the devices have finished the work of the recorded steps."""
        data = self._take()
        if data is None:
            self._module.stop_trace()
            return
        folder = os.path.join(self._folder, "plugins", "profile", "capture")  # noqa: PTH118
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        with open(os.path.join(folder, "host.xplane.pb"), "wb") as file:  # noqa: PTH118, PTH123
            file.write(data)

    def drop(self) -> int:
        """Stop; the size of the recording shows how many events there are."""
        data = self._take()
        if data is None:
            self._module.stop_trace()
        return events_in(len(data or b""))

    def _take(self) -> bytes | None:
        """Stop and return the recording; ``None`` if this JAX does not offer that, and still records.

        ``stop_trace`` also writes it as JSON, which takes ten times as long.
        """
        IN_FLIGHT.lift()
        status.guarded(_wait_for_devices)()
        state = getattr(self._module, "_profile_state", None)
        stop = getattr(getattr(state, "profile_session", None), "stop", None)
        if state is None or stop is None or not hasattr(state, "lock") or not hasattr(state, "reset"):
            return None
        with state.lock:
            data: bytes = stop()
            state.reset()
        getattr(self._module, "clear_metadata", _ignore_epoch)()
        return data

    def make_mark(self, number: int) -> Any:
        """Return an annotation; under an older JAX, a step mark from its start on."""
        metadata = {} if hasattr(self._annotation, "set_metadata") else {"step_num": number, "_r": 1}
        return self._annotation(MARK, **metadata)


class _Inputs:
    """Events around the taking of a batch."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._of_thread = threading.local()

    def begin(self, part: str) -> None:
        """Start a part of the loop on this thread."""
        if part == INPUT:
            self._of_thread.event = self._annotation(INPUT)
            self._of_thread.event.__enter__()

    def end(self, part: str) -> None:
        """End it, unless it had started before there were listeners."""
        event = self._of_thread.__dict__.pop("event", None) if part == INPUT else None
        if event is not None:
            event.__exit__(None, None, None)


def _ignore_epoch(*_: object) -> None:
    """Ignore epochs, which need no event."""


def _wait_for_devices() -> None:
    """Wait for every existing array: calls of jitted functions return before their work is done."""
    live_arrays = getattr(sys.modules.get("jax"), "live_arrays", tuple)
    for array in live_arrays():
        if not array.is_deleted():
            array.block_until_ready()
