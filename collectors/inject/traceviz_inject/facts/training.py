"""Facts about the whole training from hooks: the number of samples per step, and whether the program learns.

Loaders and data sets state the size of their batches: no batch is inspected.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

from .. import hooks
from ..calls import call_after, call_before
from ..phases.run_phases import TRAIN, VALIDATION, current, is_within
from ..stacks.recording import note_fact

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings

BATCH, GRADIENTS = "batch", "gradients"
"""Names of facts: samples of a step of this process; whether gradients were computed, 1 or 0."""

EPOCHS_OF_KERAS = "keras.src.trainers.epoch_iterator"
DIFFERENTIATION = {
    "jax._src.api": (("value_and_grad",), ("vjp",)),
    "tensorflow.python.eager.backprop": (("GradientTape", "gradient"),),
}
"""Module -> its function that computes gradients; torch's is hooked with its other parts of a step."""
_DEEPEST = 50
"""Maximum number of data set transformations that are searched for batches."""
_MARK = "__traceviz_facts__"


def install(settings: Settings) -> None:  # noqa: ARG001 all of these modules have one signature
    """Wait for the modules that show these facts."""
    hooks.when_imported(EPOCHS_OF_KERAS, _hook_keras)
    for module in DIFFERENTIATION:
        hooks.when_imported(module, _hook_gradients)


def _hook_gradients(module: ModuleType) -> None:
    for path in DIFFERENTIATION[module.__name__]:
        owner = functools.reduce(getattr, path[:-1], module)
        hooks.replace(owner, path[-1], call_before(lambda *_: note_fact(GRADIENTS, 1)), mark=_MARK)
    none_yet()


def none_yet() -> None:
    """Note that no gradients were computed so far; a program that computes none only applies a model."""
    note_fact(GRADIENTS, 0, unless_known=True)


def _hook_keras(module: ModuleType) -> None:
    hooks.replace(module.EpochIterator, "__init__", call_after(_note_keras_batches), mark=_MARK)


def _note_keras_batches(epochs: Any, *_: Any) -> None:
    """Note the batch size; in ``fit``, the first iterator trains, and later ones evaluate; outside, it predicts."""
    train = current(TRAIN)
    if is_within(VALIDATION) or (train is not None and train.batch_is_told):
        return
    if train is not None:
        train.batch_is_told = True
    adapter = epochs.data_adapter
    size = whole(getattr(adapter, "batch_size", None))
    size = size or of_dataset(getattr(adapter, "_dataset", None))
    size = size or whole(getattr(getattr(adapter, "py_dataset", None), "batch_size", None))
    if size:
        each = whole(getattr(epochs, "steps_per_execution", 1)) or 1
        note_fact(BATCH, size * each, unless_known=train is None)


def of_loader(loader: Any) -> int | None:
    """Return the samples per batch of a ``DataLoader`` of torch, Paddle or MXNet; ``None`` if it is unknown."""
    places = (("batch_size",), ("batch_sampler", "batch_size"), ("_batch_sampler", "_batch_size"))
    sizes = (whole(functools.reduce(_part, place, loader)) for place in places)
    return next((size for size in sizes if size), None)


def _part(holder: Any, name: str) -> Any:
    return getattr(holder, name, None)


def of_dataset(dataset: Any) -> int | None:
    """Return the samples per element of a tf.data data set, by its last transformation that makes batches."""
    tensors = sys.modules.get("tensorflow.python.framework.tensor_util")
    for _ in range(_DEEPEST):
        if dataset is None or tensors is None:
            return None
        size = getattr(dataset, "_batch_size", None)
        if size is not None:
            return whole(tensors.constant_value(size))
        inputs: list[Any] = getattr(dataset, "_inputs", list)()
        dataset = inputs[0] if len(inputs) == 1 else None
    return None


def whole(number: Any) -> int | None:
    """Return a whole number above zero of any type as ``int``; ``None`` for anything else."""
    try:
        return int(number) if number is not None and int(number) == number and number > 0 else None
    except (TypeError, ValueError, OverflowError):
        return None
