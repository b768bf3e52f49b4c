"""Steps of libraries whose models learn in calls of one function: rounds of boosting, and ``partial_fit``.

XGBoost and LightGBM call ``Booster.update`` for each round, also with an objective of the program::

    update   metrics callbacks | update   metrics callbacks | ...
    --------- step 0 ----------  --------- step 1 ----------
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING

from .. import hooks
from ..phases.install import ROUND_CLASSES
from ..status import guarded
from ..step_clock import CLOCK, Leader

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

ROUND, PARTIAL_FIT = "boosting_round", "partial_fit"
"""Sources of steps."""


def hook_classes(module: ModuleType) -> None:
    """Hook the method of each class of ``module`` that defines it."""
    method, names = ROUND_CLASSES[module.__name__]
    counted = functools.partial(_counted, PARTIAL_FIT if method == "partial_fit" else ROUND)
    for name in names:
        owner = getattr(module, name, None)
        defined = owner.__dict__.get(method) if isinstance(owner, type) else None
        if hasattr(defined, "fn"):  # scikit-learn's descriptor of a method that some settings lack
            hooks.replace(defined, "fn", counted)
        elif owner is not None:
            hooks.replace(owner, method, counted)


class _Rounds:
    """Calls in progress, by thread: an ensemble calls the method of its members."""

    def __init__(self) -> None:
        self._within = threading.local()
        self._leader = Leader()

    def begins(self, source: str, model: Any) -> None:
        self._within.depth = getattr(self._within, "depth", 0) + 1
        if self._within.depth == 1 and CLOCK.hears(source) and self._leader.leads(model, weakref.ref(model)):
            CLOCK.begin(source)

    def ends(self, source: str, model: Any, *, done: bool) -> None:
        self._within.depth -= 1
        if not self._within.depth and done and self._leader.leads(model, weakref.ref(model)):
            CLOCK.boundary(source)


_ROUNDS = _Rounds()


def _counted(source: str, method: Any) -> Any:
    begins, ends = guarded(_ROUNDS.begins), guarded(_ROUNDS.ends)

    @functools.wraps(method)
    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        begins(source, self)
        done = False
        try:
            result = method(self, *arguments, **named)
            done = True
        finally:
            ends(source, self, done=done)
        return result

    return counted
