"""Steps of custom TensorFlow loops: ``for batch in dataset: train_step(batch)``.

A step begins where the program asks for a batch, and ends where it asks for the next one: the wait for data is its
first part. Of several iterators in use, the one that leads is the loop's (see :class:`~traceviz_inject.steps.Leader`).
Loops over a dataset within a ``tf.function`` run in the graph, where Python sees nothing of them. Where a program takes
its batches from elsewhere, a step lasts from the end of one call of the ``tf.function`` that repeats to the next end.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING

from . import hooks
from .steps import CLOCK, Leader

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .config import Settings

ITERATORS = {
    "tensorflow.python.data.ops.iterator_ops": "OwnedIterator",
    "tensorflow.python.distribute.input_lib": "DistributedIteratorBase",
}
"""Module -> class whose ``__next__`` gives the next batch."""

TRACE_MODULE = "tensorflow.python.profiler.trace"
FUNCTION_MODULE = "tensorflow.python.eager.polymorphic_function.polymorphic_function"

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
    """TensorFlow's own answer to whether Python runs step by step now, or a function is being traced."""
    context = sys.modules.get("tensorflow.python.eager.context")
    answer: Callable[[], bool] = getattr(context, "executing_eagerly", lambda: True)
    return answer


def _counting(following: Any) -> Any:
    executing_eagerly = _tells_eager()

    @functools.wraps(following)
    def counted(self: Any) -> Any:
        if not executing_eagerly() or not _LEADER.leads(self, weakref.ref(self)):
            return following(self)
        # The program turns to the next step: the one in progress, if there is one, has ended.
        if CLOCK.source == "tf_iterator" and CLOCK.step is not None:
            CLOCK.boundary("tf_iterator")
        else:
            CLOCK.begin("tf_iterator")
        try:
            return following(self)
        except StopIteration:
            _LEADER.retire(self)
            CLOCK.pause("tf_iterator")
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
    hooks.replace(module.Trace, "__exit__", _declared)


def _declaring(begin: Any) -> Any:
    """The program annotates its steps itself, as TensorFlow's guide says: ``Trace("train", step_num=step, _r=1)``."""

    @functools.wraps(begin)
    def annotation(self: Any, name: str, **named: Any) -> None:
        if named.get("_r"):
            CLOCK.begin("tf_step")
            self._traceviz_step = True
        begin(self, name, **named)

    return annotation


def _declared(end: Any) -> Any:
    @functools.wraps(end)
    def annotation(self: Any, *raised: Any) -> None:
        end(self, *raised)
        if getattr(self, "_traceviz_step", False):
            CLOCK.boundary("tf_step")

    return annotation
