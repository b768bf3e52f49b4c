"""Step time by the classes of the TensorFlow profiler, so that users recognise familiar figures.

There are two sets of rules, both as the programs apply them, including defects (source: openxla/xprof,
`xplane_to_step_events`, `event_span`, `step_events_to_steps_db`; checked against their output on captures of CPUs and
GPUs):

* **xprof** (2.24): if the capture has a device, only the device's events count. Otherwise events of the host do. If
  there are more than five steps, the first and the last are dropped.
* **tensorboard** (its profiler plugin, as of TensorFlow 2.12): events of host and device count together, and all steps
  are kept.

Neither recognises the names that CUPTI gives copies, so a copy counts as device compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl

from traceviz.analyses.derived.frames import end_ns, having
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import OURS
from traceviz.analyses.steps.bases.section import BasisClass, BasisSteps
from traceviz.analyses.steps.bases.xprof_sweep import Spans, sweep
from traceviz.core.arrays.intervals import Array
from traceviz.trace import schema
from traceviz.trace.tables import ANNOTATED_STEPS_NOTE


@dataclass(frozen=True, slots=True)
class XprofRules:
    """Rules of one version of the profiler.

    Args:
        name: Name of the basis.
        title: The program and its version, for readers.
        merges_host: True if events of the host count although the capture has a device.
        knows_stages: True if annotated stages of an input pipeline count as input, besides tf.data's ``GetNext``.
        drops_edges: True if first and last step are dropped if there are more than five.
        blind: Limits of its figures if a device was captured, for readers.
        blind_without_device: Limits of its figures without a device.
    """

    name: str
    title: str
    merges_host: bool
    knows_stages: bool
    drops_edges: bool
    blind: str
    blind_without_device: str


_CPU_BLIND = (
    "input that tf.data does not deliver counts as host compute or all others, and an event without duration may turn "
    "the time after it into host compute"
)

_RULES = (
    XprofRules(
        name="tensorboard",
        title="TensorBoard's profiler plugin, as of TensorFlow 2.12",
        merges_host=True,
        knows_stages=False,
        drops_edges=False,
        blind="a step begins with its first kernel unless the host's marker encloses its device work, so that input "
        "awaited before counts nowhere, and copies count as device compute",
        blind_without_device=_CPU_BLIND,
    ),
    XprofRules(
        name="xprof",
        title="xprof 2.24",
        merges_host=False,
        knows_stages=True,
        drops_edges=True,
        blind="in captures with a GPU the host is left out, so that input, kernel launch and host compute are always "
        "0, and copies count as device compute",
        blind_without_device=_CPU_BLIND,
    ),
)
XPROF_RULES: Mapping[str, XprofRules] = MappingProxyType({rules.name: rules for rules in _RULES})
"""Rules by name of the basis."""


@dataclass(frozen=True, slots=True)
class XprofClass(BasisClass):
    """A class, and the kinds of events whose time it contains."""

    kinds: tuple[int, ...]


UNKNOWN, HOST_COMPUTE, HOST_TO_HOST, HOST_TO_DEVICE, HOST_PREPARE, COLLECTIVES, WAIT_INPUT = range(7)
DEVICE_COMPUTE = 7
"""Kinds of events in order of precedence. Kinds of the original that never occur here are left out."""
_MARKER, _IGNORED = -1, -2

CLASSES: tuple[XprofClass, ...] = (
    XprofClass("device_compute", "Device compute", (DEVICE_COMPUTE,)),
    XprofClass("device_to_device", "Device to device", ()),
    XprofClass("device_collectives", "Device collective communication", (COLLECTIVES,)),
    XprofClass("host_compute", "Host compute", (HOST_COMPUTE,)),
    XprofClass("kernel_launch", "Kernel launch", (HOST_PREPARE,)),
    XprofClass("infeed", "Input", (WAIT_INPUT, HOST_TO_DEVICE)),
    XprofClass("outfeed", "Output", ()),
    XprofClass("compile", "Compilation", ()),
    XprofClass("other", "All others", (UNKNOWN,)),
    XprofClass("host_to_host", "Host to host", (HOST_TO_HOST,)),
)
"""Classes in the order of the original's columns. It has no column for the last, so its columns may not add up."""

EXPLICIT_MARKER = r"^(?:train|test|TraceContext)[^/]*$"
"""Names of events that always mark a step."""
_UNMARKED = ("Profiled batch",)
"""Step markers that the originals do not recognise."""
_DROPPED = r"^(?:EagerExecute|EagerLocalExecute|EagerKernelExecute|FunctionRun)"
_TO_DEVICE = r"(?i:^memcpyhtod[^:]*$)|^[^:]+:InfeedEnqueue"
_HOST_COPY = r"(?i)^memcpyhtoh[^:]*$"
_PREPARE = r"(?i)^executorstate::process"
_INPUT = r"(?i)^iteratorgetnext"
_COLLECTIVE = r"(?i)^nccl"

NO_STEPS = "No step time measured. Therefore we cannot tell where the performance bottleneck is."
"""The originals' sentence if they find no step."""

KEEP_ALL = 5
"""Up to this many steps, none is dropped."""

_EVENT = ("process_id", "group_id", "start_ns", "end_ns")


@dataclass(frozen=True, slots=True, eq=False)
class XprofSteps(BasisSteps):
    """Steps by the profiler's rules. ``frame`` has a row per process and group, and also the column ``group_id``.

    Args:
        frame: See :class:`BasisSteps`, with the keys of :data:`CLASSES`.
        rules: The rules.
        has_device: True if the capture has a device.
        tf_data: True if the trace has iterators of tf.data.
        near: True if the profiler does not know the markers of the groups. Its own groups may then differ.
    """

    rules: XprofRules
    has_device: bool
    tf_data: bool
    near: bool = False


def unusable(trace: TraceView, rules: XprofRules) -> str | None:
    """Return the reason why these rules cannot be applied to the trace, or ``None``."""
    if trace.has_tpu:
        return f"what {rules.name} says of a TPU's steps is not reproduced; use --basis {OURS}"
    tables = [name for name in ("host_ops", *schema.DEVICE_WORK) if name in trace.tables]
    grouped = pl.col("group_id").is_not_null().any()
    if not any(trace.tables.scan(name).select(grouped).collect().item() for name in tables):
        return (
            f"{rules.name} breaks down what TensorFlow or JAX ran in marked steps, and this trace links no events to "
            f"such steps; use --basis {OURS}"
        )
    if _has_unknown_markers(trace) and not _has_gpu(trace):
        return f"{rules.name} does not know what marks the steps of this trace: “{NO_STEPS}” Use --basis {OURS}"
    return None


def xprof_steps(trace: TraceView, rules: XprofRules) -> XprofSteps:
    """Break down the steps of ``trace`` by ``rules``.

    A step is a group of events that the framework linked. Its time is that of the longest marker of the host. If a
    device worked for it, its time is the longest uninterrupted run of its device events instead, unless the marker
    encloses that. A step without device compute (or without host compute, if there is no device) is left out, as is a
    step cut by the edge of a time window.
    """
    # ``linked`` is false if no API call is known to have launched the work.
    columns = ("process_id", "group_id", "start_ns", "dur_ns", "device_id", "correlation_id")
    kernels = trace.frame("kernels", *columns, "name")
    names = kernels["name"].unique().cast(pl.String)
    nccl = names.filter(names.str.contains(_COLLECTIVE)).to_list()
    kind = pl.when(pl.col("name").is_in(nccl)).then(COLLECTIVES).otherwise(DEVICE_COMPUTE)
    kernels = kernels.with_columns(kind.cast(pl.Int8).alias("kind")).drop("name")
    compute = pl.lit(DEVICE_COMPUTE, pl.Int8).alias("kind")
    copies = [trace.frame(name, *columns).with_columns(compute) for name in ("memcpy", "memset", "graphs")]
    work = pl.concat([kernels, *copies]).filter(pl.col("group_id").is_not_null())
    device = work.select(
        *_EVENT[:3], end_ns(), "device_id", "kind", pl.col("correlation_id").is_not_null().alias("linked")
    )
    has_device = _has_gpu(trace)
    host = _host_events(trace, rules, has_device=has_device)
    at_edge = (pl.col("start_ns") <= 0) | (pl.col("end_ns") >= trace.span_ns)  # edge of the trace's time window
    cut = pl.concat([part.select(_EVENT) for part in (device, host)]).filter(at_edge & trace.is_window)
    if has_device:
        grouped = device[["group_id"]].unique()
        host = host.join(grouped, on="group_id", how="semi") if rules.merges_host else host.clear()
    markers = having(host, "kind", _MARKER)
    counted = device.filter(pl.col("linked")).select(*_EVENT, "kind")
    events = pl.concat([counted, host.filter(pl.col("kind") > UNKNOWN)])
    # Consecutive events of a device in one group are its steps, as in the originals.
    ordered = device.sort("device_id", "start_ns", "end_ns", descending=[False, False, True])
    same = pl.col("device_id", "group_id")
    run = pl.any_horizontal(same != same.shift(1)).fill_null(value=True).cum_sum().alias("run")
    runs = ordered.with_columns(run).group_by("run", maintain_order=True)
    device_runs = runs.agg(pl.col("process_id", "group_id", "start_ns").first(), pl.col("end_ns").max()).drop("run")
    steps = _step_times(_longest(markers), _longest(device_runs))
    frame = _broken_down(steps, events, DEVICE_COMPUTE if has_device else HOST_COMPUTE)
    frame = frame.join(cut, on="group_id", how="anti", maintain_order="left")
    if rules.drops_edges:
        place, count = pl.int_range(pl.len()), pl.len()
        is_edge = (count > KEEP_ALL) & ((place == 0) | (place == count - 1))
        frame = frame.filter(~is_edge.over("process_id"))
    named = _named(trace, frame, host_names=not has_device or rules.merges_host)
    tf_data = bool(trace.host_names["name"].str.starts_with("Iterator::").any())
    return XprofSteps(named, rules, has_device, tf_data, _has_unknown_markers(trace))


def _has_gpu(trace: TraceView) -> bool:
    return "gpu" in trace.tables.arrow("devices")["kind"].to_pylist()


def _has_unknown_markers(trace: TraceView) -> bool:
    return ANNOTATED_STEPS_NOTE in trace.tables.arrow("notes")["code"].to_pylist()


def _host_events(trace: TraceView, rules: XprofRules, *, has_device: bool) -> pl.DataFrame:
    """Return grouped operations and API calls of the host, including markers, with their ``kind``."""
    calls = trace.frame("cuda_api", "process_id", "group_id", "start_ns", "dur_ns")
    launch = HOST_PREPARE if has_device else HOST_COMPUTE
    calls = calls.with_columns(pl.lit(launch, pl.Int8).alias("kind"))
    ops = trace.frame("host_ops", "process_id", "group_id", "start_ns", "dur_ns", "name", "category")
    # Decided once per distinct name.
    names = trace.host_names["name"].unique()
    unmarked = pl.col("name").is_in(list(_UNMARKED))

    def called(pattern: str) -> pl.Expr:
        return pl.col("name").is_in(names.filter(names.str.contains(pattern)).to_list())

    kind = (
        pl.when(called(EXPLICIT_MARKER) | ((pl.col("category") == "step") & ~unmarked))
        .then(_MARKER)
        .when(called(_DROPPED))
        .then(_IGNORED)
        .when(called(_TO_DEVICE))
        .then(HOST_TO_DEVICE)
        .when(called(_HOST_COPY))
        .then(HOST_TO_HOST)
        .when(called(_PREPARE) & has_device)
        .then(HOST_PREPARE)
        .when(called(_INPUT) | ((pl.col("category") == "input") & rules.knows_stages))
        .then(WAIT_INPUT)
        .otherwise(HOST_COMPUTE)
    )
    ops = ops.filter(pl.col("group_id").is_not_null()).with_columns(kind.cast(pl.Int8).alias("kind"))
    both = pl.concat([part.select(*_EVENT[:3], end_ns(), "kind") for part in (calls, ops)])
    return both.filter(pl.col("group_id").is_not_null() & (pl.col("kind") != _IGNORED))


def _longest(markers: pl.DataFrame) -> pl.DataFrame:
    """Return the longest marker of each group, the earliest of equals. Markers without duration do not count."""
    length = pl.col("end_ns") - pl.col("start_ns")
    lasting = markers.filter(length > 0).sort(length, "start_ns", descending=[True, False])
    return lasting.unique("group_id", keep="first", maintain_order=True).select(_EVENT)


def _step_times(host: pl.DataFrame, device: pl.DataFrame) -> pl.DataFrame:
    """Return start and end of each step, in order of process and group."""
    both = host.join(device, on="group_id", how="full", coalesce=True, suffix="_device")
    encloses = (pl.col("start_ns") <= pl.col("start_ns_device")) & (pl.col("end_ns") >= pl.col("end_ns_device"))
    by_host = pl.col("start_ns_device").is_null() | encloses.fill_null(value=False)
    columns = [
        pl.when(by_host).then(pl.col(name)).otherwise(pl.col(f"{name}_device")).alias(name)
        for name in ("process_id", "start_ns", "end_ns")
    ]
    return both.select("group_id", *columns).sort("process_id", "group_id")


def _broken_down(steps: pl.DataFrame, events: pl.DataFrame, required: int) -> pl.DataFrame:
    """Return the time per class of each step that has an event of kind ``required``."""
    numbered = steps.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("number"))
    own = events.join(numbered[["group_id", "number"]], on="group_id", how="inner")
    columns = [own[name].to_numpy() for name in ("number", "start_ns", "end_ns", "kind")]
    spans = sweep(*columns)
    starts, ends = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    times = _times(spans, starts, ends)
    classes = [
        pl.Series(c.key, sum((times[:, kind] for kind in c.kinds), np.zeros(starts.size, np.int64))) for c in CLASSES
    ]
    complete = np.zeros(starts.size, dtype=bool)
    complete[spans.step[spans.kind == required]] = True
    frame = steps.select("process_id", "group_id", "start_ns", (pl.col("end_ns") - pl.col("start_ns")).alias("step_ns"))
    return frame.with_columns(classes).filter(pl.Series(complete))


def _times(spans: Spans, starts: Array, ends: Array) -> Array:
    """Return nanoseconds of each kind within each step, one row per step. Time without events is :data:`UNKNOWN`."""
    shared = np.minimum(spans.ends, ends[spans.step]) - np.maximum(spans.starts, starts[spans.step])
    width = DEVICE_COMPUTE + 1
    cells = spans.step * width + spans.kind
    sums = np.bincount(cells, np.maximum(shared, 0), starts.size * width)  # exact, because values are far below 2**53
    times = sums.astype(np.int64).reshape(-1, width)
    times[:, UNKNOWN] = (ends - starts) - times[:, UNKNOWN + 1 :].sum(axis=1)
    return times


def _named(trace: TraceView, frame: pl.DataFrame, *, host_names: bool) -> pl.DataFrame:
    """Return steps with their names: those of the host's markers if these count, else the numbers of the groups."""
    number = pl.col("group_id").cast(pl.String)
    if not host_names or "steps" not in trace.tables:
        return frame.with_columns(number.alias("step"))
    declared = trace.frame("steps", "group_id", "name").filter(pl.col("group_id").is_not_null())
    names = declared.select("group_id", pl.col("name").cast(pl.String).alias("step")).unique("group_id", keep="first")
    named = frame.join(names, on="group_id", how="left", maintain_order="left")
    return named.with_columns(pl.col("step").fill_null(number))
