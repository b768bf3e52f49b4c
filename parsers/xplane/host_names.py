"""Kinds of events of host threads by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from traceviz.parsers.xplane.decode.raw import Array
from traceviz.trace.schema import HOST_CATEGORIES

CODES = {category: code for code, category in enumerate(HOST_CATEGORIES)}
"""Code of each category."""

MEMORY_NAMES = ("MemoryAllocation", "MemoryDeallocation")
"""Names of the instants that report allocations and releases of an allocator."""

_COPY = (
    r"MemcpyH|MemcpyD|MemCpy|memcpy|TransferTo|TransferFrom|BufferFromHost|InfeedEnqueue|OutfeedDequeue|LinearizeInto"
)
_COMPILE = (
    r".*(?:[Cc]ompil(?:e\b|er::|ation|eAndLoad)|compile_and_load|graph_building|trace_to_jaxpr)"
    r"|HLO passes|Codegen|lower_|[A-Z]\w*Pass$|LLVM|ptxas|BuildExecutable|RunHloPasses|Grappler"
)
_CATEGORIES = (
    ("python", r"\$"),
    ("input", r"(?i:IteratorGetNext)"),
    ("pipeline", r"Iterator::|InstantiatedCapturedFunction::|\w+(?:Produce|Consume)$"),
    ("transfer", rf"{_COPY}|DevicePut|(?!Eager).*(?:CopyToDevice|CopyToHost|CopyRawToHost|BufferFromHost)"),
    # A TensorFlow op: a scoped name and a type. XLA's passes have no such names.
    ("op", r"[A-Za-z0-9.][\w.\\/>-]*:[A-Z_]\w*$|PjitFunction\("),
    ("compile", _COMPILE),
)
_CATEGORY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _CATEGORIES))

_PROFILER = re.compile(
    r"\$(?:profiler\.py:\d+ (?:start|stop)_trace"  # JAX
    r"|profiler_v2\.py:\d+ (?:warmup|start|stop)"  # TensorFlow
    r"|[\w.]+:\d+ _(?:start|stop)_profiler)$"  # Keras' callback, around TensorFlow's
)

_ENDINGS = ("_trace", " warmup", " start", " stop", "_profiler")
"""Suffixes of the names that :data:`_PROFILER` matches: few names have them."""

_API = re.compile(r"(?:cu|cuda|hip)[A-Z]\w*")
_VERSION = re.compile(r"_v\d+$")
_OLD_COPY = re.compile(r"Memcpy(?P<source>[HDA])(?:2|to)(?P<target>[HDA])", re.IGNORECASE)


def category(name: str) -> str:
    """Return one of the categories of host operations; ``runtime`` if the name shows none."""
    if name.startswith("$"):  # most names of a capture with a Python tracer
        return "python"
    match = _CATEGORY.match(name)
    return match.lastgroup or "runtime" if match else "runtime"


def categories(names: Sequence[str]) -> Array:
    """Return the code of the category of each name (int8)."""
    return np.array([CODES[category(name)] for name in names] or [CODES["runtime"]], dtype=np.int8)


def is_profiler(name: str) -> bool:
    """Return whether a Python frame starts or stops the profiler."""
    return name.endswith(_ENDINGS) and _PROFILER.match(name) is not None


def api_name(name: str, *, blocking: bool, amd: bool = False) -> str:
    """Return the name of the driver call behind an event with a correlation id.

    Since 2021 the event has the name of the call, ``cuMemcpyHtoDAsync_v2``. Before, it had the name of the launched
    work: a copy (``MemcpyH2D``), a fill, or a kernel.

    Args:
        name: Name of the event.
        blocking: True if its details state that the call was not asynchronous.
        amd: True if the GPUs are AMD's: then the call is one of HIP, not of CUDA.
    """
    call = _API.match(name)
    if call:
        return _VERSION.sub("", call[0])
    copy = _OLD_COPY.match(name)
    library, ending = "hip" if amd else "cu", "" if blocking else "Async"
    if copy:
        return f"{library}Memcpy{copy['source'].upper()}to{copy['target'].upper()}{ending}"
    if name.startswith("Memcpy"):
        return f"{library}Memcpy{ending}"
    return f"{library}MemsetD8{ending}" if name.lower().startswith("memset") else f"{library}LaunchKernel"


def nvtx_parts(name: str) -> tuple[str, str]:
    """Return domain and text of an NVTX range, which is named ``NVTX:domain:text`` or ``NVTX:text``."""
    rest = name.removeprefix("NVTX:")
    domain, colon, text = rest.partition(":")
    return (domain, text) if colon and name != rest else ("", rest)
