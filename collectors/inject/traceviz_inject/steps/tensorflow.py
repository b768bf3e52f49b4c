"""Steps of custom TensorFlow loops: ``for batch in dataset: train_step(batch)``.

A step starts when the program asks for a batch, and ends when it asks for the next one: the wait for data is its first
part. Of several iterators in use, the one that leads is the loop's (see ``step_clock.Leader``). Loops over a dataset
within a ``tf.function`` run in the graph, invisible to Python. If a program takes its batches from elsewhere, a step
lasts from the end of one call of the ``tf.function`` that repeats to the end of the next.
"""

from __future__ import annotations

import functools
import sys
import time
import weakref
from typing import TYPE_CHECKING

from .. import hooks
from ..calls import call_after
from ..facts import training
from ..phases.run_phases import EPOCH, tell
from ..stacks.recording import note_fact
from ..status import guarded
from ..step_clock import CLOCK, Leader

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..config import Settings

ITERATORS = {
    "tensorflow.python.data.ops.iterator_ops": "OwnedIterator",
    "tensorflow.python.distribute.input_lib": "DistributedIteratorBase",
}
"""Module -> class whose ``__next__`` returns the next batch."""

TRACE_MODULE = "tensorflow.python.profiler.trace"
FUNCTION_MODULE = "tensorflow.python.eager.polymorphic_function.polymorphic_function"

_FEWEST = 2
"""A pass of fewer batches is a peek at the data."""


class _Passes:
    """Passes over the data set that was used first: each is an epoch. Other data sets are for evaluation."""

    def __init__(self) -> None:
        self._begun: tuple[Any, int, int] | None = None
        self._trains: Callable[[], Any] | None = None
        self._count = 0

    def begin(self, iterator: Any) -> None:
        """Start a pass with the first batch of ``iterator``, or with the next one after another iterator was used."""
        if CLOCK.source == SOURCE and (self._begun is None or self._begun[0]() is not iterator):
            self._begun = weakref.ref(iterator), time.monotonic_ns(), CLOCK.steps_seen
            size = training.of_dataset(getattr(iterator, "_dataset", None))
            if size and self._trains is None:
                note_fact(training.BATCH, size)

    def end(self, iterator: Any) -> None:
        """End a pass: ``iterator`` has no more batches."""
        begun, self._begun = self._begun, None
        dataset = getattr(iterator, "_dataset", None)
        if begun is None or begun[0]() is not iterator or dataset is None or CLOCK.source != SOURCE:
            return
        if self._trains is None and CLOCK.steps_seen - begun[2] >= _FEWEST:
            self._trains = weakref.ref(dataset)
        if self._trains is not None and self._trains() is dataset:
            tell(EPOCH, "tf.data", begun[1], time.monotonic_ns(), self._count)
            self._count += 1


SOURCE = "tf_iterator"
_PASSES = _Passes()
_begin_pass, _end_pass = guarded(_PASSES.begin), guarded(_PASSES.end)
_LEADER = Leader()
_LEADING_FUNCTION = Leader()


def install(settings: Settings) -> None:  # noqa: ARG001 all step sources have one signature
    """Wait for TensorFlow."""
    for module in ITERATORS:
        hooks.when_imported(module, _hook_iterator)
    hooks.when_imported(TRACE_MODULE, _hook_trace)
    hooks.when_imported(FUNCTION_MODULE, _hook_function)


def _hook_iterator(module: ModuleType) -> None:
    hooks.replace(getattr(module, ITERATORS[module.__name__]), "__next__", _counting)


def _tells_eager() -> Callable[[], bool]:
    """Return TensorFlow's function that decides whether Python runs eagerly now, or a function is being traced."""
    context = sys.modules.get("tensorflow.python.eager.context")
    answer: Callable[[], bool] = getattr(context, "executing_eagerly", lambda: True)
    return answer


def _counting(following: Any) -> Any:
    executing_eagerly = _tells_eager()

    @functools.wraps(following)
    def counted(self: Any) -> Any:
        if not executing_eagerly() or not _LEADER.leads(self, weakref.ref(self)):
            return following(self)
        # The program asks for the next step: the step in progress, if there is one, has ended.
        if CLOCK.source == SOURCE and CLOCK.step is not None:
            CLOCK.boundary(SOURCE)
        else:
            CLOCK.begin(SOURCE)
            _begin_pass(self)
        try:
            return following(self)
        except StopIteration:
            _LEADER.retire(self)
            CLOCK.pause(SOURCE)
            _end_pass(self)
            raise

    return counted


def _hook_function(module: ModuleType) -> None:
    hooks.replace(module.Function, "__call__", _counting_calls)


def _counting_calls(call: Any) -> Any:
    executing_eagerly = _tells_eager()

    @functools.wraps(call)
    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        if not executing_eagerly() or not _LEADING_FUNCTION.leads(self, weakref.ref(self)):
            return call(self, *arguments, **named)
        CLOCK.begin("tf_call")
        try:
            return call(self, *arguments, **named)
        finally:
            CLOCK.boundary("tf_call")

    return counted


def _hook_trace(module: ModuleType) -> None:
    hooks.replace(module.Trace, "__init__", _declaring)
    hooks.replace(module.Trace, "__exit__", call_after(_end_declared))


def _declaring(begin: Any) -> Any:
    """Return an ``__init__`` that starts steps that the program annotates: ``Trace("train", step_num=step, _r=1)``."""

    @functools.wraps(begin)
    def annotation(self: Any, name: str, **named: Any) -> None:
        if named.get("_r"):
            CLOCK.begin("tf_step")
            self._traceviz_step = True
        begin(self, name, **named)

    return annotation


def _end_declared(annotation: Any, *_: Any) -> None:
    if getattr(annotation, "_traceviz_step", False):
        CLOCK.boundary("tf_step")
