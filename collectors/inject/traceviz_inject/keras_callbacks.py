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


def telling_before(tell: Callable[..., None]) -> Callable[[Any], Any]:
    """Return a maker for :func:`hooks.replace`: its method calls ``tell`` with its arguments first."""
    tell = guarded(tell)

    def make(method: Any) -> Any:
        @functools.wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            tell(*arguments)
            return method(*arguments, **named)

        return call

    return make


def telling_after(tell: Callable[..., None]) -> Callable[[Any], Any]:
    """Return a maker for :func:`hooks.replace`: its method calls ``tell`` with its arguments at its end."""
    tell = guarded(tell)

    def make(method: Any) -> Any:
        @functools.wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            tell(*arguments)
            return result

        return call

    return make
