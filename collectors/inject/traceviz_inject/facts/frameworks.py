"""The frameworks in this process: which of them is at work, and with how many threads.

Programs import frameworks that they do not use: Keras imports JAX for its sharding, TensorBoard imports TensorFlow.
Nothing here may make one of them choose devices or start threads: only what it has already done is looked at.
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
    "torch_loader": TORCH,
    "torch_optimizer": TORCH,
}
"""Source of steps -> framework that makes them; Keras says itself which one it uses."""


def driving() -> str | None:
    """The framework that makes the steps; ``None`` before the first."""
    source = CLOCK.source
    if source != "keras":
        return OF_SOURCE.get(source or "")
    config = sys.modules.get("keras.src.backend.config")
    name: str = getattr(config, "backend", lambda: TENSORFLOW)()  # Keras 2 knows only one
    return name


def is_at_work(framework: str) -> bool:
    """Whether ``framework`` makes the steps, or has done anything else than to be imported."""
    return driving() == framework or _ACTS[framework]()


def _tensorflow_acts() -> bool:
    """It has executed an operation; or it builds graphs, and nothing tells when they run."""
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is None:
        return False
    return context.default_execution_mode != context.EAGER_MODE or _tensorflow_has_devices(context)


def _tensorflow_has_devices(context: Any) -> bool:
    return bool(getattr(context.context_safe(), "_initialized", False))


def _jax_acts() -> bool:
    """It has chosen its devices."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


def _acts(framework: str) -> bool:
    """Something of it was used; or it was imported and nothing makes steps: not all of its functions are watched."""
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
    """How many threads a framework that is at work uses.

    Returns:
        ``intra_op`` within one operation and ``inter_op`` for operations beside each other; 0 where the number is left
        to the framework, and absent where it has no such setting; ``None`` for a framework that cannot be asked.
    """
    ask = _ASK.get(framework or "")
    module = sys.modules.get(framework or "")
    return ask(module) if ask is not None and module is not None else None


def _threads_of_torch(torch: Any) -> dict[str, int]:
    return {"intra_op": int(torch.get_num_threads()), "inter_op": int(torch.get_num_interop_threads())}


def _threads_of_tensorflow(tensorflow: Any) -> dict[str, int] | None:
    """As they were set; before the first operation the question would make it look for its devices."""
    if not _tensorflow_acts():
        return None
    threading = tensorflow.config.threading
    return {
        "intra_op": int(threading.get_intra_op_parallelism_threads()),
        "inter_op": int(threading.get_inter_op_parallelism_threads()),
    }


def _threads_of_jax(jax: Any) -> dict[str, int]:  # noqa: ARG001 it is set from outside
    """Of XLA on the CPU: the flag that leaves one thread to an operation, else the size that its pool is given."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    if "--xla_cpu_multi_thread_eigen=false" in flags:
        return {"intra_op": 1}
    pool = os.environ.get("NPROC", "")
    return {"intra_op": int(pool) if pool.isdigit() else 0}


_ASK = {JAX: _threads_of_jax, TENSORFLOW: _threads_of_tensorflow, TORCH: _threads_of_torch}


def accelerators(framework: str) -> str | None:
    """What a framework that is at work makes of GPUs and TPUs, as far as it has looked for them.

    Returns:
        ``used``; ``none-found``; ``not-used`` where it was never asked for any; ``cpu-build`` where it can use none;
        ``None`` for a framework that is not there, or has not looked yet.
    """
    look = _LOOK.get(framework)
    module = sys.modules.get(framework)
    return look(module) if look is not None and module is not None else None


def _accelerators_of_torch(torch: Any) -> str:
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return "cpu-build"
    return "used" if torch.cuda.is_initialized() else "not-used"


def _accelerators_of_tensorflow(tensorflow: Any) -> str | None:
    """Operations go to the GPUs that it found when it chose its devices."""
    context = sys.modules.get("tensorflow.python.eager.context")
    if context is None or not _tensorflow_has_devices(context):
        return None
    found = [device for device in tensorflow.config.list_logical_devices() if device.device_type in {"GPU", "TPU"}]
    return "used" if found else "none-found"


def _accelerators_of_jax(jax: Any) -> str | None:
    """Its default devices are the best that it found."""
    if not _jax_acts():
        return None
    return "none-found" if jax.default_backend() == "cpu" else "used"


def _accelerators_of_paddle(paddle: Any) -> str | None:
    """Operations go to the device that it says."""
    if not (paddle.is_compiled_with_cuda() or paddle.is_compiled_with_xpu()):
        return "cpu-build"
    return "not-used" if str(paddle.device.get_device()).startswith("cpu") else "used"


def _accelerators_of_mxnet(mxnet: Any) -> str | None:
    """Models lie where the program puts them: only a build without GPUs says anything."""
    return None if mxnet.runtime.Features().is_enabled("CUDA") else "cpu-build"


_LOOK = {
    JAX: _accelerators_of_jax,
    MXNET: _accelerators_of_mxnet,
    PADDLE: _accelerators_of_paddle,
    TENSORFLOW: _accelerators_of_tensorflow,
    TORCH: _accelerators_of_torch,
}
