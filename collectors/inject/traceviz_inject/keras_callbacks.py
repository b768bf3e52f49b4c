"""Methods of Keras' list of callbacks that also call a hook."""

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
    """Return a maker for :func:`hooks.replace`: its method calls ``hook`` with its arguments first."""
    hook = guarded(hook)

    def make(method: Any) -> Any:
        @functools.wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            hook(*arguments)
            return method(*arguments, **named)

        return call

    return make


def call_after(hook: Callable[..., None]) -> Callable[[Any], Any]:
    """Return a maker for :func:`hooks.replace`: its method calls ``hook`` with its arguments at its end."""
    hook = guarded(hook)

    def make(method: Any) -> Any:
        @functools.wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            hook(*arguments)
            return result

        return call

    return make
