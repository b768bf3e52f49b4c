"""Functions of frameworks that also call a hook, before or after."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from .status import guarded

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CALLBACK_LISTS = ("keras.src.callbacks.callback_list", "tf_keras.src.callbacks")
"""Modules with a class ``CallbackList``: Keras 3, and Keras 2 under its later name."""


def call_before(hook: Callable[..., None]) -> Callable[[Any], Any]:
    """Return a maker for :func:`hooks.replace`: its function calls ``hook`` with its positional arguments first."""
    hook = guarded(hook)

    def make(function: Any) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            hook(*arguments)
            return function(*arguments, **named)

        return call

    return make


def call_after(hook: Callable[..., None]) -> Callable[[Any], Any]:
    """Return a maker like :func:`call_before`: its function calls ``hook`` once it has returned."""
    hook = guarded(hook)

    def make(function: Any) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            hook(*arguments)
            return result

        return call

    return make
