"""Steps of JAX loops: the program's own step annotations, else calls of the jitted function that repeats.

A jitted function is a native object that calls no Python. So ``jax.jit`` returns it in a thin wrapper that behaves
like it and counts the calls from the program's own Python, except those made while another function is traced.
A step lasts from the end of one call to the end of the next, so that the preparation of its data belongs to it.
"""

from __future__ import annotations

import functools
import sys
import weakref
from types import MethodType
from typing import TYPE_CHECKING

from .. import hooks
from ..calls import call_after, call_before
from ..status import guarded
from ..step_clock import CLOCK, Leader

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings

_LEADER = Leader()
_within: list[object] = []
"""The counted function that is being called, if any: functions that it calls are part of it."""


class InFlight:
    """Limits the steps in flight to one while steps are recorded.

    A call of a jitted function returns before its work is done. A loop that never reads a result queues tens of steps:
    the steps would show how fast work is queued, and none of the work. So each call waits for the work of the previous
    call. Preparing the next batch still overlaps with the devices' work, as in a loop without a recording. A step lasts
    as long as the slower of the two::

        host     batch 1 call 1 wait 0 | batch 2 call 2 wait 1      | batch 3 ...
        device   0 0 0 0 0 0 0 0 0 0 0   1 1 1 1 1 1 1 1 1 1 1 1 1 1  2 2 2 ...
    """

    def __init__(self) -> None:
        self.is_limited = False
        self._earlier: Any = None

    def limit(self) -> None:
        """Wait from now on."""
        self.is_limited = True

    def lift(self) -> None:
        """Do not wait any more."""
        self.is_limited = False
        self._earlier = None

    @guarded
    def dispatched(self, result: Any) -> None:
        """Wait for the work of the previous call, after a call has returned ``result``.

        All results of a call complete at the same time, so the smallest represents them. If the earlier one was donated
        to this call, only this call's own result can be waited for. An error of the devices belongs to the program,
        which gets it when it reads the result.
        """
        array, earlier = _smallest_array(result), self._earlier
        self._earlier = array
        for candidate in (earlier, array):
            if candidate is not None and not candidate.is_deleted():
                candidate.block_until_ready()
                return


IN_FLIGHT = InFlight()
"""The work in flight in this process."""


def _smallest_array(result: Any) -> Any:
    arrays = [leaf for leaf in sys.modules["jax"].tree_util.tree_leaves(result) if hasattr(leaf, "block_until_ready")]
    return min((array for array in arrays if not array.is_deleted()), key=lambda array: array.size, default=None)


def install(settings: Settings) -> None:  # noqa: ARG001 all step sources have one signature
    """Wait for JAX."""
    hooks.when_imported("jax._src.profiler", _hook_annotation)
    hooks.when_imported("jax", _hook_compilers)


def _hook_annotation(module: ModuleType) -> None:
    """Start the recording before the annotation of the first step; a step ends once its annotation has ended."""
    annotation = module.StepTraceAnnotation
    hooks.replace(annotation, "__init__", call_before(lambda *_: CLOCK.begin("jax_step")))
    if not getattr(annotation.__exit__, "__traceviz__", False):  # inherited: it is no attribute of this class
        annotation.__exit__ = call_after(lambda *_: CLOCK.boundary("jax_step"))(annotation.__exit__)
        annotation.__exit__.__traceviz__ = True


def _hook_compilers(module: ModuleType) -> None:
    for compiler in ("jit", "pmap"):
        hooks.replace(module, compiler, _counting)


def _counting(compiler: Any) -> Any:
    @functools.wraps(compiler)
    def counting(*arguments: Any, **named: Any) -> Any:
        made = compiler(*arguments, **named)
        if _is_compiled(made):
            return _counted(made)
        return lambda function: _counted(made(function))  # used as a decorator with options

    return counting


def _is_compiled(made: Any) -> bool:
    return hasattr(made, "lower") and callable(made)


def _counted(function: Any) -> Any:
    return CountedFunction(function) if _is_compiled(function) else function


class CountedFunction:
    """A jitted function whose calls are counted; otherwise it behaves as that function."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function, updated=())
        self._traceviz_function = function
        self._traceviz_reference = weakref.ref(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function, and notify the clock afterwards if it is the one that repeats."""
        function = self._traceviz_function
        if _within or not _LEADER.leads(self, self._traceviz_reference):
            return function(*arguments, **named)
        CLOCK.begin("jax_call")
        _within.append(self)
        try:
            result = function(*arguments, **named)
            if IN_FLIGHT.is_limited:
                IN_FLIGHT.dispatched(result)
            return result
        finally:
            _within.clear()
            CLOCK.boundary("jax_call")

    def __getattr__(self, name: str) -> Any:
        """Return ``lower``, ``trace``, ``clear_cache``, ... of the function."""
        return getattr(self._traceviz_function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind as a method, as the function does."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        """Pickle as the function itself."""
        return (_itself, (self._traceviz_function,))

    def __repr__(self) -> str:
        return repr(self._traceviz_function)


def _itself(function: Any) -> Any:
    return function
