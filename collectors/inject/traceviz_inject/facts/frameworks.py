"""The frameworks in this process: which of them is in use, and with how many threads.

Programs import frameworks that they do not use: Keras imports JAX for its sharding, TensorBoard imports TensorFlow.
Nothing here may make a framework choose devices or start threads: only its existing state is inspected.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from ..step_clock import CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TENSORFLOW, JAX, TORCH, PADDLE, MXNET = "tensorflow", "jax", "torch", "paddle", "mxnet"

OF_SOURCE = {
    "jax_call": JAX,
    "jax_step": JAX,
    "tf_call": TENSORFLOW,
    "tf_iterator": TENSORFLOW,
    "tf_step": TENSORFLOW,
    "mxnet_call": MXNET,
    "mxnet_loader": MXNET,
    "mxnet_optimizer": MXNET,
    "paddle_call": PADDLE,
    "paddle_fit": PADDLE,
    "paddle_loader": PADDLE,
    "paddle_optimizer": PADDLE,
    "torch_call": TORCH,
    "torch_gradients": TORCH,
    "torch_loader": TORCH,
    "torch_optimizer": TORCH,
}
"""Source of steps -> framework that makes them; Keras reports its framework itself."""


def driving() -> str | None:
    """Return the framework that makes the steps; ``None`` before the first step."""
    source = CLOCK.source
    if source != "keras":
        return OF_SOURCE.get(source or "")
    config = sys.modules.get("keras.src.backend.config")
    name: str = getattr(config, "backend", lambda: TENSORFLOW)()  # Keras 2 knows only one
    return name


def is_at_work(framework: str) -> bool:
    """Return whether ``framework`` makes the steps, or was used in any way besides its import."""
    return driving() == framework or _ACTS[framework]()


def _tensorflow_acts() -> bool:
    """Return whether it has executed an operation, or builds graphs, whose runs are not visible."""
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is None:
        return False
    return context.default_execution_mode != context.EAGER_MODE or _tensorflow_has_devices(context)


def _tensorflow_has_devices(context: Any) -> bool:
    return bool(getattr(context.context_safe(), "_initialized", False))


def _jax_acts() -> bool:
    """Return whether it has chosen its devices."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


def _acts(framework: str) -> bool:
    """Return whether it was used, or imported with no steps yet: not all of its functions are watched."""
    steps = sys.modules.get(f"{__package__.rpartition('.')[0]}.steps.{framework}")
    if steps is not None and steps.LOOP.is_seen:
        return True
    spec = getattr(sys.modules.get(framework), "__spec__", None)
    return driving() is None and spec is not None and not getattr(spec, "_initializing", False)


_ACTS: dict[str, Callable[[], bool]] = {
    JAX: _jax_acts,
    TENSORFLOW: _tensorflow_acts,
    **{framework: partial(_acts, framework) for framework in (TORCH, PADDLE, MXNET)},
}


def threads(framework: str | None) -> dict[str, int] | None:
    """Return the number of threads that a framework in use has.

    Returns:
        ``intra_op`` within one operation and ``inter_op`` for concurrent operations. 0 if the framework decides, and
        absent if it has no such setting. ``None`` for a framework that cannot be asked.
    """
    ask = _ASK.get(framework or "")
    module = sys.modules.get(framework or "")
    return ask(module) if ask is not None and module is not None else None


def _threads_of_torch(torch: Any) -> dict[str, int]:
    return {"intra_op": int(torch.get_num_threads()), "inter_op": int(torch.get_num_interop_threads())}


def _threads_of_tensorflow(tensorflow: Any) -> dict[str, int] | None:
    """Return the configured numbers; before the first operation, asking would make it search for devices."""
    if not _tensorflow_acts():
        return None
    threading = tensorflow.config.threading
    return {
        "intra_op": int(threading.get_intra_op_parallelism_threads()),
        "inter_op": int(threading.get_inter_op_parallelism_threads()),
    }


def _threads_of_jax(jax: Any) -> dict[str, int]:  # noqa: ARG001 it is set from outside
    """Return the threads of XLA on the CPU: 1 with the flag for single-threaded operations, else the pool size."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    if "--xla_cpu_multi_thread_eigen=false" in flags:
        return {"intra_op": 1}
    pool = os.environ.get("NPROC", "")
    return {"intra_op": int(pool) if pool.isdigit() else 0}


_ASK = {JAX: _threads_of_jax, TENSORFLOW: _threads_of_tensorflow, TORCH: _threads_of_torch}


def accelerators(framework: str) -> str | None:
    """Return how a framework in use uses GPUs and TPUs, as far as it has searched for them.

    Returns:
        ``used``; ``none-found``; ``not-used`` if it was never asked for any; ``cpu-build`` if it can use none; ``None``
        for a framework that is not loaded, or has not searched yet.
    """
    look = _LOOK.get(framework)
    module = sys.modules.get(framework)
    return look(module) if look is not None and module is not None else None


def _accelerators_of_torch(torch: Any) -> str:
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return "cpu-build"
    return "used" if torch.cuda.is_initialized() else "not-used"


def _accelerators_of_tensorflow(tensorflow: Any) -> str | None:
    """Return ``used`` if it found GPUs or TPUs when it chose its devices: operations go there."""
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is None or not _tensorflow_has_devices(context):
        return None
    found = [device for device in tensorflow.config.list_logical_devices() if device.device_type in {"GPU", "TPU"}]
    return "used" if found else "none-found"


def _accelerators_of_jax(jax: Any) -> str | None:
    """Return ``used`` if its default devices, the best that it found, are accelerators."""
    if not _jax_acts():
        return None
    return "none-found" if jax.default_backend() == "cpu" else "used"


def _accelerators_of_paddle(paddle: Any) -> str | None:
    """Return ``used`` if its current device, to which operations go, is an accelerator."""
    if not (paddle.is_compiled_with_cuda() or paddle.is_compiled_with_xpu()):
        return "cpu-build"
    return "not-used" if str(paddle.device.get_device()).startswith("cpu") else "used"


def _accelerators_of_mxnet(mxnet: Any) -> str | None:
    """Return ``cpu-build`` for a build without GPUs; models lie on the devices that the program chooses."""
    return None if mxnet.runtime.Features().is_enabled("CUDA") else "cpu-build"


_LOOK = {
    JAX: _accelerators_of_jax,
    MXNET: _accelerators_of_mxnet,
    PADDLE: _accelerators_of_paddle,
    TENSORFLOW: _accelerators_of_tensorflow,
    TORCH: _accelerators_of_torch,
}
