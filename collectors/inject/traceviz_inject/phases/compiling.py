"""Compilation as frameworks report it: JAX at its end, torch.compile at its start and end."""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING

from .. import hooks
from ..status import guarded
from .run_phases import COMPILATION, tell

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_JAX_COMPILES = "/jax/core/compile/"
"""Events of tracing a function, lowering it, and compiling it for the devices; they end in :data:`_LASTED`."""
_LASTED = "_duration"

_MARK = "__traceviz_phase__"

_begun = threading.local()


def hook_jax(module: ModuleType) -> None:
    """Have JAX report each compilation once it is done."""
    if hasattr(module, "register_event_duration_secs_listener") and not hasattr(module, _MARK):
        setattr(module, _MARK, True)
        module.register_event_duration_secs_listener(_jax_compiled)


@guarded
def _jax_compiled(event: str, seconds: float, **_: Any) -> None:
    if event.startswith(_JAX_COMPILES) and event.endswith(_LASTED):
        ended = time.monotonic_ns()
        tell(COMPILATION, "jax.jit", ended - int(seconds * 1e9), ended)


def hook_dynamo(module: ModuleType) -> None:
    """Hook the calls of the callbacks around each compilation; the program may clear the callbacks themselves."""
    handler = getattr(module, "CompilationCallbackHandler", None)
    if handler is not None:
        hooks.replace(handler, "run_start_callbacks", functools.partial(_before, _dynamo_begins), mark=_MARK)
        hooks.replace(handler, "run_end_callbacks", functools.partial(_before, _dynamo_ended), mark=_MARK)


def _before(told: Any, function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        told()
        return function(*arguments, **named)

    return call


@guarded
def _dynamo_begins() -> None:
    _begun.at = time.monotonic_ns()


@guarded
def _dynamo_ended() -> None:
    begun = _begun.__dict__.pop("at", None)
    if begun is not None:
        tell(COMPILATION, "torch.compile", begun, time.monotonic_ns())
