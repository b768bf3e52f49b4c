"""GPUs, through NVIDIA's management library (package nvidia-ml-py, extra ``nvml``)."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceviz.collectors.sampler import metrics
from traceviz.collectors.sampler.metrics import Metric, Reading


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU: its number in the library, the library's handle, and its properties."""

    number: int
    handle: Any
    name: str
    uuid: str
    memory_bytes: int | None

    def facts(self) -> dict[str, Any]:
        """Return the facts that are stored about it."""
        return {"ordinal": self.number, "name": self.name, "uuid": self.uuid, "memory_bytes": self.memory_bytes}


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs that can be measured, or the reason why there are none.

    Args:
        library: The module ``pynvml``, initialised; ``None`` if it is missing.
        devices: The GPUs.
        reason: Why there are none.
    """

    library: Any
    devices: tuple[Gpu, ...]
    reason: str = ""

    def readings(self) -> Iterator[Reading]:
        """Return utilisation, memory, power, clocks and temperature of every GPU, without unsupported values."""
        return self._readings(_MEASURES)

    def traffic(self) -> Iterator[Reading]:
        """Return bytes per second over PCIe; measuring them takes 40 ms for each GPU."""
        return self._readings(_TRAFFIC)

    def close(self) -> None:
        """Release the library."""
        if self.library is not None:
            self.library.nvmlShutdown()

    def _readings(self, measures: Iterable[tuple[Metric, Measure]]) -> Iterator[Reading]:
        for gpu in self.devices:
            for metric, measure in measures:
                with contextlib.suppress(self.library.NVMLError):
                    yield Reading(metric, float(measure(self.library, gpu.handle)), gpu=gpu.number)


_SM, _MEMORY = 1, 2  # NVML_CLOCK_SM, NVML_CLOCK_MEM
_CORE_SENSOR = 0  # NVML_TEMPERATURE_GPU
_SENT, _RECEIVED = 0, 1  # NVML_PCIE_UTIL_TX_BYTES, ..._RX_BYTES: kilobytes per second

Measure = Callable[[Any, Any], float]
"""Reads a value of the GPU with a handle from the library."""

_MEASURES: tuple[tuple[Metric, Measure], ...] = (
    (metrics.GPU_UTILISATION, lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu),
    (metrics.GPU_MEMORY, lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used),
    (metrics.GPU_POWER, lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000),
    (metrics.GPU_SM_CLOCK, lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, _SM)),
    (metrics.GPU_MEMORY_CLOCK, lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, _MEMORY)),
    (metrics.GPU_TEMPERATURE, lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, _CORE_SENSOR)),
)
_TRAFFIC: tuple[tuple[Metric, Measure], ...] = (
    (metrics.GPU_RECEIVED, lambda nvml, gpu: nvml.nvmlDeviceGetPcieThroughput(gpu, _RECEIVED) * 1024),
    (metrics.GPU_SENT, lambda nvml, gpu: nvml.nvmlDeviceGetPcieThroughput(gpu, _SENT) * 1024),
)


_SIGNS = ("dev/nvidia[0-9]*", "proc/driver/nvidia/gpus/*", "usr/lib/wsl/lib/libnvidia-ml.so*")
"""If there is a GPU, one of these exists. ``/dev/nvidiactl`` is no sign: containers have it without a GPU."""


def has_gpu(root: Path = Path("/")) -> bool:
    """Return whether the machine has an NVIDIA GPU, even if no software to measure it is installed."""
    return any(next(root.glob(sign), None) is not None for sign in _SIGNS)


def find_gpus(visible: str | None = None, library: Any = None) -> Gpus:
    """Return the GPUs that a program may use.

    Args:
        visible: The program's ``CUDA_VISIBLE_DEVICES``; other GPUs of the machine are not measured.
        library: The module ``pynvml``, if it is loaded already.
    """
    if library is None and not has_gpu():
        return Gpus(None, (), "there is no NVIDIA GPU")
    try:
        nvml = library or importlib.import_module("pynvml")
    except ImportError:
        return Gpus(None, (), "the package nvidia-ml-py is not installed")
    try:
        nvml.nvmlInit()
        every = [_gpu(nvml, number) for number in range(nvml.nvmlDeviceGetCount())]
    except nvml.NVMLError as error:
        return Gpus(None, (), f"NVML says: {error}")
    devices = tuple(gpu for gpu in every if gpu is not None and _is_visible(gpu, visible))
    return Gpus(nvml, devices, "" if devices else "no GPU is visible to the program")


def _gpu(nvml: Any, number: int) -> Gpu | None:
    """Return one GPU, or ``None`` if it has fallen off the bus or may not be used."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(number)
        name, uuid = _text(nvml.nvmlDeviceGetName(handle)), _text(nvml.nvmlDeviceGetUUID(handle))
    except nvml.NVMLError:
        return None
    try:
        memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        memory = None
    return Gpu(number, handle, name, uuid, memory)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _is_visible(gpu: Gpu, visible: str | None) -> bool:
    """Return whether CUDA_VISIBLE_DEVICES names it, by number or by a prefix of its id; MIG parts of a GPU name all."""
    if visible is None:
        return True
    words = [word.strip() for word in visible.split(",") if word.strip()]
    if any(word.startswith("MIG-") for word in words):
        return True
    return any(word == str(gpu.number) or (word.startswith("GPU-") and gpu.uuid.startswith(word)) for word in words)


def gpu_facts(gpus: Gpus) -> Mapping[str, Any]:
    """Return the facts that are stored about the GPUs: their list, or why none was measured."""
    return {"gpus": [gpu.facts() for gpu in gpus.devices], "gpu_reason": gpus.reason}
