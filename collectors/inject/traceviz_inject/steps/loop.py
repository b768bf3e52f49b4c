"""A training loop as hooks see it from three places: an optimizer, a data loader, and calls of a model.

One step lasts from the end of an optimizer's step to the end of its next one, so that the wait for data belongs to the
step that uses the data. Without an optimizer it lasts from one batch to the next; without a data loader, from the end
of one call of the model to the end of the next. Work between the last batch of an epoch and the first of the next
(validation, checkpoints) is no step.

::

    next  forward backward optimizer | next  forward backward optimizer |  validation ...  | next
    ---------- step 0 --------------- ----------- step 1 --------------                      -- step 2
    ------------------------------ epoch 0 ----------------------------                      -- epoch 1

An epoch is a pass over the loader of the optimizer's batches. It ends with the last of its steps. It is reported once
the loader has no more batches, or at the next pass. A pass that the program leaves for good has no known end.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

from .. import process
from ..facts import training
from ..phases import step_parts
from ..phases.run_phases import EPOCH, is_within, tell
from ..phases.step_parts import PARTS
from ..stacks.recording import note_fact
from ..status import guarded
from ..step_clock import CLOCK, Leader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BATCHES, _ALL, _LOADER = "_traceviz_batches", "_traceviz_all_batches", "_traceviz_loader"
"""Attributes of a loader's iterator: batches taken from it, its total number if known, its loader's token."""


class Token:
    """Represents a loader without keeping it alive: the loader may be deleted while its iterator is still in use."""

    __slots__ = ("__weakref__", "batch", "opened_ns")

    def __init__(self, batch: int | None = None) -> None:
        self.batch = batch
        """Samples in a batch, if the loader states it."""
        self.opened_ns = 0
        """Start of the pass in progress."""


_TOKENS: weakref.WeakKeyDictionary[Any, Token] = weakref.WeakKeyDictionary()
"""Tokens by loader."""


class Pass:
    """A pass over a loader whose own iterators accept no attributes.

    Args:
        batches: Its iterator.
        loader: The loader.
    """

    def __init__(self, batches: Iterator[Any], loader: Any) -> None:
        self._batches = batches
        self._all = loader

    def __next__(self) -> Any:
        """Return the next batch."""
        return next(self._batches)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._all)


class Loop:
    """State of a framework's loop as seen by hooks, and its effect on the clock.

    Args:
        framework: Name of its epochs.
        optimizer: Source of steps that an optimizer ends.
        loader: Source of steps that are one batch.
        call: Source of steps that are one call of a model.
    """

    def __init__(self, framework: str, optimizer: str, loader: str, call: str) -> None:
        self._framework, self._optimizer, self._loader, self._call = framework, optimizer, loader, call
        self._optimizers = Leader()
        self._loaders = Leader()
        self._models = Leader()
        self._stepping = 0
        self.is_calling = False
        """True while a model is being called: models that it calls are part of it."""
        self.is_seen = False
        """True if anything of the framework was used."""
        self._leads = False
        self._taking_thread = 0
        self._stepping_thread = 0
        self._last_loader: Any = _nothing
        self._training_loader: Any = _nothing
        self._waiting_batches = 0
        self._exhausted = False
        self._was_last = False
        self._epochs = 0
        self._epoch_begun_ns = self._last_step_ns = 0
        self._own_batches = self._own_steps = 0
        self._learnt_in: int | None = None

    @property
    def is_taking(self) -> bool:
        """True if this thread takes a batch: models that are called for that distort images."""
        return self._taking_thread == threading.get_ident()

    @property
    def _is_apart(self) -> bool:
        """True if this is not the thread that trains: it takes batches for that thread, and prefetches some.

        Its batches do not show where a step starts or ends, and a mark would end on another thread than it started.
        """
        return self._stepping_thread not in (0, threading.get_ident())

    def loader_opens(self, loader: Token) -> None:
        """Start a pass over ``loader``, before its workers start, so that they know that this process trains."""
        self.is_seen = True
        if self._exhausted and not self._is_apart:
            CLOCK.pause(self._optimizer)
        trains = self._training_loader()
        if trains is loader:
            self._exhausted, self._waiting_batches = False, 0
            self._epoch_is_over()
            if not self._is_apart:
                CLOCK.begin(self._optimizer)
        loader.opened_ns = time.monotonic_ns()
        if self._loaders.leads(loader, weakref.ref(loader)):
            CLOCK.begin(self._loader)
            if trains is None and loader.batch:
                note_fact(training.BATCH, loader.batch)
        if trains is None or trains is loader:
            PARTS.epoch_begins()

    def batch_begins(self, iterator: Any) -> None:
        """Note that the program asks ``iterator`` for its next batch."""
        self._taking_thread = threading.get_ident()
        loader = getattr(iterator, _LOADER, None)
        if loader is None or not self._loaders.leads(loader, weakref.ref(loader)):
            return
        if getattr(iterator, _BATCHES, 0):
            CLOCK.boundary(self._loader)
        else:
            CLOCK.begin(self._loader)

    def batch_ends(self, iterator: Any) -> None:
        """Note that it got a batch."""
        self._taking_thread = 0
        taken = getattr(iterator, _BATCHES, 0) + 1
        setattr(iterator, _BATCHES, taken)
        loader = getattr(iterator, _LOADER, None)
        self._last_loader = weakref.ref(loader) if loader is not None else _nothing
        self._waiting_batches += 1
        self._own_batches += loader is not None and loader is self._training_loader()
        self._was_last = taken == getattr(iterator, _ALL, None)

    def batches_end(self, iterator: Any) -> None:
        """Note that no batch is left.

        A program that prefetches one batch (to know which is the last) has one more to train on.
        """
        self._taking_thread = 0
        CLOCK.pause(self._loader)
        loader = getattr(iterator, _LOADER, None)
        if loader is None or loader is not self._training_loader():
            if loader is not None:
                loader.opened_ns = 0  # for any later use of its batches, this pass was over before
            return
        self._exhausted = True
        if not self._waiting_batches and not self._is_apart:
            CLOCK.pause(self._optimizer)
            self._epoch_is_over()
            PARTS.epoch_ends()

    def gradients_begin(self) -> None:
        """Note that gradients are computed: something learns."""
        if self._learnt_in != CLOCK.recording:
            self._learnt_in = CLOCK.recording
            note_fact(training.GRADIENTS, 1)

    def optimizer_begins(self) -> bool:
        """Note the start of an optimizer's step; return whether it is the outermost: optimizers wrap others."""
        self.is_seen = True
        self._stepping += 1
        return self._stepping == 1

    def optimizer_ends(self, optimizer: Any, *, done: bool) -> None:
        """Note the end of an optimizer's step, unless it failed."""
        self._stepping -= 1
        if self._stepping or not done or not self._optimizers.leads(optimizer, weakref.ref(optimizer)):
            return
        last = self._last_loader()
        if last is not None and last is not self._training_loader():
            if last.opened_ns > self._last_step_ns:  # else the program takes its batches from several at once
                self._epoch_is_over()
            self._training_loader, self._exhausted = self._last_loader, False
            self._own_batches = self._own_steps = 0
        self._waiting_batches = 0
        # Note the samples per step, more precisely over time: a step may take several batches.
        loader, steps = self._training_loader(), self._own_steps
        if loader is not None and loader.batch and not steps & (steps - 1):  # none, one, two, four, eight ...
            batches = round(self._own_batches / steps) if steps else 1
            note_fact(training.BATCH, loader.batch * max(batches, 1))
        self._own_steps += 1
        self._stepping_thread = threading.get_ident()
        CLOCK.boundary(self._optimizer, more=not (self._exhausted or self._was_last))
        self._last_step_ns = time.monotonic_ns()
        trained = self._training_loader()
        if trained is not None and not self._epoch_begun_ns:
            self._epoch_begun_ns = trained.opened_ns
        if self._exhausted:
            self._epoch_is_over()
            PARTS.epoch_ends()

    def _epoch_is_over(self) -> None:
        """Report the epoch of these steps, unless a trainer around the loop does."""
        begun, self._epoch_begun_ns = self._epoch_begun_ns, 0
        if begun and CLOCK.source == self._optimizer and not is_within(EPOCH):
            tell(EPOCH, self._framework, begun, self._last_step_ns, self._epochs)
            self._epochs += 1

    def call_begins(self, model: Any) -> None:
        """Note a call of a model from outside of models. Workers of a loader call models, too: to distort images."""
        self.is_calling = self.is_seen = True
        may_lead = CLOCK.hears(self._call) and not process.is_helper()
        self._leads = may_lead and self._models.leads(model, weakref.ref(model))
        if self._leads:
            CLOCK.begin(self._call)

    def call_ends(self) -> None:
        """Note the end of the call."""
        self.is_calling = False
        if self._leads:
            CLOCK.boundary(self._call)


def _nothing() -> None:
    """Return ``None``, as a reference to a deleted object does."""


def seen_optimizer(loop: Loop, step: Any) -> Any:
    """Return ``step``, whose first argument is an optimizer, with hooks; for :func:`hooks.replace`."""
    ends = guarded(loop.optimizer_ends)

    @functools.wraps(step)
    def counted(*arguments: Any, **named: Any) -> Any:
        begins = loop.optimizer_begins()
        done = False
        try:
            with PARTS.part(step_parts.OPTIMIZER if begins else step_parts.COMPUTE):
                result = step(*arguments, **named)
            done = True
        finally:
            ends(arguments[0], done=done)
        return result

    return counted


def seen_backward(loop: Loop, backward: Any) -> Any:
    """Return ``backward``, which computes gradients, with hooks; for :func:`hooks.replace`."""
    begins = guarded(loop.gradients_begin)

    @functools.wraps(backward)
    def seen(*arguments: Any, **named: Any) -> Any:
        begins()
        with PARTS.part(step_parts.BACKWARD):
            return backward(*arguments, **named)

    return seen


def seen_pass(loop: Loop, iterate: Any) -> Any:
    """Return a loader's ``__iter__`` with hooks, for :func:`hooks.replace`; :func:`seen_batch` hooks its iterators."""
    opens, remember = guarded(loop.loader_opens), guarded(_remember)

    @functools.wraps(iterate)
    def counted(self: Any) -> Any:
        opens(_token(self))
        iterator = iterate(self)
        remember(iterator, self)
        return iterator

    return counted


def seen_batch(loop: Loop, take: Any) -> Any:
    """Return the ``__next__`` of a loader's iterators with hooks; for :func:`hooks.replace`."""
    begins, ends, none_left = guarded(loop.batch_begins), guarded(loop.batch_ends), guarded(loop.batches_end)

    @functools.wraps(take)
    def counted(self: Any) -> Any:
        begins(self)
        try:
            with PARTS.part(step_parts.INPUT):
                batch = take(self)
        except BaseException:  # also an error in a dataset, after which a program may ask again
            none_left(self)
            raise
        ends(self)
        return batch

    return counted


def _token(loader: Any) -> Token:
    token = _TOKENS.get(loader)
    if token is None:
        token = _TOKENS[loader] = Token(guarded(training.of_loader)(loader))
    return token


def _remember(iterator: Any, loader: Any) -> None:
    """Reset the marks of an iterator: a loader with persistent workers returns the same iterator again."""
    setattr(iterator, _BATCHES, 0)
    setattr(iterator, _LOADER, _token(loader))
    # The iterator is asked, not the loader: the loader counts the question as the program's and may warn later.
    with suppress(TypeError, NotImplementedError):  # a stream
        setattr(iterator, _ALL, len(iterator))
