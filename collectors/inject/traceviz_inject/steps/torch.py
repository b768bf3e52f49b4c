"""Steps and parts of a loop in torch, seen from four places: optimizer, data loader, backward, and calls of a model.

:mod:`.loop` defines a step.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from .. import hooks, process
from ..facts import training
from ..phases import step_parts
from ..phases.step_parts import PARTS
from ..status import guarded
from .loop import Loop, seen_batch, seen_optimizer, seen_pass

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

LOOP = Loop("torch", "torch_optimizer", "torch_loader", "torch_call")
"""The loop of this process."""


def hook_optimizer(module: ModuleType) -> None:
    """Hook the steps of every optimizer, in any class that defines them, outside of torch's own range for them."""
    hooks.replace(module.Optimizer, "profile_hook_step", _seen_optimizer)
    for kind in _kinds_below(module.Optimizer):  # torch has put its range around the steps of those that were used
        if getattr(kind.__dict__.get("step"), "hooked", False):
            hooks.replace(kind, "step", functools.partial(seen_optimizer, LOOP))


def _kinds_below(kind: type) -> list[type]:
    below: list[type] = kind.__subclasses__()
    return below + [deeper for found in below for deeper in _kinds_below(found)]


def _seen_optimizer(profile_hook_step: Any) -> Any:
    wrap = getattr(profile_hook_step, "__func__", profile_hook_step)

    def with_ours(step: Any) -> Any:
        profiled = wrap(step)

        counted = seen_optimizer(LOOP, profiled)

        # The compiler removes torch's wrapper by this attribute, and must find the original function.
        @functools.wraps(step)
        def seen(*arguments: Any, **named: Any) -> Any:
            return (profiled if _is_compiling() else counted)(*arguments, **named)

        return seen

    return staticmethod(with_ours)


def hook_dataloader(module: ModuleType) -> None:
    """Hook each pass over a loader, and each batch."""
    hooks.replace(module.DataLoader, "__iter__", functools.partial(seen_pass, LOOP))
    batch = functools.partial(seen_batch, LOOP)
    hooks.replace(module._BaseDataLoaderIter, "__next__", batch)  # noqa: SLF001 there is no public access
    # It may have bound the method under its own name for Python 2.
    hooks.replace(module._BaseDataLoaderIter, "next", batch)  # noqa: SLF001


def hook_autograd(module: ModuleType) -> None:
    """Hook every backward pass: ``Tensor.backward`` calls the function of this module."""
    hooks.replace(module, "backward", _seen_backward)
    training.none_yet()


def _seen_backward(backward: Any) -> Any:
    @functools.wraps(backward)
    def seen(*arguments: Any, **named: Any) -> Any:
        if _is_compiling():
            return backward(*arguments, **named)
        _gradients_begin()
        if not PARTS.is_heard:
            return backward(*arguments, **named)
        with PARTS.part(step_parts.BACKWARD):
            return backward(*arguments, **named)

    return seen


def hook_module(module: ModuleType) -> None:
    """Hook calls of models.

    Hooks on modules would suffice, but the compiler warns about them and leaves its fast path. It inlines this
    function, or bypasses it, and must find nothing else to do in it. Therefore the function first asks whether the
    compiler reads it.
    """
    hooks.replace(module.Module, "__call__", _seen_call)


def _seen_call(call: Any) -> Any:
    @functools.wraps(call)
    def seen(self: Any, *arguments: Any, **named: Any) -> Any:
        if _is_compiling() or LOOP.is_calling or LOOP.is_taking or not process.may_train():
            return call(self, *arguments, **named)
        _call_begins(self)
        try:
            with PARTS.part(step_parts.FORWARD):
                return call(self, *arguments, **named)
        finally:
            _call_ends()

    return seen


def _is_compiling() -> bool:
    """Return whether the compiler is reading the code that calls this; false until there is a compiler."""
    return False


def hook_compiler(module: ModuleType) -> None:
    """Set the function to ask: the compiler knows its own function, and treats the answer as a constant."""
    global _is_compiling  # noqa: PLW0603 calls of models read this, at almost no cost
    _is_compiling = module.is_compiling


_gradients_begin = guarded(LOOP.gradients_begin)
_call_begins = guarded(LOOP.call_begins)
_call_ends = guarded(LOOP.call_ends)
