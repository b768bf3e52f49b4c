"""Steps and parts of a loop in torch, seen from four places: optimizer, data loader, backward, and calls of a model.

One step lasts from the end of an optimizer's step to the end of its next one, so that the wait for data belongs to the
step that uses the data. Without an optimizer it lasts from one batch to the next; without a data loader, from the end
of one call of the model to the end of the next. What comes between the last batch of an epoch and the first of the next
(validation, checkpoints) is no step.

::

    next  forward backward optimizer | next  forward backward optimizer |  validation ...  | next
    ---------- step 0 --------------- ----------- step 1 --------------                      -- step 2
"""

from __future__ import annotations

import functools
import threading
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from . import hooks, parts, process
from .parts import PARTS
from .status import guarded
from .steps import CLOCK, Leader

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

OPTIMIZER, LOADER, CALL = "torch_optimizer", "torch_loader", "torch_call"
"""Sources of steps, the most trusted first."""

_BATCHES, _ALL, _LOADER = "_traceviz_batches", "_traceviz_all_batches", "_traceviz_loader"
"""Attributes of a loader's iterator: batches taken from it, all that it has where that is known, its loader's token."""


class Token:
    """Stands for a loader, which may be gone while its iterator is still in use, and must not be kept for our sake."""

    __slots__ = ("__weakref__",)


_TOKENS: weakref.WeakKeyDictionary[Any, Token] = weakref.WeakKeyDictionary()
"""By loader."""


class Loop:
    """What has been seen of the loop, and what that means for the clock."""

    def __init__(self) -> None:
        self._optimizers = Leader()
        self._loaders = Leader()
        self._models = Leader()
        self._stepping = 0
        self.is_calling = False
        """Whether a model is being called: what it calls is a part of it."""
        self.is_seen = False
        """Whether anything of torch was used."""
        self._leads = False
        self._taking_thread = 0
        self._stepping_thread = 0
        self._last_loader: Any = _nothing
        self._training_loader: Any = _nothing
        self._waiting_batches = 0
        self._exhausted = False
        self._was_last = False

    @property
    def is_taking(self) -> bool:
        """Whether this thread takes a batch: models that are called for that distort images."""
        return self._taking_thread == threading.get_ident()

    @property
    def _is_apart(self) -> bool:
        """Whether this is another thread than the one that trains: it takes batches for that, some of them ahead.

        What it does says nothing of where a step begins or ends, and a mark would end on another thread than it began.
        """
        return self._stepping_thread not in (0, threading.get_ident())

    def loader_opens(self, loader: Token) -> None:
        """A pass over ``loader`` begins: before its workers start, so that they know that this process trains."""
        self.is_seen = True
        if self._exhausted and not self._is_apart:
            CLOCK.pause(OPTIMIZER)
        trains = self._training_loader()
        if trains is loader:
            self._exhausted, self._waiting_batches = False, 0
            if not self._is_apart:
                CLOCK.begin(OPTIMIZER)
        if self._loaders.leads(loader, weakref.ref(loader)):
            CLOCK.begin(LOADER)
        if trains is None or trains is loader:
            PARTS.epoch_begins()

    def batch_begins(self, iterator: Any) -> None:
        """The program asks ``iterator`` for its next batch."""
        self._taking_thread = threading.get_ident()
        loader = getattr(iterator, _LOADER, None)
        if loader is None or not self._loaders.leads(loader, weakref.ref(loader)):
            return
        if getattr(iterator, _BATCHES, 0):
            CLOCK.boundary(LOADER)
        else:
            CLOCK.begin(LOADER)

    def batch_ends(self, iterator: Any) -> None:
        """It got one."""
        self._taking_thread = 0
        taken = getattr(iterator, _BATCHES, 0) + 1
        setattr(iterator, _BATCHES, taken)
        loader = getattr(iterator, _LOADER, None)
        self._last_loader = weakref.ref(loader) if loader is not None else _nothing
        self._waiting_batches += 1
        self._was_last = taken == getattr(iterator, _ALL, None)

    def batches_end(self, iterator: Any) -> None:
        """There is none left.

        Whoever takes batches one ahead (to know which is the last) has one more to train on.
        """
        self._taking_thread = 0
        CLOCK.pause(LOADER)
        loader = getattr(iterator, _LOADER, None)
        if loader is None or loader is not self._training_loader():
            return
        self._exhausted = True
        if not self._waiting_batches and not self._is_apart:
            CLOCK.pause(OPTIMIZER)
            PARTS.epoch_ends()

    def optimizer_begins(self) -> bool:
        """An optimizer makes a step; whether it is the outermost: optimizers wrap others."""
        self.is_seen = True
        self._stepping += 1
        return self._stepping == 1

    def optimizer_ends(self, optimizer: Any, *, done: bool) -> None:
        """It has made it, unless it failed."""
        self._stepping -= 1
        if self._stepping or not done or not self._optimizers.leads(optimizer, weakref.ref(optimizer)):
            return
        last = self._last_loader()
        if last is not None and last is not self._training_loader():
            self._training_loader, self._exhausted = self._last_loader, False
        self._waiting_batches = 0
        self._stepping_thread = threading.get_ident()
        CLOCK.boundary(OPTIMIZER, more=not (self._exhausted or self._was_last))
        if self._exhausted:
            PARTS.epoch_ends()

    def call_begins(self, model: Any) -> None:
        """A model is called, by no other model. Workers of a loader call models, too: to distort images."""
        self.is_calling = self.is_seen = True
        self._leads = CLOCK.hears(CALL) and not process.is_helper() and self._models.leads(model, weakref.ref(model))
        if self._leads:
            CLOCK.begin(CALL)

    def call_ends(self) -> None:
        """The call is over."""
        self.is_calling = False
        if self._leads:
            CLOCK.boundary(CALL)


def _nothing() -> None:
    """A reference to something that is gone."""


LOOP = Loop()
"""The loop of this process."""


def hook_optimizer(module: ModuleType) -> None:
    """See the steps of every optimizer, whichever class defines them, from outside of torch's own range for them."""
    hooks.replace(module.Optimizer, "profile_hook_step", _seen_optimizer)


def _seen_optimizer(profile_hook_step: Any) -> Any:
    wrap = getattr(profile_hook_step, "__func__", profile_hook_step)

    def with_ours(step: Any) -> Any:
        profiled = wrap(step)

        # The compiler takes off torch's wrapper by this attribute, and must find what lies below it.
        @functools.wraps(step)
        def counted(*arguments: Any, **named: Any) -> Any:
            if _is_compiling():
                return profiled(*arguments, **named)
            begins = LOOP.optimizer_begins()
            done = False
            try:
                with PARTS.part(parts.OPTIMIZER if begins else parts.COMPUTE):
                    result = profiled(*arguments, **named)
                done = True
            finally:
                _optimizer_ends(arguments[0], done=done)
            return result

        return counted

    return staticmethod(with_ours)


def hook_dataloader(module: ModuleType) -> None:
    """See each pass over a loader, and each batch."""
    hooks.replace(module.DataLoader, "__iter__", _seen_pass)
    hooks.replace(module._BaseDataLoaderIter, "__next__", _seen_batch)  # noqa: SLF001 there is no public way in
    # It may have bound the method under its own name for Python 2.
    hooks.replace(module._BaseDataLoaderIter, "next", _seen_batch)  # noqa: SLF001


def _seen_pass(iterate: Any) -> Any:
    @functools.wraps(iterate)
    def counted(self: Any) -> Any:
        _opens(self)
        iterator = iterate(self)
        _remember(iterator, self)
        return iterator

    return counted


def _seen_batch(take: Any) -> Any:
    @functools.wraps(take)
    def counted(self: Any) -> Any:
        _batch_begins(self)
        try:
            with PARTS.part(parts.INPUT):
                batch = take(self)
        except BaseException:  # also an error in a dataset, after which a program may ask again
            _batches_end(self)
            raise
        _batch_ends(self)
        return batch

    return counted


def _token(loader: Any) -> Token:
    return _TOKENS.setdefault(loader, Token())


@guarded
def _opens(loader: Any) -> None:
    LOOP.loader_opens(_token(loader))


@guarded
def _remember(iterator: Any, loader: Any) -> None:
    """A loader with persistent workers gives the same iterator again."""
    setattr(iterator, _BATCHES, 0)
    setattr(iterator, _LOADER, _token(loader))
    # The iterator is asked, and not the loader, which takes the question for the program's and may warn later.
    with suppress(TypeError, NotImplementedError):  # a stream
        setattr(iterator, _ALL, len(iterator))


def hook_autograd(module: ModuleType) -> None:
    """See every backward pass: ``Tensor.backward`` calls the function of this module."""
    hooks.replace(module, "backward", _seen_backward)


def _seen_backward(backward: Any) -> Any:
    @functools.wraps(backward)
    def seen(*arguments: Any, **named: Any) -> Any:
        if not PARTS.is_heard or _is_compiling():
            return backward(*arguments, **named)
        with PARTS.part(parts.BACKWARD):
            return backward(*arguments, **named)

    return seen


def hook_module(module: ModuleType) -> None:
    """See calls of models.

    Hooks on modules would do, but the compiler warns of them and leaves its fast way. It inlines this function, or goes
    around it, and must not find anything else to do in it: that is why it asks first.
    """
    hooks.replace(module.Module, "__call__", _seen_call)


def _seen_call(call: Any) -> Any:
    @functools.wraps(call)
    def seen(self: Any, *arguments: Any, **named: Any) -> Any:
        if _is_compiling() or LOOP.is_calling or LOOP.is_taking or not process.may_train():
            return call(self, *arguments, **named)
        _call_begins(self)
        try:
            with PARTS.part(parts.FORWARD):
                return call(self, *arguments, **named)
        finally:
            _call_ends()

    return seen


def _is_compiling() -> bool:
    """Whether the compiler is reading the code that calls this; until there is a compiler, no."""
    return False


def hook_compiler(module: ModuleType) -> None:
    """Learn how to ask: the compiler knows its own function, and takes the answer for a constant."""
    global _is_compiling  # noqa: PLW0603 calls of models ask this, which must cost next to nothing
    _is_compiling = module.is_compiling


_batch_begins = guarded(LOOP.batch_begins)
_batch_ends = guarded(LOOP.batch_ends)
_batches_end = guarded(LOOP.batches_end)
_optimizer_ends = guarded(LOOP.optimizer_ends)
_call_begins = guarded(LOOP.call_begins)
_call_ends = guarded(LOOP.call_ends)
