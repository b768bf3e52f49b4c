"""Epochs of Keras, through the list of callbacks that ``fit`` keeps."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

from .. import hooks
from ..keras_callbacks import telling_after, telling_before
from .run_phases import EPOCH, tell

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_wrap = functools.partial(hooks.replace, mark="__traceviz_phase__")
_begun: dict[int, tuple[int, int]] = {}
"""By the list of callbacks: number of the epoch in progress, and its start time."""


def hook_epochs(module: ModuleType) -> None:
    """Hook the start and end of epochs."""
    _wrap(module.CallbackList, "on_epoch_begin", telling_before(_begins))
    _wrap(module.CallbackList, "on_epoch_end", telling_after(_ended))


def _begins(callbacks: Any, epoch: int = 0, *_: Any) -> None:
    _begun[id(callbacks)] = (int(epoch), time.monotonic_ns())


def _ended(callbacks: Any, *_: Any) -> None:
    epoch = _begun.pop(id(callbacks), None)
    if epoch is not None:
        tell(EPOCH, "keras", epoch[1], time.monotonic_ns(), epoch[0])
