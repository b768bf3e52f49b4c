"""Steps and epochs in PaddlePaddle: its optimizers, its data loader, ``Model.fit``, and programs of a static graph.

:mod:`.loop` defines a step. ``Model.fit`` reports batches and epochs itself, and is trusted more.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING

from .. import hooks
from ..calls import call_after, call_before
from ..facts import training
from ..phases.run_phases import EPOCH, tell
from ..status import guarded
from ..step_clock import CLOCK, Leader
from .loop import Loop, seen_backward, seen_batch, seen_optimizer, seen_pass

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

FIT, CALL = "paddle_fit", "paddle_call"
"""Sources of steps: batches of ``Model.fit``, runs of the program that repeats."""

LOOP = Loop("paddle", "paddle_optimizer", "paddle_loader", CALL)
"""The loop of this process."""

_TRAINS = "train"
_LEADING_PROGRAM = Leader()
_PROGRAMS: dict[int, object] = {}
"""By identity of a program, because not every version allows weak references to it."""
_begun: dict[int, int] = {}
"""By list of callbacks: start of the epoch in progress."""


def hook_optimizer(module: ModuleType) -> None:
    """Hook the steps of every optimizer: a class that defines them is known once the program makes an instance."""
    base = module.Optimizer
    hooks.replace(base, "__init__", call_before(lambda optimizer, *_: _watch(base, type(optimizer))))


def _watch(base: type, kind: type) -> None:
    for owner in kind.__mro__:
        if issubclass(owner, base):
            hooks.replace(owner, "step", functools.partial(seen_optimizer, LOOP))
            hooks.replace(owner, "minimize", _seen_minimize)


def _seen_minimize(minimize: Any) -> Any:
    """Return ``minimize``, the older way to make a step, with hooks. In a static graph it only extends the graph."""
    counted = seen_optimizer(LOOP, minimize)

    @functools.wraps(minimize)
    def seen(*arguments: Any, **named: Any) -> Any:
        ask = getattr(sys.modules.get("paddle"), "in_dynamic_mode", None)
        return (counted if ask is None or ask() else minimize)(*arguments, **named)

    return seen


def hook_tensor(module: ModuleType) -> None:
    """Hook every backward pass, once the method exists: this module adds it to the compiled class."""
    hooks.replace(module, "monkey_patch_tensor", call_after(_hook_backward))
    training.none_yet()


def _hook_backward(*_: Any) -> None:
    tensor = sys.modules["paddle.base.core"].eager.Tensor
    hooks.replace(tensor, "backward", functools.partial(seen_backward, LOOP))


def hook_reader(module: ModuleType) -> None:
    """Hook each pass over a loader."""
    hooks.replace(module.DataLoader, "__iter__", functools.partial(seen_pass, LOOP))


def hook_iterators(module: ModuleType) -> None:
    """Hook each batch."""
    for name in ("_DataLoaderIterSingleProcess", "_DataLoaderIterMultiProcess"):
        if hasattr(module, name):
            hooks.replace(getattr(module, name), "__next__", functools.partial(seen_batch, LOOP))


def hook_callbacks(module: ModuleType) -> None:
    """Hook batches and epochs of ``Model.fit`` through its list of callbacks, as in Keras."""
    callbacks = module.CallbackList
    hooks.replace(callbacks, "on_epoch_begin", call_after(_epoch_begins))
    hooks.replace(callbacks, "on_batch_begin", call_after(_batch_begins))
    hooks.replace(callbacks, "on_batch_end", call_after(_batch_ended))
    hooks.replace(callbacks, "on_epoch_end", call_before(_epoch_ended))
    hooks.replace(callbacks, "on_begin", call_before(lambda *_: CLOCK.pause(FIT)))
    hooks.replace(callbacks, "on_end", call_before(_ended))


def _epoch_begins(callbacks: Any, *_: Any) -> None:
    _begun[id(callbacks)] = time.monotonic_ns()
    CLOCK.begin(FIT)


def _batch_begins(_callbacks: Any, mode: str = "", *_: Any) -> None:
    if mode == _TRAINS:
        CLOCK.begin(FIT)


def _batch_ended(_callbacks: Any, mode: str = "", *_: Any) -> None:
    if mode == _TRAINS:
        CLOCK.boundary(FIT)


def _epoch_ended(callbacks: Any, epoch: int | None = None, *_: Any) -> None:
    CLOCK.pause(FIT)  # there is no further batch
    begun = _begun.pop(id(callbacks), None)
    if begun is not None:
        tell(EPOCH, "paddle", begun, time.monotonic_ns(), epoch)


def _ended(_callbacks: Any, mode: str = "", *_: Any) -> None:
    if mode == _TRAINS:
        CLOCK.release(FIT)


def hook_executor(module: ModuleType) -> None:
    """Hook runs of a static graph's program."""
    hooks.replace(module.Executor, "run", _seen_run)


def _seen_run(run: Any) -> Any:
    begins, ends = guarded(_run_begins), guarded(CLOCK.boundary)

    @functools.wraps(run)
    def seen(self: Any, program: Any = None, *arguments: Any, **named: Any) -> Any:
        leads = begins(program)
        try:
            return run(self, program, *arguments, **named)
        finally:
            if leads:
                ends(CALL)

    return seen


def _run_begins(program: Any) -> bool:
    """Start a run; return whether its program is the one that repeats."""
    thing = _PROGRAMS.setdefault(id(program), object())
    leads = CLOCK.hears(CALL) and _LEADING_PROGRAM.leads(thing, lambda: thing)
    if leads:
        CLOCK.begin(CALL)
    return leads
