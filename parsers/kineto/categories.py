"""Meaning of the events of a Chrome-format trace, by category and name: all spellings of all years, as data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from traceviz.parsers.shared.events.launch_details import ROCM_COPY, ROCM_FILL
from traceviz.trace.schema import HOST_CATEGORIES


class Role(IntEnum):
    """Destination of an event."""

    IGNORED = 0
    """Frames around the capture, and events that only the profiler's own program can use."""
    HOST = 1
    """Table ``host_ops``."""
    API = 2
    """Table ``cuda_api``."""
    KERNEL = 3
    COPY = 4
    FILL = 5
    SYNC = 6
    OVERHEAD = 7
    SCOPE = 8
    """A range of the program, shown a second time around its device work: table ``device_ops``."""
    MEMORY = 9
    """Table ``memory_events``."""


DEVICE_ROLES = (Role.KERNEL, Role.COPY, Role.FILL)
"""Events that keep a device busy."""
ON_DEVICES = (*DEVICE_ROLES, Role.SYNC, Role.SCOPE)
"""Events whose pid and tid are a device and a stream."""
ON_THREADS = (Role.HOST, Role.API, Role.MEMORY)
"""Events whose pid and tid are those of the operating system."""

CODES = {category: code for code, category in enumerate(HOST_CATEGORIES)}
"""Code of each host category: its position."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Meaning of a category.

    Args:
        role: Destination of its events.
        category: Host category, for those of :attr:`Role.HOST`.
        domain: ``runtime`` or ``driver``, for calls.
    """

    role: Role
    category: str = "runtime"
    domain: str = "runtime"


_DRIVER = Meaning(Role.API, domain="driver")

COUNTED = "cuda_profiler_range"
"""Category of ranges that CUPTI's range profiler measured with counters.

Its events have no times of their own: Kineto divides the time of the capture evenly among them.
"""

HOST_NODE = "graph_host_node"
"""Category of callbacks that CUDA graphs call. They are shown on the stream that waits for them."""

CATEGORIES: dict[str, Meaning] = {
    # The host. Before 2022 the names were capitalised.
    "operator": Meaning(Role.HOST, "op"),
    "cpu_op": Meaning(Role.HOST, "op"),
    "hpu_op": Meaning(Role.HOST, "op"),
    "user_annotation": Meaning(Role.HOST, "annotation"),
    "python_function": Meaning(Role.HOST, "python"),
    "cpu_instant_event": Meaning(Role.IGNORED),  # events of allocators are recognised by name
    # Calls. Devices other than NVIDIA's and AMD's have their own runtimes.
    "runtime": Meaning(Role.API),
    "cuda_runtime": Meaning(Role.API),
    "hip_runtime": Meaning(Role.API),
    "xpu_runtime": Meaning(Role.API),
    "mtia_runtime": Meaning(Role.API),
    "glow_runtime": Meaning(Role.API),
    "hpu_runtime": Meaning(Role.API),
    "privateuse1_runtime": Meaning(Role.API),
    "driver": _DRIVER,
    "cuda_driver": _DRIVER,
    "xpu_driver": _DRIVER,
    "privateuse1_driver": _DRIVER,
    # Devices.
    "kernel": Meaning(Role.KERNEL),
    "concurrent_kernel": Meaning(Role.KERNEL),
    "mtia_ccp_events": Meaning(Role.KERNEL),
    "memcpy": Meaning(Role.COPY),
    "gpu_memcpy": Meaning(Role.COPY),
    "memset": Meaning(Role.FILL),
    "gpu_memset": Meaning(Role.FILL),
    "cuda_sync": Meaning(Role.SYNC),
    "gpu_user_annotation": Meaning(Role.SCOPE),
    "graph_event_node": Meaning(Role.IGNORED),  # a CUDA graph records an event, which takes no time
    HOST_NODE: Meaning(Role.HOST),
    # The profiler.
    "overhead": Meaning(Role.OVERHEAD),
    "trace": Meaning(Role.IGNORED),
    "cuda_event": Meaning(Role.IGNORED),
    "external_correlation": Meaning(Role.IGNORED),
    COUNTED: Meaning(Role.IGNORED),
    "fwdbwd": Meaning(Role.IGNORED),
    "ac2g": Meaning(Role.IGNORED),
    # Other programs.
    "fee": Meaning(Role.HOST, "python"),  # VizTracer: function entry and exit
    "node": Meaning(Role.HOST, "op"),  # ONNX Runtime
    "": Meaning(Role.HOST),
}
"""Meaning of each category, by its name in lower case."""

UNKNOWN = Meaning(Role.HOST)
"""Meaning of all other categories, for events on threads."""


DEVICE_NAMES: tuple[tuple[Role, str, str], ...] = (
    (Role.COPY, "", ROCM_COPY),
    (Role.FILL, "", ROCM_FILL),
    (Role.COPY, "mtia_ccp_events", "dma_"),
    (Role.SYNC, "mtia_ccp_events", "event_"),  # a unit of the device waits for another one, or signals it to continue
)
"""Kernels that compute nothing: the role, the category (empty for any), and the prefix of the name."""


OF_CUDA = frozenset(
    {"driver compiler", "runtime triggered module loading", "lazy function loading", "command buffer full"}
)
"""Names of overhead, in lower case, that CUDA causes without a profiler too."""

_PROFILER = re.compile(
    r"torch/profiler/profiler\.py\(\d+\): (?:start|stop|step|start_trace|stop_trace|prepare_trace|_transit_action)$"
)
_STEP = re.compile(r"ProfilerStep#(?P<number>\d{1,18})")
_INPUT = re.compile(
    r"enumerate\(\w*DataLoader\w*\)#\w*\.__next__|_DataLoaderIter\w+$|(?:\w+/)*IteratorGetNext(?:Sync)?$"
)
_COMPILE = re.compile(r"\(dynamo_timed\)$|^(TorchDynamo|AOTAutograd|Inductor|Triton)\b.*\bcompil", re.IGNORECASE)

MEMORY_NAME = "[memory]"
"""Name of the instants at which an allocator of the framework allocated or freed memory."""
OUT_OF_MEMORY_NAME = "[OutOfMemory]"
"""Name of the instants at which it ran out of memory."""


def host_category(name: str) -> str | None:
    """Return the host category that the name of an operation or annotation shows; ``None`` if its category decides.

    ``ProfilerStep#3`` is a step; the next batch of a DataLoader, ``enumerate(DataLoader)#....__next__``, is input;
    ``_DataLoaderIterMultiProcess`` is that of PaddlePaddle.
    """
    if _STEP.fullmatch(name):
        return "step"
    if _INPUT.match(name):
        return "input"
    return "compile" if _COMPILE.search(name) else None


def is_profiler(name: str) -> bool:
    """Return whether a Python frame is PyTorch's profiler at work: it starts, stops, or advances to the next step."""
    return _PROFILER.search(name) is not None


def step_number(name: str) -> int:
    """Return the number of the training step that ``name`` marks; -1 if it marks none."""
    match = _STEP.fullmatch(name)
    return int(match["number"]) if match else -1
