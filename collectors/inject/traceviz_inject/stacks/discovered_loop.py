"""The loop of an unknown framework: the function that makes its steps is found in samples of stacks, then counted.

Array libraries (NumPy, CuPy, Numba), older frameworks and users' own programs name the function that ends a step
``step``, ``update``, ``apply_gradients``: :mod:`.interning` has these names. A function that appears in several samples
under such a name is replaced by one of ours, which counts its calls. Of several functions, the outermost counts, and of
those the one that leads (see :class:`..step_clock.Leader`)::

    samples    ... update ... update . update     its third appearance: from now on, each call ends a step
    steps                                    |  0  |  1  |  2  ...

This is inferred, and reported as such. There is no search if a framework with hooks is imported.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
import weakref
from types import FunctionType

from .. import process
from ..status import guarded
from ..step_clock import CLOCK, FOUND, Leader

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from ..step_clock import StepClock

KNOWN = ("jax", "keras", "mxnet", "paddle", "tensorflow", "tf_keras", "torch")
"""Frameworks whose own hooks count steps."""

VISITS, SAMPLES = 3, 10
"""Appearances of a function, or samples of it, after which it is counted: its calls decide whether it repeats."""

_OTHERS = re.compile(
    r"(?i)progress|tqdm|(?:^|[._])bar|meter|metric|counter|schedul|logger|display|widget|figure|plot|digest|cache|"
    r"(?:^|[._])env|config|session|status"
)
"""Modules and classes that have such functions and make no steps."""
_SENDING = ("cloudpickle", "concurrent.futures.process", "joblib", "multiprocessing.pool")
"""Modules with which programs send functions to other processes, by the name in the function's module."""
_UNUSUAL = 0x20 | 0x80 | 0x200
"""Flags of code: generators and coroutines work outside of their call."""
_FEWEST = 3
"""Calls after which a function is assumed to repeat."""


class Seeker:
    """Searches for the function that makes steps.

    Args:
        clock_of_steps: Returns the clock that receives the steps.
    """

    def __init__(self, clock_of_steps: Callable[[], StepClock] | None = None) -> None:
        if clock_of_steps is not None:
            _COUNTING.clock_of_steps = clock_of_steps
        self._visits: dict[int, list[int]] = {}
        self._done: set[int] = set()

    def seen(self, code: CodeType, frame: FrameType, *, again: bool) -> None:
        """Note a sample of ``code`` in a stack with innermost frame ``frame``; ``again``: as in the previous sample."""
        if id(code) in self._done:
            return
        seen = self._visits.setdefault(id(code), [0, 0])
        seen[0] += not again
        seen[1] += 1
        if seen[0] >= VISITS or seen[1] >= SAMPLES:
            self._done.add(id(code))
            guarded(_count)(code, frame)


def _count(code: CodeType, innermost: FrameType) -> None:
    """Replace the function with ``code``, which a thread executes below ``innermost``, by one that counts."""
    known = any(name in sys.modules for name in KNOWN)
    if known or code.co_flags & _UNUSUAL or not process.may_train() or process.is_helper():
        return
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    named = getattr(code, "co_qualname", code.co_name)
    if frame is None or _OTHERS.search(f"{frame.f_globals.get('__name__')}.{named}"):
        return
    path = named.split(".")
    if len(path) == 1:
        _replace_function(frame, code)
    elif "<locals>" not in path:
        owner: Any = frame.f_globals.get(path[0])
        for name in path[1:-1]:
            owner = getattr(owner, name, None)
        method = owner.__dict__.get(path[-1]) if isinstance(owner, type) else None
        if _is_of(method, code):
            setattr(owner, path[-1], counting(method))


def _replace_function(frame: FrameType, code: CodeType) -> None:
    """Replace it where it is defined, and where its caller has imported it."""
    if any(name in sys.modules for name in _SENDING):
        return
    function = frame.f_globals.get(code.co_name)
    if not _is_of(function, code):
        return
    counted = counting(function)
    caller = frame.f_back.f_globals if frame.f_back is not None else {}
    for names in (frame.f_globals, caller):
        for name in [name for name, value in tuple(names.items()) if value is function]:
            names[name] = counted


def _is_of(function: object, code: CodeType) -> bool:
    """Return whether this is a plain function with this code, or a wrapper around one."""
    for _ in range(10):
        if type(function) is not FunctionType:
            return False
        if function.__code__ is code:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


class _Counting:
    """State of the counted functions: which are being called, and which leads."""

    def __init__(self) -> None:
        self._within = threading.local()
        self._leader = Leader()
        self._calls = 0
        self.clock_of_steps: Callable[[], StepClock] = lambda: CLOCK
        """Returns the clock; a recorder of steps listens to it from then on."""

    def begins(self) -> None:
        self._within.depth = getattr(self._within, "depth", 0) + 1

    def ends(self, name: str, thing: Any, *, done: bool) -> None:
        """End a call, which is a step if it is the outermost and leads.

        Args:
            name: Name of the function.
            thing: The object of a method, or the function.
            done: True if it returned.
        """
        self._within.depth -= 1
        if self._within.depth or not done:
            return
        try:
            reference: Callable[[], Any] = weakref.ref(thing)
        except TypeError:  # objects with slots
            reference = lambda: thing  # noqa: E731
        if not self._leader.leads(thing, reference):
            return
        self._calls += 1
        if self._calls >= _FEWEST:
            LEADING[0] = name
            self.clock_of_steps().boundary(FOUND)


LEADING = [""]
"""Name of the function whose calls are steps."""
_COUNTING = _Counting()


def counting(function: Any) -> Any:
    """Return ``function`` with counted calls."""
    name, is_method = function.__qualname__, "." in function.__qualname__
    ends = guarded(_COUNTING.ends)

    @functools.wraps(function)
    def counted(*arguments: Any, **named: Any) -> Any:
        _COUNTING.begins()
        done = False
        try:
            result = function(*arguments, **named)
            done = True
        finally:
            ends(name, arguments[0] if is_method and arguments else counted, done=done)
        return result

    return counted
