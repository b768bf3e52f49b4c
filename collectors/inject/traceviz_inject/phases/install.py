"""The hooks that show the parts of a training loop, by module of each framework.

The modules with the hooks are only imported with the framework: most Python processes below a training script never
import one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .. import hooks

if TYPE_CHECKING:
    from types import ModuleType

    from ..config import Settings

TORCH_HOOKS = {
    "torch.autograd": ("steps.torch", "hook_autograd"),
    "torch.compiler": ("steps.torch", "hook_compiler"),
    "torch.nn.modules.module": ("steps.torch", "hook_module"),
    "torch.optim.optimizer": ("steps.torch", "hook_optimizer"),
    "torch.utils.data.dataloader": ("steps.torch", "hook_dataloader"),
}
"""Module of torch -> our module and the function in it that installs hooks there: steps and ranges need them."""

PADDLE_HOOKS = {
    "paddle.base.dygraph.tensor_patch_methods": ("steps.paddle", "hook_tensor"),
    "paddle.base.executor": ("steps.paddle", "hook_executor"),
    "paddle.hapi.callbacks": ("steps.paddle", "hook_callbacks"),
    "paddle.io.dataloader.dataloader_iter": ("steps.paddle", "hook_iterators"),
    "paddle.io.reader": ("steps.paddle", "hook_reader"),
    "paddle.optimizer.optimizer": ("steps.paddle", "hook_optimizer"),
}
"""The same for PaddlePaddle."""

MXNET_HOOKS = {
    "mxnet.gluon.block": ("steps.mxnet", "hook_block"),
    "mxnet.gluon.data.dataloader": ("steps.mxnet", "hook_dataloader"),
    "mxnet.gluon.trainer": ("steps.mxnet", "hook_trainer"),
    "mxnet.io.io": ("steps.mxnet", "hook_iterators"),
    "mxnet.module.bucketing_module": ("steps.mxnet", "hook_module"),
    "mxnet.module.module": ("steps.mxnet", "hook_module"),
    "mxnet.module.python_module": ("steps.mxnet", "hook_module"),
    "mxnet.module.sequential_module": ("steps.mxnet", "hook_module"),
    "mxnet.ndarray.ndarray": ("steps.mxnet", "hook_array"),
}
"""The same for Apache MXNet."""

STEP_HOOKS = {**TORCH_HOOKS, **PADDLE_HOOKS, **MXNET_HOOKS}

BATCH_HOOKS = {
    "keras.src.backend.jax.trainer": ("phases.keras_parts", "hook_iterators"),
    "keras.src.trainers.epoch_iterator": ("phases.keras_parts", "hook_batches"),
    "tensorflow.python.data.ops.iterator_ops": ("phases.keras_parts", "hook_iterator"),
}
"""The same for hooks that show where Python takes a batch."""

RANGE_HOOKS = {
    **BATCH_HOOKS,
    "keras.src.backend.tensorflow.trainer": ("phases.keras_parts", "hook_trainer"),
    "keras.src.callbacks.callback_list": ("phases.keras_parts", "hook_callbacks"),
}
"""The same, with the hooks that only ranges need."""

SEEN_BY_TENSORFLOW = frozenset({"keras.src.backend.tensorflow.trainer"})
"""Modules in which the TensorFlow profiler itself records what the hook would show."""


def install(settings: Settings) -> None:
    """Wait for torch, PaddlePaddle and MXNet, and for modules that show parts of a loop if a collector marks them.

    NVTX ranges mark all parts. The JAX profiler marks the taking of batches, which happens outside of JAX.
    """
    collectors, parts = settings.collectors, list(BATCH_HOOKS) if "jax" in settings.collectors else []
    if "nvtx" in collectors:
        parts = [name for name in RANGE_HOOKS if name not in SEEN_BY_TENSORFLOW or "tensorflow" not in collectors]
    for module in (*STEP_HOOKS, *parts):
        hooks.when_imported(module, _hook)


def _hook(module: ModuleType) -> None:
    name, function = {**STEP_HOOKS, **RANGE_HOOKS}[module.__name__]
    getattr(import_module(f"..{name}", __package__), function)(module)
