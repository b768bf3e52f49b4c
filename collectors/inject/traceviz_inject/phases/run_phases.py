"""Phases of the whole run: saving and loading of checkpoints, evaluations, epochs, and compilation.

A hook around each such function records its start and end in any case. Phases of the same kind within a phase are part
of it: Keras' callback for checkpoints calls the model, which calls the library.

JAX reports a compilation at its end, torch.compile at its start and end. Epochs of Keras are those of its list of
callbacks.
"""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING

from .. import hooks
from ..calls import CALLBACK_LISTS, call_after, call_before
from ..stacks.recording import note_phase
from ..status import guarded

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from ..config import Settings

TRAIN, EPOCH, VALIDATION = "train", "epoch", "validation"
SAVING, LOADING, COMPILATION = "saving", "loading", "compilation"
"""Kinds of phases."""

SHORTEST_NS = 1_000_000
"""Faster writes and reads are no checkpoints: samples of a data set are files of the same kind."""

_MARK = "__traceviz_phase__"
"""Mark of the hooks in this module: hooks that count steps may wrap the same function."""

_KERAS_TRAINERS = {
    "keras.src.backend.jax.trainer": "JAXTrainer",
    "keras.src.backend.tensorflow.trainer": "TensorFlowTrainer",
    "keras.src.backend.torch.trainer": "TorchTrainer",
    "tf_keras.src.engine.training": "Model",
}
_SAVES_KERAS = (
    ("save_model", SAVING, "keras save_model"),
    ("save_weights", SAVING, "keras save_weights"),
    ("load_model", LOADING, "keras load_model"),
    ("load_weights", LOADING, "keras load_weights"),
)
_LIGHTNING = {
    "loops.evaluation_loop": (("_EvaluationLoop.run", VALIDATION, "Lightning evaluation"),),
    "loops.fit_loop": (("_FitLoop.advance", EPOCH, "Lightning"),),
    "trainer.trainer": (
        ("Trainer.save_checkpoint", SAVING, "Lightning save_checkpoint"),
        ("Trainer.fit", TRAIN, "Lightning fit"),
    ),
}

FUNCTIONS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "torch.serialization": (("save", SAVING, "torch.save"), ("load", LOADING, "torch.load")),
    "torch.jit._serialization": (("save", SAVING, "torch.jit.save"), ("load", LOADING, "torch.jit.load")),
    "torch.distributed.checkpoint.state_dict_saver": (
        ("save", SAVING, "torch.distributed.checkpoint.save"),
        ("async_save", SAVING, "torch.distributed.checkpoint.async_save"),
    ),
    "torch.distributed.checkpoint.state_dict_loader": (("load", LOADING, "torch.distributed.checkpoint.load"),),
    "safetensors.torch": (
        ("save_file", SAVING, "safetensors save_file"),
        ("load_file", LOADING, "safetensors load_file"),
    ),
    **{
        module: ((f"{trainer}.evaluate", VALIDATION, "keras evaluate"), (f"{trainer}.fit", TRAIN, "keras fit"))
        for module, trainer in _KERAS_TRAINERS.items()
    },
    "keras.src.saving.saving_api": _SAVES_KERAS,
    "tf_keras.src.saving.saving_api": _SAVES_KERAS,
    "tensorflow.python.checkpoint.checkpoint": (
        ("Checkpoint.save", SAVING, "tf.train.Checkpoint.save"),
        ("Checkpoint.write", SAVING, "tf.train.Checkpoint.write"),
        ("Checkpoint.restore", LOADING, "tf.train.Checkpoint.restore"),
        ("Checkpoint.read", LOADING, "tf.train.Checkpoint.read"),
    ),
    "tensorflow.python.saved_model.save": (("save", SAVING, "tf.saved_model.save"),),
    "tensorflow.python.training.saver": (("Saver.save", SAVING, "tf.train.Saver.save"),),
    "tensorflow.python.eager.polymorphic_function.tracing_compilation": (
        ("_create_concrete_function", COMPILATION, "tf.function"),
    ),
    "orbax.checkpoint.checkpoint_manager": (
        ("CheckpointManager.save", SAVING, "orbax save"),
        ("CheckpointManager.wait_until_finished", SAVING, "orbax wait_until_finished"),
        ("CheckpointManager.restore", LOADING, "orbax restore"),
    ),
    "orbax.checkpoint._src.checkpointers.checkpointer": (
        ("Checkpointer.save", SAVING, "orbax save"),
        ("Checkpointer.restore", LOADING, "orbax restore"),
    ),
    "orbax.checkpoint._src.checkpointers.async_checkpointer": (
        ("AsyncCheckpointer.save", SAVING, "orbax save"),
        ("AsyncCheckpointer.wait_until_finished", SAVING, "orbax wait_until_finished"),
    ),
    "flax.training.checkpoints": (
        ("save_checkpoint", SAVING, "flax save_checkpoint"),
        ("restore_checkpoint", LOADING, "flax restore_checkpoint"),
    ),
    **{f"pytorch_lightning.{module}": entries for module, entries in _LIGHTNING.items()},
    **{f"lightning.pytorch.{module}": entries for module, entries in _LIGHTNING.items()},
    "transformers.trainer": (
        ("Trainer.train", TRAIN, "Trainer.train"),
        ("Trainer.evaluate", VALIDATION, "Trainer.evaluate"),
        ("Trainer.predict", VALIDATION, "Trainer.predict"),
        ("Trainer._save_checkpoint", SAVING, "Trainer.save_checkpoint"),
        ("Trainer.save_model", SAVING, "Trainer.save_model"),
    ),
    "transformers.modeling_utils": (("PreTrainedModel.save_pretrained", SAVING, "save_pretrained"),),
    "accelerate.accelerator": (
        ("Accelerator.save_state", SAVING, "accelerate save_state"),
        ("Accelerator.load_state", LOADING, "accelerate load_state"),
    ),
    "paddle.framework.io": (("save", SAVING, "paddle.save"), ("load", LOADING, "paddle.load")),
    "paddle.jit.api": (("save", SAVING, "paddle.jit.save"), ("load", LOADING, "paddle.jit.load")),
    "paddle.hapi.model": (("Model.fit", TRAIN, "Model.fit"), ("Model.evaluate", VALIDATION, "Model.evaluate")),
    "mxnet.gluon.block": (
        ("Block.save_parameters", SAVING, "save_parameters"),
        ("Block.load_parameters", LOADING, "load_parameters"),
        ("HybridBlock.export", SAVING, "gluon export"),
    ),
    "mxnet.gluon.contrib.estimator.estimator": (
        ("Estimator.fit", TRAIN, "Estimator.fit"),
        ("Estimator.evaluate", VALIDATION, "Estimator.evaluate"),
    ),
    "mxnet.module.base_module": (
        ("BaseModule.fit", TRAIN, "Module.fit"),
        ("BaseModule.score", VALIDATION, "Module.score"),
    ),
    "mxnet.module.module": (("Module.save_checkpoint", SAVING, "Module.save_checkpoint"),),
    "mxnet.model": (
        ("save_checkpoint", SAVING, "mxnet save_checkpoint"),
        ("load_checkpoint", LOADING, "mxnet load_checkpoint"),
    ),
    "deepspeed.runtime.engine": (
        ("DeepSpeedEngine.save_checkpoint", SAVING, "DeepSpeed save_checkpoint"),
        ("DeepSpeedEngine.load_checkpoint", LOADING, "DeepSpeed load_checkpoint"),
    ),
}
"""Module -> its functions and methods, the kind of phase of each, and its name."""

_JAX_COMPILES = "/jax/core/compile/"
"""Events of tracing a function, lowering it, and compiling it for the devices; they end in ``_duration``."""

_within = threading.local()
"""By kind: the phase of this thread in progress. As ``compiling_ns``: the start of a compilation of torch."""

_epochs: dict[int, tuple[int, int]] = {}
"""By Keras' list of callbacks: number of the epoch in progress, and its start time."""


def install(settings: Settings) -> None:  # noqa: ARG001 all of these modules have one signature
    """Wait for all modules with such functions."""
    for module in FUNCTIONS:
        hooks.when_imported(module, _hook_functions)
    hooks.when_imported("jax._src.monitoring", hook_jax)
    hooks.when_imported("torch._dynamo.callback", hook_dynamo)
    for module in CALLBACK_LISTS:
        hooks.when_imported(module, hook_epochs)


def _hook_functions(module: ModuleType) -> None:
    for path, kind, name in FUNCTIONS[module.__name__]:
        holder, _, attribute = path.rpartition(".")
        owner = getattr(module, holder, None) if holder else module
        if owner is not None:
            hooks.replace(owner, attribute, functools.partial(_record_calls, kind, name), mark=_MARK)


def _record_calls(kind: str, name: str, function: Any) -> Any:
    """Return ``function`` so that it records when it ran."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        with Phase(kind, name):
            return function(*arguments, **named)

    return call


def hook_jax(module: ModuleType) -> None:
    """Have JAX report each compilation once it is done."""
    if hasattr(module, "register_event_duration_secs_listener") and not hasattr(module, _MARK):
        setattr(module, _MARK, True)
        module.register_event_duration_secs_listener(_note_jax_compilation)


@guarded
def _note_jax_compilation(event: str, seconds: float, **_: Any) -> None:
    if event.startswith(_JAX_COMPILES) and event.endswith("_duration"):
        ended = time.monotonic_ns()
        tell(COMPILATION, "jax.jit", ended - int(seconds * 1e9), ended)


def hook_dynamo(module: ModuleType) -> None:
    """Hook the calls of the callbacks around each compilation; the program may clear the callbacks themselves."""
    handler = getattr(module, "CompilationCallbackHandler", None)
    if handler is not None:
        hooks.replace(handler, "run_start_callbacks", call_before(_start_compilation), mark=_MARK)
        hooks.replace(handler, "run_end_callbacks", call_before(_end_compilation), mark=_MARK)


def _start_compilation(*_: Any) -> None:
    _within.compiling_ns = time.monotonic_ns()


def _end_compilation(*_: Any) -> None:
    started = _within.__dict__.pop("compiling_ns", None)
    if started is not None:
        tell(COMPILATION, "torch.compile", started, time.monotonic_ns())


def hook_epochs(module: ModuleType) -> None:
    """Hook the start and end of epochs of Keras."""
    hooks.replace(module.CallbackList, "on_epoch_begin", call_before(_start_epoch), mark=_MARK)
    hooks.replace(module.CallbackList, "on_epoch_end", call_after(_end_epoch), mark=_MARK)


def _start_epoch(callbacks: Any, epoch: int = 0, *_: Any) -> None:
    _epochs[id(callbacks)] = (int(epoch), time.monotonic_ns())


def _end_epoch(callbacks: Any, *_: Any) -> None:
    epoch = _epochs.pop(id(callbacks), None)
    if epoch is not None:
        tell(EPOCH, "keras", epoch[1], time.monotonic_ns(), epoch[0])


def current(kind: str) -> Phase | None:
    """Return the current phase of this kind on this thread; ``None`` if there is none."""
    found: Phase | None = _within.__dict__.get(kind)
    return found


class Phase:
    """Context whose body is a phase of the run, unless one of its kind is around it on the same thread."""

    __slots__ = ("_kind", "_name", "_outer", "_started", "batch_is_told")

    def __init__(self, kind: str, name: str) -> None:
        self._kind = kind
        self._name = name
        self.batch_is_told = False
        """True if the size of the batches in it is known."""

    def __enter__(self) -> None:
        kinds = _within.__dict__
        self._outer = self._kind not in kinds
        kinds.setdefault(self._kind, self)
        self._started = time.monotonic_ns()

    def __exit__(self, *raised: object) -> None:
        if self._outer:
            _within.__dict__.pop(self._kind, None)
            tell(self._kind, self._name, self._started, time.monotonic_ns())


def is_within(kind: str) -> bool:
    """Return whether this thread is in a phase of this kind."""
    return kind in _within.__dict__


@guarded
def tell(kind: str, name: str, begun: int, ended: int, number: int | None = None) -> None:
    """Note a phase of this thread with its start and end on the monotonic clock, in ns."""
    if ended - begun >= SHORTEST_NS or kind in {TRAIN, EPOCH}:
        note_phase(kind, name, begun, ended, number)
