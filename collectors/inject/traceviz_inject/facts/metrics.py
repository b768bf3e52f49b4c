"""Quality figures that Keras, Lightning and transformers pass to their loggers.

Only figures that are reported once per epoch, or when logging, are recorded: a figure of each batch would require a
wait.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from .. import hooks
from ..calls import CALLBACK_LISTS, call_after, call_before
from ..stacks.recording import note_metric
from ..step_clock import CLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

    from ..config import Settings

_wrap = functools.partial(hooks.replace, mark="__traceviz_metrics__")
TESTED = "test_"
"""Prefix of the figures of an evaluation outside of a training."""
_NOT_OF_QUALITY = frozenset({"epoch", "step", "total_flos", "num_input_tokens_seen"})
_SPEEDS = ("_runtime", "_per_second", "_jit_compilation_time", "_time")
_in_epoch: set[int] = set()
"""Lists of callbacks that are within an epoch."""


def install(settings: Settings) -> None:  # noqa: ARG001 all of these modules have one signature
    """Wait for the modules that keep figures."""
    for module in CALLBACK_LISTS:
        hooks.when_imported(module, _hook_keras)
    for package in ("pytorch_lightning", "lightning.pytorch"):
        hooks.when_imported(f"{package}.loops.fit_loop", _hook_lightning)
        hooks.when_imported(f"{package}.loops.evaluation_loop", _hook_lightning_evaluation)
    hooks.when_imported("transformers.trainer", _hook_transformers)


def _tell(source: str, figures: Mapping[Any, Any] | None, *, step: Any, epoch: Any, before: str = "") -> None:
    """Note those of ``figures`` that are single numbers."""
    for name, value in dict(figures or {}).items():
        is_number = hasattr(value, "__float__") and all(extent == 1 for extent in getattr(value, "shape", ()))
        if str(name) not in _NOT_OF_QUALITY and not str(name).endswith(_SPEEDS) and is_number:
            note_metric(f"{before}{name}", value, step, epoch, source)


# Keras


def _hook_keras(module: ModuleType) -> None:
    _wrap(module.CallbackList, "on_epoch_begin", call_before(lambda callbacks, *_: _in_epoch.add(id(callbacks))))
    _wrap(module.CallbackList, "on_epoch_end", call_after(_keras_epoch_ended))
    _wrap(module.CallbackList, "on_train_end", call_before(lambda callbacks, *_: _in_epoch.discard(id(callbacks))))
    _wrap(module.CallbackList, "on_test_end", call_after(_keras_test_ended))


def _keras_epoch_ended(callbacks: Any, epoch: int = 0, logs: Any = None, *_: Any) -> None:
    _in_epoch.discard(id(callbacks))
    _tell("keras", logs, step=CLOCK.steps_seen or None, epoch=epoch)


def _keras_test_ended(callbacks: Any, logs: Any = None, *_: Any) -> None:
    """Note figures of an evaluation; figures of one within an epoch are reported at the epoch's end."""
    if id(callbacks) not in _in_epoch:
        _tell("keras", logs, step=CLOCK.steps_seen or None, epoch=None, before=TESTED)


# Lightning


def _hook_lightning(module: ModuleType) -> None:
    _wrap(module._FitLoop, "on_advance_end", call_after(_lightning_epoch_ended))  # noqa: SLF001 the loop itself


def _hook_lightning_evaluation(module: ModuleType) -> None:
    _wrap(module._EvaluationLoop, "run", call_after(_lightning_tested))  # noqa: SLF001


def _lightning_epoch_ended(loop: Any, *_: Any) -> None:
    """Note the figures of an epoch; the loop has already counted it."""
    trainer = loop.trainer
    epoch = max(0, int(trainer.current_epoch) - 1)
    _tell("lightning", trainer.callback_metrics, step=trainer.global_step, epoch=epoch)


def _lightning_tested(loop: Any, *_: Any) -> None:
    """Note figures of an evaluation; figures of one within a training are reported at the epoch's end."""
    trainer = loop.trainer
    state = getattr(trainer.state.fn, "value", trainer.state.fn)
    if state in {"test", "validate"}:
        _tell("lightning", trainer.callback_metrics, step=trainer.global_step or None, epoch=None)


# transformers


def _hook_transformers(module: ModuleType) -> None:
    _wrap(module.Trainer, "log", call_before(_transformers_logs))


def _transformers_logs(trainer: Any, logs: Any = None, *_: Any) -> None:
    """Note logged figures. The trainer counts epochs in fractions: 0.5 is the middle of the first, 1.0 its end."""
    state = trainer.state
    done = getattr(state, "epoch", None)
    epoch = None if done is None else max(0, -int(-float(done) // 1) - 1)
    _tell("transformers", logs, step=state.global_step, epoch=epoch)
