"""Steps of Keras with any backend: ``fit`` calls its list of callbacks at the end of batches, and the list calls us.

A step lasts from the end of the previous batch to the end of this one: two of the backends fetch the data before
they announce a batch, and the wait for data belongs to the step.

The list's own methods are wrapped; no callback is added to it. Keras calls its own callbacks in another thread as long
as there is no foreign one. Another callback would slow the program down, and would be called late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import hooks
from ..calls import CALLBACK_LISTS, call_after, call_before
from ..step_clock import CLOCK

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings

TRAINERS = {
    "keras.src.backend.jax.trainer": "JAXTrainer",
    "keras.src.backend.tensorflow.trainer": "TensorFlowTrainer",
    "keras.src.backend.torch.trainer": "TorchTrainer",
}
"""Module -> class whose ``train_on_batch`` is one step of a program's own loop."""


def install(settings: Settings) -> None:  # noqa: ARG001 all step sources have one signature
    """Wait for Keras."""
    for module in CALLBACK_LISTS:
        hooks.when_imported(module, _hook_callbacks)
    for module in TRAINERS:
        hooks.when_imported(module, _hook_trainer)


def _hook_callbacks(module: ModuleType) -> None:
    for method, tell in _BEFORE_CALLBACKS.items():
        hooks.replace(module.CallbackList, method, call_before(tell))
    for method, tell in _AFTER_CALLBACKS.items():
        hooks.replace(module.CallbackList, method, call_after(tell))


def _batch_ended(callbacks: Any, batch: int = 0, *_: Any) -> None:
    """Start the next step, unless this was the last batch of the epoch."""
    batches = (callbacks.params or {}).get("steps")
    CLOCK.boundary("keras", more=batches is None or batch + 1 < batches)


_BEFORE_CALLBACKS = {
    "on_epoch_end": lambda *_: CLOCK.pause("keras"),  # there is no further batch
    "on_test_begin": lambda *_: CLOCK.pause("keras"),
    "on_train_end": lambda *_: CLOCK.release("keras"),
}
_AFTER_CALLBACKS = {
    "on_epoch_begin": lambda *_: CLOCK.begin("keras"),
    "on_train_batch_begin": lambda *_: CLOCK.begin("keras"),
    "on_train_batch_end": _batch_ended,
}


def _hook_trainer(module: ModuleType) -> None:
    trainer = getattr(module, TRAINERS[module.__name__])
    begin, end = call_before(lambda *_: CLOCK.begin("keras")), call_after(lambda *_: CLOCK.boundary("keras"))
    hooks.replace(trainer, "train_on_batch", lambda step: end(begin(step)))
