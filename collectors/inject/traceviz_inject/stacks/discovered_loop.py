"""The loop of a framework that no hook knows: what makes its steps is found in samples of stacks, and counted then.

Libraries for arrays (NumPy, CuPy, Numba), older frameworks and programs of their own call what ends a step ``step``,
``update``, ``apply_gradients``: ``stack_interning`` has these names. A function that shows in several samples under one
of them is put into one of ours, which counts its calls; of several, the outermost, and of those the one that leads (see
:class:`.steps.Leader`)::

    samples    ... update ... update . update     its third appearance: from now on, each call ends a step
    steps                                    |  0  |  1  |  2  ...

This is inferred, and said to be. Nothing is looked for where a framework is imported that hooks know.
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
"""Appearances of a function, or samples of it, from which it is counted: the calls decide whether it repeats."""

_OTHERS = re.compile(
    r"(?i)progress|tqdm|(?:^|[._])bar|meter|metric|counter|schedul|logger|display|widget|figure|plot|digest|cache|"
    r"(?:^|[._])env|config|session|status"
)
"""Modules and classes that have such functions and make no steps."""
_SENDING = ("cloudpickle", "concurrent.futures.process", "joblib", "multiprocessing.pool")
"""Modules with which programs send functions to other processes, as what their module calls by that name."""
_UNUSUAL = 0x20 | 0x80 | 0x200
"""Flags of code: generators and coroutines do their work elsewhere than in the call."""
_FEWEST = 3
"""Calls before one is believed to repeat."""


class Seeker:
    """Looks for what makes steps.

    Args:
        clock_of_steps: Gives the clock that the steps are told to.
    """

    def __init__(self, clock_of_steps: Callable[[], StepClock] | None = None) -> None:
        if clock_of_steps is not None:
            _COUNTING.clock_of_steps = clock_of_steps
        self._visits: dict[int, list[int]] = {}
        self._done: set[int] = set()

    def seen(self, code: CodeType, frame: FrameType, *, again: bool) -> None:
        """``code`` was sampled in a stack whose innermost frame is ``frame``; ``again``: as in the sample before."""
        if id(code) in self._done:
            return
        seen = self._visits.setdefault(id(code), [0, 0])
        seen[0] += not again
        seen[1] += 1
        if seen[0] >= VISITS or seen[1] >= SAMPLES:
            self._done.add(id(code))
            guarded(_count)(code, frame)


def _count(code: CodeType, innermost: FrameType) -> None:
    """Put what counts in the place of the function with ``code``, which a thread executes below ``innermost``."""
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
        _replace_method(frame, code, path)


def _replace_method(frame: FrameType, code: CodeType, path: list[str]) -> None:
    owner: Any = frame.f_globals.get(path[0])
    for name in path[1:-1]:
        owner = getattr(owner, name, None)
    if not isinstance(owner, type):
        return
    function = owner.__dict__.get(path[-1])
    if _is_of(function, code):
        setattr(owner, path[-1], counting(function))


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
    """Whether this is a plain function with this code, or wrapped around it."""
    for _ in range(10):
        if type(function) is not FunctionType:
            return False
        if function.__code__ is code:
            return True
        function = getattr(function, "__wrapped__", None)
    return False


class _Counting:
    """Which of the counted functions are being called, and which leads."""

    def __init__(self) -> None:
        self._within = threading.local()
        self._leader = Leader()
        self._calls = 0
        self.clock_of_steps: Callable[[], StepClock] = lambda: CLOCK
        """The clock, to which whoever records steps listens once it was asked for."""

    def begins(self) -> None:
        self._within.depth = getattr(self._within, "depth", 0) + 1

    def ends(self, name: str, thing: Any, *, done: bool) -> None:
        """A call has ended: a step, if it is the outermost and leads.

        Args:
            name: Of the function.
            thing: What its method belongs to, or the function.
            done: Whether it returned.
        """
        self._within.depth -= 1
        if self._within.depth or not done or not self._leader.leads(thing, _reference(thing)):
            return
        self._calls += 1
        if self._calls >= _FEWEST:
            LEADING[0] = name
            self.clock_of_steps().boundary(FOUND)


def _reference(thing: Any) -> Any:
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


LEADING = [""]
"""Name of the function whose calls are steps."""
_COUNTING = _Counting()


def counting(function: Any) -> Any:
    """``function``, whose calls are counted."""
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
