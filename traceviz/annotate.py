"""Annotations of a program's own work: ranges for every profiler that is recording, and figures of quality.

>>> import traceviz
>>> for number, batch in enumerate(batches):
...     with traceviz.step_range(number):
...         with traceviz.record("data loading"):
...             ready = prepare(batch)
...         train(ready)

A range goes to NVTX if a tool receives it, and to the profilers of TensorFlow, JAX and PyTorch that the program has
imported and that are recording. Without a recording, a range costs about one microsecond.
Ranges are for code that runs in Python: within a function that is traced or compiled (``tf.function``, ``jax.jit``,
``torch.compile``) they would show the tracing.

A range starts and ends on one thread, and the innermost ends first, as with ``with``. Around an ``await`` or a
``yield``, other code may start ranges on the same thread, and profilers would show these inside it.

It uses the standard library only, so training programs can import it at low cost.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any, ParamSpec, Self, TypeVar

DOMAIN = "program"
"""NVTX domain of these ranges; ranges of ``traceviz collect`` itself have another."""

STEP = "step"
"""Name of a step for profilers that store its number separately."""

_CLIENTS = ("traceviz_inject.profilers.nvtx_client", "traceviz.collectors.inject.traceviz_inject.profilers.nvtx_client")
"""Our NVTX client: the copy that ``traceviz collect`` gave this program, or the installed one."""

_INJECTION = "NVTX_INJECTION64_PATH" if sys.maxsize > 1 << 32 else "NVTX_INJECTION32_PATH"
_HAS_TOOL = _INJECTION in os.environ
"""True if a tool may receive NVTX ranges. It is set before the program starts; a look-up per range would be slow."""

_CLOCK = "traceviz_inject.step_clock"
"""The module that counts steps in a program run by ``traceviz collect``."""
_RECORDING = "traceviz_inject.stacks.recording"
"""The module that receives figures of quality there."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Mark = AbstractContextManager[Any]


def record(name: str) -> Range:
    """Return a range called ``name``, as a context manager or a decorator.

    The report understands names such as ``data loading``, ``forward``, ``backward``, ``optimizer``. Do not put numbers
    into names: every range would count as a different one.
    """
    return Range(name)


def step_range(number: int) -> Range:
    """Return the range of training step ``number``, which the report breaks down and averages over.

    It may enclose the fetch of the batch, which then counts as part of the step. If a ``torch.profiler`` with a
    schedule records, leave the steps to its own ``step()``.
    """
    return Range(STEP, number)


def step(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make every call of ``function`` one training step, counted from 0. An ``async`` call ends with its coroutine.

    Raises:
        TypeError: ``function`` is a generator, whose call does no work.
    """
    numbers = itertools.count()
    return _within(lambda: step_range(next(numbers)), function)


def metric(name: str, value: Any, step: int | None = None) -> None:
    """Record a figure of quality, such as a loss or an accuracy: reports and comparisons show it next to the speed.

    >>> traceviz.metric("val_accuracy", correct / count, step=number)

    Nothing happens unless ``traceviz collect`` records the program. If it does, ``value`` is converted to a number,
    which
    waits for a tensor on a device. So call it once per epoch, or every so many steps.

    Args:
        name: Name of the figure, the same every time. Names with ``loss`` or ``accuracy`` in them have a direction; a
            prefix ``train``, ``val`` or ``test`` names the data set.
        value: A number, or an object that ``float`` converts.
        step: Training step that it belongs to.
    """
    recording: Any = sys.modules.get(_RECORDING)
    if recording is not None:
        recording.note_metric(name, value, step)


_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200
"""Flags of code, the same as ``inspect.CO_*``: importing that module takes longer than importing this one."""


def _within(make: Callable[[], Range], function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return ``function`` with its own range around each call.

    Raises:
        TypeError: ``function`` is a generator.
    """
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & (_GENERATOR | _ASYNC_GENERATOR):
        raise TypeError(
            f"{getattr(function, '__name__', function)} is a generator, and calling one does no work: "
            "put `with traceviz.record(...)` around the work in it."
        )
    called: Any

    if flags & _COROUTINE:

        @functools.wraps(function)
        async def called(*arguments: Any, **named: Any) -> Any:
            with make():
                return await function(*arguments, **named)  # type: ignore[misc]  # it is a coroutine function

    else:

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            with make():
                return function(*arguments, **named)

    wrapped: Callable[Arguments, Result] = called
    return wrapped


class Range:
    """A range in every active recording. A context manager is used once; a decorator, by every call."""

    __slots__ = ("_marks", "_name", "_number")

    def __init__(self, name: str, number: int | None = None) -> None:
        self._name = name
        self._number = number
        self._marks: tuple[Mark, ...] = ()

    def __call__(self, function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        """Return ``function`` with its own range around each call, also around recursive ones.

        Raises:
            TypeError: ``function`` is a generator, whose call does no work.
        """
        return _within(lambda: Range(self._name, self._number), function)

    def __enter__(self) -> Self:
        if _HAS_TOOL or not _FACTORIES.keys().isdisjoint(
            sys.modules.keys()
        ):  # with a dict it would look at each module
            try:
                # NVTX is last, because others may move the step clock.
                factories = [make for module, make in _FACTORIES.items() if module in sys.modules]
                for make in [*factories, _nvtx] if _HAS_TOOL else factories:
                    mark = make(self._name, self._number)
                    if mark is not None:
                        mark.__enter__()
                        self._marks = (mark, *self._marks)
            except BaseException:  # Ctrl-C may come in between, and `with` ends only what has started
                self.__exit__(*sys.exc_info())
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._marks:
            marks, self._marks = self._marks, ()
            for mark in marks:
                mark.__exit__(kind, raised, trace)


MarkFactory = Callable[[str, int | None], Mark | None]


def _tensorflow(name: str, number: int | None) -> Mark | None:
    trace: Any = sys.modules["tensorflow.python.profiler.trace"]
    if not (_moves_the_clock(number) or _answers_yes(trace, "enabled")):
        return None
    # `_r` marks the root of a step.
    made: Mark = trace.Trace(name) if number is None else trace.Trace(name, step_num=number, _r=1)
    return made


def _jax(name: str, number: int | None) -> Mark | None:
    profiler: Any = sys.modules["jax._src.profiler"]
    if not (_moves_the_clock(number) or _answers_yes(getattr(profiler, "TraceAnnotation", None), "is_enabled")):
        return None
    made: Mark = (
        profiler.TraceAnnotation(name) if number is None else profiler.StepTraceAnnotation(name, step_num=number)
    )
    return made


def _torch(name: str, number: int | None) -> Mark | None:
    profiler: Any = sys.modules["torch.autograd.profiler"]
    if not getattr(profiler, "_is_profiler_enabled", True):
        return None
    if number is None:
        made: Mark = profiler.record_function(name)
        return made
    # The hooks of `traceviz collect` mark the steps of torch themselves.
    return None if _CLOCK in sys.modules else profiler.record_function(f"ProfilerStep#{number}")


def _noted(name: str, number: int | None) -> Mark | None:  # noqa: ARG001 all factories have one signature
    """Return a mark for a step of a program without a framework; hooks mark the steps of frameworks themselves."""
    if number is None or not _FRAMEWORKS.isdisjoint(sys.modules.keys()):
        return None
    recording: Any = sys.modules[_RECORDING]
    made: Mark = recording.ProgramStep()
    return made


_FRAMEWORKS = frozenset({"jax", "keras", "mxnet", "paddle", "tensorflow", "tf_keras", "torch"})

_FACTORIES: dict[str, MarkFactory] = {
    "jax._src.profiler": _jax,
    "tensorflow.python.profiler.trace": _tensorflow,
    "torch.autograd.profiler": _torch,
    _RECORDING: _noted,
}
"""Factories by the module with a framework's annotations, which is loaded once the framework was imported.

The last is for programs whose stacks ``traceviz collect`` samples.
"""


def _moves_the_clock(number: int | None) -> bool:
    """Return whether a step must be marked before anything records: recording starts at a step."""
    return number is not None and _CLOCK in sys.modules


def _answers_yes(owner: Any, question: str) -> bool:
    """Ask a profiler; without an answer it counts as recording."""
    ask = getattr(owner, question, None)
    return bool(ask()) if ask is not None else True


class _Pushed:
    """An NVTX range of the calling thread."""

    __slots__ = ("_domain", "_name")

    def __init__(self, domain: Any, name: str) -> None:
        self._domain = domain
        self._name = name

    def __enter__(self) -> None:
        self._domain.push(self._name)

    def __exit__(self, *raised: object) -> None:
        self._domain.pop()


def _nvtx(name: str, number: int | None) -> Mark | None:
    domain = _domain()
    if domain is None or (number is not None and _is_marked()):
        return None
    return _Pushed(domain, name if number is None else f"{name} {number}")


def _is_marked() -> bool:
    """Return whether hooks of ``traceviz collect`` already put a range around this step."""
    steps: Any = sys.modules.get(_CLOCK)
    return steps is not None and "traceviz_inject.profilers.nvtx_ranges" in sys.modules and steps.CLOCK.step is not None


@functools.cache
def _domain() -> Any:
    """Return the domain in the tool that receives NVTX ranges; ``None`` if there is no such tool."""
    client = _client()
    if client is None:
        return None
    try:
        return client.open_domain(DOMAIN)
    except client.NvtxError:
        return None


def _client() -> Any:
    for name in _CLIENTS:
        try:
            module: ModuleType = import_module(name)
        except ImportError:
            continue
        return module
    return None
