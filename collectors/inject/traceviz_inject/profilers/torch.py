"""The torch profiler, around the steps of the window: a Kineto trace."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .. import hooks, process, status
from ..calls import call_before
from .window import NotYetError, Profiler, attach_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any, BinaryIO

    from ..config import Settings
    from .window import Recorder

AUTOGRAD_MODULE = "torch.autograd.profiler"

STEP = "ProfilerStep#"
"""Name of a step's mark: the same as in the torch profiler's own schedule, so that every tool knows it."""

SUFFIX = ".pt.trace.json"

_MARK = b"traceviz mark "
_MARKED = re.compile(_MARK + rb"(\d+)")
_NO_STEP = b"no complete step"
_PIECE = 1 << 20
_PATIENCE_S = 10.0
_EVENTS_WITH_DEVICE = 3
"""Events of an operator, its launch and its kernel."""


def install(settings: Settings) -> None:
    """Wait for the profiler's modules, which torch imports with itself."""
    attach_once(TorchProfiler, settings)


class TorchProfiler(Profiler):
    """``torch.profiler`` of the torch that the program imported.

    A mark must be named at the start of its step, before it is known whether the step will be complete. So marks are
    numbered first, and named when the trace is saved.
    """

    framework = "torch"
    module_name = "torch.profiler.profiler"

    def __init__(self, settings: Settings, module: ModuleType) -> None:
        super().__init__(settings, module)
        self._options = dict(settings.options.get(self.framework) or {})
        self._is_timed = settings.window.is_timed
        self._profile: Any = None
        self._folder = ""
        self._steps: list[int | None] = []
        self._others: set[int] = set()
        self._is_ours = False
        self._thread = 0

    def start(self, folder: str) -> None:
        """Start in the thread that trains: other threads' operators are not recorded."""
        if self._others:
            raise RuntimeError("another profile is being recorded already")
        self._folder, self._steps = folder, []
        in_main_thread(self._start, anyway=not self._is_timed)

    def _start(self) -> None:
        # A start by time may fall between any two instructions of the program, even within an import. The profiler
        # needs parts of torch that are only imported at their first use.
        parts = [module for name, module in tuple(sys.modules.items()) if name.startswith("torch")]
        if self._is_timed and any(getattr(getattr(part, "__spec__", None), "_initializing", False) for part in parts):
            raise NotYetError
        self._is_ours = True
        self._thread = threading.get_ident()
        try:
            self._profile = self._module.profile(
                activities=self._activities(),
                record_shapes=bool(self._options.get("record_shapes")),
                profile_memory=bool(self._options.get("profile_memory")),
                with_stack=bool(self._options.get("with_stack")),
                **self._all_threads(),
            )
            with _without_inductor():
                self._profile.start()
        except BaseException:
            self._profile = None
            raise
        finally:
            self._is_ours = False

    def stop(self) -> None:
        """Stop and save. The recording is on disk, with unnamed marks, before these are named.

        It is compressed once the program has ended: that takes as long as all other steps.
        """
        self._end()
        os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103 pathlib costs start-up time
        output = os.path.join(self._folder, os.path.basename(self._folder) + SUFFIX)  # noqa: PTH118, PTH119
        self._profile.export_chrome_trace(output)
        self._profile = None
        with open(output, "rb") as source, open(f"{output}.part", "wb") as target:  # noqa: PTH123
            copy_named(source, target, self._steps)
        os.replace(f"{output}.part", output)  # noqa: PTH105

    def drop(self) -> int:
        """Stop, and count the events of the profiler's result; a device adds a launch and a kernel to an operator."""
        self._end()
        results = self._profile.profiler.kineto_results
        self._profile = None
        return len(results.events()) * (_EVENTS_WITH_DEVICE if len(self._activities()) > 1 else 1)

    def can_stop_here(self) -> bool:
        """Return whether this thread can stop it: it stops in its own thread; only the main thread takes requests."""
        return self._thread in (threading.get_ident(), threading.main_thread().ident)

    def _end(self) -> None:
        here = not self.can_stop_here() or self._thread == threading.get_ident()
        in_main_thread(self._profile.stop, anyway=here, patience_s=_PATIENCE_S if self._is_timed else None)

    def open_mark(self, number: int) -> Any:  # noqa: ARG002 set at the end, once it is a step
        """Start the range of a step on this thread."""
        mark = sys.modules[AUTOGRAD_MODULE].record_function(_MARK.decode() + str(len(self._steps)))
        self._steps.append(None)
        mark.__enter__()
        return mark

    def close_mark(self, mark: Any, number: int, *, complete: bool) -> None:
        """End the range of a step."""
        mark.__exit__(None, None, None)
        if complete:
            self._steps[-1] = number

    def watch(self, module: ModuleType, recorder: Recorder) -> None:  # noqa: ARG002 the hooks are elsewhere
        """Wait for the module that starts the program's own recordings."""
        hooks.when_imported(AUTOGRAD_MODULE, functools.partial(self._watch_autograd, recorder=recorder))

    def _watch_autograd(self, module: ModuleType, recorder: Recorder) -> None:
        """Stop recording if the program records itself, before its profiler finds ours running."""
        hooks.replace(module.profile, "_prepare_trace", functools.partial(self._giving_way, recorder=recorder))
        hooks.replace(module.profile, "__exit__", call_before(lambda profile, *_: self._others.discard(id(profile))))

    def _giving_way(self, prepare: Any, recorder: Recorder) -> Any:
        @functools.wraps(prepare)
        def prepared_by_the_program(profile: Any) -> Any:
            if not self._is_ours and process.may_train():
                status.guarded(recorder.give_way)()
                self._others.add(id(profile))
            return prepare(profile)

        return prepared_by_the_program

    def _activities(self) -> list[Any]:
        """Return the CPU's operators, and the GPU's work if no other collector traces it."""
        activity = self._module.ProfilerActivity
        able = self._module.supported_activities()
        useful = [activity.CPU, *([activity.CUDA, activity.XPU] if self._traces_device else [])]
        return [kind for kind in useful if kind in able]

    def _all_threads(self) -> dict[str, Any]:
        """Return the option to record all threads, if torch has it: by time, the thread that trains is unknown."""
        make = getattr(self._module, "_ExperimentalConfig", None)
        if not self._is_timed or make is None:
            return {}
        try:
            return {"experimental_config": make(profile_all_threads=True)}
        except TypeError:  # an older torch
            return {}


@contextmanager
def _without_inductor() -> Iterator[None]:
    """Keep the profiler from importing the compiler in a program that does not compile.

    It reads ``_inductor`` of torch, which imports 800 modules in one to two seconds of processor time.
    """
    lazy, name = getattr(sys.modules.get("torch"), "_lazy_modules", None), "_inductor"
    if not isinstance(lazy, set) or name not in lazy or f"torch.{name}" in sys.modules:
        yield
        return
    lazy.discard(name)
    try:
        yield
    finally:
        lazy.add(name)


def copy_named(source: BinaryIO, target: Any, steps: list[int | None]) -> None:
    """Copy a trace; mark ``n`` becomes the step ``steps[n]``, or a label for no complete step."""

    def name(match: re.Match[bytes]) -> bytes:
        serial = int(match[1])
        step = steps[serial] if serial < len(steps) else None
        return _NO_STEP if step is None else f"{STEP}{step}".encode()

    while piece := source.read(_PIECE):
        piece += source.readline()  # so that no mark is cut
        target.write(_MARKED.sub(name, piece))


_PendingCall = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def in_main_thread(function: Callable[[], None], *, anyway: bool, patience_s: float | None = _PATIENCE_S) -> None:
    """Call ``function`` in the main thread, between two of its instructions, and wait for it.

    Args:
        function: The function; its exception is raised here.
        anyway: Call it in this thread instead. That is also done if the main thread does not answer: it may be waiting.
        patience_s: How long to wait for its answer; ``None`` for as long as it takes.
    """
    if anyway or threading.current_thread() is threading.main_thread():
        function()
        return
    begun, ended = threading.Lock(), threading.Event()
    failures: list[BaseException] = []

    def pending(_: Any) -> int:
        if begun.acquire(blocking=False):
            try:
                function()
            except Exception as error:  # noqa: BLE001 raised in the thread that asked
                failures.append(error)
            ended.set()
        return 0

    call = _PendingCall(pending)
    _KEPT.append(call)
    ctypes.pythonapi.Py_AddPendingCall(call, None)
    if not ended.wait(patience_s) and begun.acquire(blocking=False):
        function()
        return
    ended.wait()
    if failures:
        raise failures[0]


_KEPT: list[Any] = []
"""Functions that the interpreter may still call."""
