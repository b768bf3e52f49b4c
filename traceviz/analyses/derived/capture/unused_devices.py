"""Devices that exist and stay idle while a framework that could use them computes on the CPU.

Devices that were not recorded are not necessarily unused. Evidence is required: samples of the devices' utilisation
throughout the run, a capture that could hold device work but has no call that makes any, or a framework built without
device support. Programs without a framework, or with hidden devices, need no device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.capture.training import TRAINING_EVENT
from traceviz.analyses.derived.host.classes import class_times, sees_input
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.recorded.losses import find_refusal, losses
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.serving import engine_calls
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted

UTILISATION = "GPU utilisation"
"""Metric of samples: percentage of the time in which kernels of any program run on a GPU."""
HOOKS = "traceviz"
"""NVTX domain of the ranges that ``traceviz collect`` puts into programs of a framework."""
NO_CUDA = "No CUDA events collected"
"""Message of nsys if it traced CUDA and the program did not use it; it then also warns of missing events."""

_FRAMEWORK_VERSION = r"^version\.(torch|tensorflow|jax)$"
_ACCELERATORS = re.compile(r"^collector\.(?P<framework>torch|tensorflow|jax)\.processes\.\d+\.accelerators$")
"""Setting in which the hooks of ``traceviz collect`` record how a framework uses GPUs in its process."""
_SEEN = {
    "cpu-build": "{} is built for the CPU alone",
    "none-found": "{} finds none, as its log says",
    "not-used": "{} was never asked to use one",
}
_NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
_GPU_OF_MACHINE = r"^machine\.gpus\.\d+\.name$"
_CPU_BUILD = re.compile(r"\+cpu\b")
"""Suffix of PyTorch versions that were built for the CPU alone."""
_HIDDEN = {
    "env.CUDA_VISIBLE_DEVICES": re.compile(r"(-1.*|none|NoDevFiles)?"),
    "env.JAX_PLATFORMS": re.compile(r"cpu.*"),
    "env.JAX_PLATFORM_NAME": re.compile(r"cpu.*"),
}
"""Environment variables, and their values that hide all devices from a program."""

IDLE_PERCENT = 2.0
"""A device of at most this utilisation in every sample is unused; a desktop's display may use a little."""
LEAST_SAMPLES = 5
COVERED_SHARE = 0.5
"""Minimum number of samples, and minimum share of the captured time that they cover."""


@dataclass(frozen=True, slots=True)
class UnusedDevices:
    """Devices that a program of a framework does not use. Times in nanoseconds, summed over ranks.

    Args:
        names: Product name of each device, if known.
        count: Number of devices.
        shown_by: Evidence that they are not used, as text.
        trains: True if the program trains; otherwise it may be meant to run on the CPU.
        host_ns: Judged time in which the host computes.
        judged_ns: Judged time.
        judged_words: What the judged time covers, as text.
    """

    names: tuple[str, ...]
    count: int
    shown_by: str
    trains: bool
    host_ns: int
    judged_ns: int
    judged_words: str

    @property
    def words(self) -> str:
        """The devices as text: ``8 GPUs (8 × NVIDIA H100)``."""
        products = dict.fromkeys(self.names)
        listed = ", ".join(f"{self.names.count(name)} × {name}" if self.count > 1 else name for name in products)
        return f"{counted(self.count, 'GPU')}{f' ({listed})' if listed else ''}"


def unused_devices(trace: TraceView) -> UnusedDevices | None:
    """Return the GPUs if all are unused; ``None`` if one is used, evidence is missing, or none is needed."""
    if (
        trace.rank_busy
        or trace.is_window
        or find_refusal(trace.tables)
        or engine_calls(trace).height
        or not _computes(trace)
    ):
        return None
    settings = dict(trace.frame("settings", "key", "value").drop_nulls().cast(pl.String).iter_rows())
    if any(pattern.fullmatch(settings[key].strip()) for key, pattern in _HIDDEN.items() if key in settings):
        return None
    names, count = _devices(trace, settings)
    shown_by = _find_evidence(trace, settings) if count else ""
    if not shown_by:
        return None
    judged = {rank: judged_time(trace, rank) for rank in trace.ranks}
    events = (trace.host_names.filter(pl.col("category") != "python")["name"], trace.ranges["name"].unique())
    learns = any(bool(own.str.contains(TRAINING_EVENT).any()) for own in events)
    return UnusedDevices(
        names=names,
        count=count,
        shown_by=shown_by,
        trains=learns or sees_input(trace),
        host_ns=class_times(trace, judged)["host_compute"],
        judged_ns=sum(window.total for window in judged.values()),
        judged_words=judged_words(trace),
    )


def _computes(trace: TraceView) -> bool:
    """Return whether a framework runs: the trace names it, or the hooks found its steps."""
    keys = trace.frame("settings", "key")["key"].cast(pl.String)
    named = bool(trace.frameworks) or bool(keys.str.contains(_FRAMEWORK_VERSION).any())
    if not (named or (trace.ranges["domain"] == HOOKS).any()):
        return False
    return bool(training_steps(trace).frame.height) or (trace.host_names["category"] == "op").any()


def _devices(trace: TraceView, settings: dict[str, str]) -> tuple[tuple[str, ...], int]:
    """Return products and number of the GPUs in the trace, else of the GPUs of a run's machine."""
    rows = trace.frame("devices", "kind", "name").filter(pl.col("kind").cast(pl.String) == "gpu")
    if rows.height:
        return tuple(rows["name"].drop_nulls()), rows.height
    names = tuple(value for key, value in sorted(settings.items()) if re.search(_GPU_OF_MACHINE, key))
    return tuple(filter(None, names)), len(names)


def _find_evidence(trace: TraceView, settings: dict[str, str]) -> str:
    """Return the evidence that no device is used; empty if there is none, or if a device works."""
    samples = trace.frame("samples", "start_ns", "device_id", "metric", "value")
    samples = samples.filter(pl.col("metric").cast(pl.String) == UTILISATION)
    highest = max(samples["value"].to_list(), default=0.0)
    if highest > IDLE_PERCENT or "used" in _read_use(settings).values():
        return ""
    if _covers(trace, samples):
        times = samples["start_ns"].n_unique()
        return f"{counted(times, 'sample')} of its utilisation show {highest:.0f} % at most"
    if words := _evidence_of_frameworks(settings):
        return words
    if trace.has_device_tables and not trace.api_calls("launch", "blocking_copy", "async_copy").height:
        said = any(NO_CUDA in note["message"] for note in trace.tables.arrow("notes").to_pylist())
        if said or not losses(trace.tables):
            return "device work was traced, and not one call of the program makes any"
    return ""


def _read_use(settings: dict[str, str]) -> dict[str, str]:
    """Return each framework's use of GPUs. It counts as used if one of several processes uses some."""
    seen: dict[str, str] = {}
    for key, value in sorted(settings.items()):
        match = _ACCELERATORS.search(key)
        if match and seen.get(match["framework"]) != "used":
            seen[match["framework"]] = value
    return seen


def _evidence_of_frameworks(settings: dict[str, str]) -> str:
    """Return what all frameworks of the run report about GPUs; empty if one reports nothing."""
    seen = _read_use(settings)
    said = []
    for key, value in sorted(settings.items()):
        match = re.search(_FRAMEWORK_VERSION, key)
        if match is None:
            continue
        framework = match[1]
        state = seen.get(framework, "cpu-build" if _CPU_BUILD.search(value) else "")
        if state not in _SEEN:
            return ""
        said.append(_SEEN[state].format(f"{_NAMES[framework]} {value}"))
    return ", and ".join(said)


def _covers(trace: TraceView, samples: pl.DataFrame) -> bool:
    """Return whether every GPU was sampled through most of the capture."""
    kinds = trace.frame("devices", "device_id", "kind").filter(pl.col("kind").cast(pl.String) == "gpu")
    for device in kinds["device_id"]:
        own = samples.filter((pl.col("device_id") == device) & pl.col("start_ns").is_between(0, trace.span_ns))
        times = own["start_ns"]
        if own.height < LEAST_SAMPLES or times.max() - times.min() < COVERED_SHARE * trace.span_ns:  # type: ignore[operator]
            return False
    return bool(kinds.height)
