"""The kind of a capture, and its evidence. It is found first, since advice and verdict depend on it.

A capture of one forward pass, of a start-up or of a benchmark has no input pipeline to judge. A capture without device
work does not show an idle device. The first kind that the capture shows applies, in the order of :func:`capture_kind`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import polars as pl

from traceviz.analyses.derived.calls.host_calls import calls_named
from traceviz.analyses.derived.calls.short_names import function_of, shortened
from traceviz.analyses.derived.capture.training import TRAINING_EVENT, TRAINING_KERNEL
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.device.occupancy import kernels_by_name
from traceviz.analyses.derived.frames import having, intervals, outermost
from traceviz.analyses.derived.host.classes import sees_input
from traceviz.analyses.derived.recorded.losses import are_kernels_replayed, find_refusal, losses
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.serving import engine_calls
from traceviz.analyses.derived.steps.steps import INFERRED, MIN_STEPS
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.trace import schema
from traceviz.trace.names.kernel_names import COMMUNICATION

Kind = Literal[
    "summary",
    "counters",
    "serving",
    "other-program",
    "cpu-only",
    "no-device-work",
    "no-kernels",
    "filtered",
    "benchmark",
    "graph-capture",
    "start-up",
    "training",
    "one-kernel",
    "one-pass",
    "forward-pass",
    "inference",
    "unknown",
]

KIND_WORDS: dict[Kind, str] = {
    "summary": "a summary without events",
    "counters": "counters of kernels",
    "serving": "serving",
    "other-program": "events of an unknown program",
    "cpu-only": "CPU only",
    "no-device-work": "no device work",
    "no-kernels": "no kernels",
    "filtered": "collectives only",
    "benchmark": "a benchmark",
    "graph-capture": "graph capture",
    "start-up": "start-up only",
    "training": "training",
    "one-kernel": "one kernel",
    "one-pass": "one pass",
    "forward-pass": "one forward pass",
    "inference": "forward passes only",
    "unknown": "not known",
}
"""Kinds as text."""

TRAINS_NOTHING: frozenset[Kind] = frozenset(
    {"counters", "serving", "other-program", "filtered", "benchmark", "graph-capture", "one-kernel", "forward-pass"}
)
"""Kinds without an input pipeline of their own: their input is not judged."""

OF_ANY_PROGRAM = "Chrome trace format"
"""Producer of traces in Chrome's format that no known profiler wrote: only names show what their events are."""

EVENTS = (*schema.DEVICE_WORK, "cuda_api", "nvtx", "host_ops", "device_ops", "os_calls")
"""Tables whose rows are events. Steps, arguments, settings and samples only describe events; allocations and
synchronisations are already among them."""

TRAINING_MARKER = r"(?i)train"
"""Markers of training steps."""
PREDICTING = r"(?i)predict|inference"
"""Annotations of programs that apply a model."""
SERVING_KERNEL = r"(?i)paged_?attention|\bRPA-|decode_attention|splitkv"
"""Kernels that read the attention of earlier tokens from a cache: they run where a model generates text."""
MATRIX_OP = r"^aten::(?:addmm|mm|bmm|baddbmm|matmul|linear|conv|_?convolution|.*attention)"
"""Operators that every model uses."""
BENCHMARK = r"^\[param\||(?i:^bench_|^benchmark_|/benchmark_)"
"""Annotations of benchmarks: PARAM's, and functions named as benchmarks."""
COMPILED = "## Call CompiledFxGraph"
MODULE = "nn.Module: "

ONE_KERNEL_SHARE = 0.9
"""Minimum share of kernel time (with at least half of all runs) at which a capture is of one kernel."""
START_UP_SHARE = 0.5
"""Minimum share of the captured time before the first device work for a start-up capture, and"""
BUSY_SHARE = 0.05
"""maximum share with the device busy. A start-up capture has no steps either, and"""
LOOP_SHARE = 0.2
"""the time from the first to the last device work, idle time included, is less than this share."""
CAPTURED_SHARE = 0.5
"""Minimum share of launch calls inside a graph capture. If the trace has more kernels than calls outside of it, the
capture must also take this share of the captured time."""

RECORD_DEVICE = "Record the device as well: nsys profile --trace=cuda,nvtx,osrt."
RECORD_ACTIVITIES = "Record the device as well: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
RECORD_EVENTS = "Record again: nsys profile --trace=cuda,nvtx,osrt."
RECORD_LATER = (
    "Record later, when the program is at work: nsys profile --delay, or a schedule of torch.profiler that skips steps."
)


@dataclass(frozen=True, slots=True)
class CaptureKind:
    """The kind of a capture.

    Args:
        key: The kind.
        evidence: What shows it, as text.
        remedy: What to record instead, if another kind was wanted; may be empty.
        late_device: Device for which the others wait, if the capture shows only that; may be empty.
        late_share: Share of the time in collectives that the others wait for it, at most.
    """

    key: Kind
    evidence: str
    remedy: str = ""
    late_device: str = ""
    late_share: float = 0.0

    @property
    def words(self) -> str:
        """The kind as text."""
        return KIND_WORDS[self.key]

    @property
    def opening(self) -> str:
        """The sentence that opens a verdict; empty if the verdict says it already or it is obvious."""
        if self.key in {"summary", "serving", "training", "unknown"}:
            return ""
        if self.key in {"no-device-work", "no-kernels"}:
            return f"{self.words[0].upper()}{self.words[1:]} {_WERE[self.key]} captured: {self.evidence}."
        return f"{self.words[0].upper()}{self.words[1:]}: {self.evidence}."


UNKNOWN = CaptureKind("unknown", "nothing in it tells")
_WERE = {"no-device-work": "was", "no-kernels": "were"}


@once_per_trace
def capture_kind(trace: TraceView) -> CaptureKind:
    """Return the first kind that the capture shows."""
    searches = (
        _find_summary,
        _find_counters,
        _find_serving,
        _find_graph_capture,
        _without_device,
        _without_kernels,
        _find_filtered,
        _find_benchmark,
    )
    # If the trace is a part, or events were lost, the absence of an event shows nothing.
    lacks_work = any(window.lacks_first or window.lacks_last for window in trace.device_windows.values())
    is_whole = not (trace.is_window or lacks_work or losses(trace.tables))
    parts = (_find_start_up, _find_training, _find_one_kernel, _find_forward) if is_whole else ()
    results = (search(trace) for search in (*searches, *parts, _find_training, _find_loop))
    return next((kind for kind in results if kind is not None), UNKNOWN)


def why_no_device_work(trace: TraceView) -> str:
    """Return why device work cannot be judged; empty if it was captured."""
    if not trace.rank_busy:
        return "no device work was captured"
    if capture_kind(trace).key == "no-kernels":
        return "no kernels were captured, and events were lost: nobody knows when devices worked"
    return ""


def nothing_says_what_lanes_are(trace: TraceView) -> bool:
    """Return whether lanes may be anything, so that their time is not that of the threads of a program."""
    return capture_kind(trace).key == "other-program" and "op" not in trace.host_names["category"]


NOT_RECORDED = (
    *("disk-full", "not-started", "killed-while-recording"),
    *("capture-too-large", "profiler-taken", "not-injected"),
)
"""Codes of the notes in which a run and its collectors give reasons for unrecorded steps, the plainest first."""
STOPPED = ("run-failed", "run-killed", "run-interrupted", "run-timed-out")
"""Codes of the notes on a run that did not end normally."""


def find_run_trouble(trace: TraceView) -> str:
    """Return the plainest note on what went wrong in a run; empty if nothing did."""
    if trace.tables.run_facts().get("format") != "run":
        return ""
    messages = {note["code"]: note["message"] for note in reversed(trace.tables.arrow("notes").to_pylist())}
    return next((messages[code] for code in (*NOT_RECORDED, *STOPPED) if code in messages), "")


def _find_summary(trace: TraceView) -> CaptureKind | None:
    if "totals" not in trace.tables or trace.span_ns:
        return None
    return CaptureKind("summary", "it holds totals by name")


def _find_counters(trace: TraceView) -> CaptureKind | None:
    if not trace.rank_busy or not are_kernels_replayed(trace.tables):
        return None
    kernels = counted(trace.tables.rows("kernels"), "kernel")
    words = f"the profiler ran {kernels} one at a time and repeated each to measure it, so idle time is its own"
    return CaptureKind("counters", words, "For idle time, record without counters (nvprof -o FILE, nsys profile).")


def why_idle_is_unknown(trace: TraceView) -> str:
    """Return why idle time of the devices shows nothing of the program; empty if it does."""
    kind = capture_kind(trace)
    return kind.evidence if kind.key == "counters" else ""


def _find_serving(trace: TraceView) -> CaptureKind | None:
    calls = engine_calls(trace)
    if not calls.height:
        return None
    return CaptureKind("serving", f"{counted(calls.height, 'step')} of {calls['engine'][0]}")


def _without_device(trace: TraceView) -> CaptureKind | None:
    """Return why there is no device work: it was not used, not recorded, or lost."""
    if trace.rank_busy:
        return None
    if trouble := find_run_trouble(trace):
        return CaptureKind("unknown", trouble)
    launches = trace.api_calls("launch").height
    # No framework's profiler wrote the events, and nothing in them looks like the training of one program
    of_any = trace.tables.run_facts().get("producer") == OF_ANY_PROGRAM and not launches
    if of_any and not (sees_input(trace) or _trains(trace)):
        lanes = trace.frame("host_ops", "thread_id")["thread_id"].n_unique()
        return CaptureKind("other-program", f"{counted(lanes, 'lane')} in the format of Chrome's trace viewer")
    if refused := find_refusal(trace.tables):
        return CaptureKind("no-device-work", refused.words, refused.remedy)
    if backend := uses_unseen_devices(trace):
        words = f"the ranks of its job exchange data through {backend}, so devices work, and they were not recorded"
        return CaptureKind("no-device-work", words, RECORD_ACTIVITIES)
    if "host_ops" in trace.tables and not (trace.has_device_tables or launches or trace.tables.rows("devices")):
        return CaptureKind("cpu-only", "no device work was captured")
    return CaptureKind("no-device-work", *_why_no_device(trace, launches))


_BACKEND = "distributedInfo.backend"
"""Setting by which a PyTorch trace states how the ranks of its job exchange data: ``nccl``, ``cpu:gloo,cuda:nccl``."""
_OF_DEVICES = r"(?i)^(?:\w+:)?([nrhx]ccl)$"
"""Backends that only devices have. One that is listed next to one of CPUs may be unused."""


def uses_unseen_devices(trace: TraceView) -> str:
    """Return the library through which ranks exchange data of devices, if no device was recorded; else empty."""
    if trace.rank_busy or trace.has_device_tables:
        return ""
    settings = having(trace.frame("settings", pl.col("key", "value").cast(pl.String)), "key", _BACKEND)
    return "".join(settings["value"].str.extract(_OF_DEVICES).drop_nulls().str.to_uppercase().head(1))


WORKERS = 3
"""With training in at least this many lanes, the lanes are workers of a job, not threads of one program."""


def _trains(trace: TraceView) -> bool:
    """Return whether events of a trace of any program look like the training of one program."""
    pattern = f"{TRAINING_EVENT}|{TRAINING_MARKER}"
    if not _names_like(trace, pattern):
        return _marks_steps(trace)
    events = trace.frame("host_ops", "thread_id", pl.col("name").cast(pl.String))
    return events.filter(pl.col("name").str.contains(pattern))["thread_id"].n_unique() < WORKERS


def _why_no_device(trace: TraceView, launches: int) -> tuple[str, str]:
    """Return why no device activity was captured, and what to record instead."""
    if not any(trace.tables.rows(name) for name in EVENTS if name in trace.tables):
        if trace.tables.rows("samples"):
            return "only samples of resources were recorded", RECORD_DEVICE
        return "the capture holds no events at all", RECORD_EVENTS
    notes = trace.tables.arrow("notes").to_pylist()
    if any(note["code"] == COUNTERS for note in notes):
        return (
            "the kernels were measured with counters, which leaves them out",
            "To see the kernels, record without profiler_metrics.",
        )
    if launches:
        return f"the work of {counted(launches, 'launch call')} was not recorded", ""
    if not trace.has_device_tables:
        is_of_cuda = trace.tables.run_facts().get("format") in {"nsys", "nvprof"}
        return "CUDA was not traced" if is_of_cuda else "nothing of a device was recorded", RECORD_DEVICE
    if called := trace.tables.rows("cuda_api"):
        times = counted(called, "time")
        return f"the device's API was called {times}, and nothing was launched", ""
    if any("No CUDA events collected" in note["message"] for note in notes):
        return "CUDA was traced, and the profiler says that the process did not use it", ""
    return "a device would have been recorded, and nothing used one", ""


COUNTERS = "kernels-measured-with-counters"
"""Code of the note on kernels for which only counters were recorded."""


def _without_kernels(trace: TraceView) -> CaptureKind | None:
    """Recognize a capture that lost events and has copies only: the kernels may have been lost."""
    ran = trace.tables.rows("kernels") or trace.tables.rows("graphs")
    if ran or not (lost := losses(trace.tables)):
        return None
    copies = sum(trace.tables.rows(name) for name in ("memcpy", "memset") if name in trace.tables)
    first = lost[0].partition(". ")[0].rstrip(".")
    words = f"only {copies:,} copies and fills, and events were lost ({first})"
    return CaptureKind("no-kernels", words, "Record once more; where it says so, with larger buffers.")


def _find_filtered(trace: TraceView) -> CaptureKind | None:
    """Recognize a file from which all but the collectives were removed: devices and host did more than it shows."""
    others = [name for name in EVENTS if name not in {"kernels", "device_ops"} and name in trace.tables]
    if not trace.tables.rows("kernels") or any(trace.tables.rows(name) for name in others):
        return None
    if any(kernel.family != COMMUNICATION for kernel in trace.kernel_classes.values()):
        return None
    kernels = trace.frame("kernels", "device_id", "dur_ns").drop_nulls()
    devices = kernels.group_by("device_id").agg(pl.len().alias("runs"), pl.col("dur_ns").sum().alias("time"))
    devices = devices.sort("time", "device_id")
    whole = counted(kernels.height, "collective kernel")
    evidence = f"{whole} of {counted(devices.height, 'device')} were recorded, and nothing else of devices or the host"
    first, *others_ns = devices["time"].to_list()
    has_same_runs = devices["runs"].n_unique() == 1
    if len(others_ns) > 1 and has_same_runs and 2 * first <= others_ns[0]:
        name = device_names(trace)[devices["device_id"][0]]
        least, most = format_ns(others_ns[0]), format_ns(others_ns[-1])
        evidence += f". {name} spends {format_ns(first)} in them, the others {least} to {most}: it arrives last"
        share = sum(time - first for time in others_ns) / (first + sum(others_ns))
        return CaptureKind("filtered", evidence, "To see why it is late, record kernels of all kinds.", name, share)
    return CaptureKind("filtered", evidence, "To see why devices wait, record kernels of all kinds.")


def _find_benchmark(trace: TraceView) -> CaptureKind | None:
    names = _names_like(trace, BENCHMARK)
    if not names or _names_like(trace, TRAINING_EVENT):
        return None
    return CaptureKind("benchmark", f"annotated as such ({shortened(max(names, key=len))})")


def _find_graph_capture(trace: TraceView) -> CaptureKind | None:
    inside = trace.captured_calls("launch").height
    if not inside:
        return None
    launches = trace.api_calls("launch").height
    kernels = trace.tables.rows("kernels") if "kernels" in trace.tables else 0
    if inside < CAPTURED_SHARE * (inside + launches) or _marks_steps(trace):
        return None
    time = intervals(trace.graph_captures).total / max(1, trace.captured_ns)
    if kernels > launches and time < CAPTURED_SHARE:
        return None
    takes = f"; recording takes {format_ratio(time)} of the captured time" if time >= CAPTURED_SHARE else ""
    recorded = f"{format_ratio(inside / (inside + launches))} of the launch calls record into a graph and run nothing"
    return CaptureKind("graph-capture", f"{recorded}{takes}")


def _find_start_up(trace: TraceView) -> CaptureKind | None:
    if training_steps(trace).frame.height or not trace.rank_busy or not trace.rank_extents:
        return None
    starts, ends = zip(*trace.rank_extents.values(), strict=True)
    first = min(starts) - trace.device_window[0]
    busy = max(busy.total for busy in trace.rank_busy.values())
    if first < START_UP_SHARE * trace.captured_ns or busy >= BUSY_SHARE * trace.captured_ns:
        return None
    if max(ends) - min(starts) >= LOOP_SHARE * trace.captured_ns:
        return None
    before = f"{format_ns(first)} ({format_ratio(first / trace.captured_ns)})"
    working = format_ratio(busy / trace.captured_ns)
    evidence = (
        f"the first device work starts {before} into the {format_ns(trace.captured_ns)} captured, and devices work in "
        f"{working}"
    )
    return CaptureKind("start-up", evidence, RECORD_LATER)


def _find_training(trace: TraceView) -> CaptureKind | None:
    steps = training_steps(trace)
    if names := _names_like(trace, TRAINING_EVENT):
        return CaptureKind("training", f"{shortened(names[0])} was recorded")
    kernels = [name for name in trace.kernel_classes if re.search(TRAINING_KERNEL, name)]
    if kernels:
        return CaptureKind("training", f"the kernel {shortened(min(kernels))} ran")
    is_one_pass = steps.source == "passes" and steps.frame.height == 1  # over one batch, which a model is tried on
    if {"input", "pipeline"} & set(trace.host_names["category"].to_list()) and not is_one_pass:
        return CaptureKind("training", "batches are taken from an input pipeline")
    if steps.frame.height and re.search(TRAINING_MARKER, steps.marker):
        return CaptureKind("training", f"its steps are marked {shortened(steps.marker)}")
    return None


def _find_one_kernel(trace: TraceView) -> CaptureKind | None:
    if _marks_steps(trace) or not trace.tables.rows("kernels") or sees_input(trace):
        return None
    if trace.tables.rows("graphs"):  # graphs recorded as a whole contain other kernels
        return None
    durations = trace.frame("kernels", "dur_ns")["dur_ns"].fill_null(0).to_numpy()
    groups = kernels_by_name(trace)
    figures = pl.Series("runs", groups.counts), pl.Series("time", groups.sums(durations))
    by_name = groups.keys.with_columns(*figures)
    most = by_name.sort("time", "runs", descending=True).row(0, named=True)
    share = most["time"] / max(1, int(by_name["time"].sum()))
    if share < ONE_KERNEL_SHARE or 2 * most["runs"] < durations.size:
        return None
    name, runs = shortened(function_of(str(most["name"]))), counted(most["runs"], "run")
    return CaptureKind("one-kernel", f"{name} takes {format_ratio(share)} of kernel time ({runs})")


def _find_forward(trace: TraceView) -> CaptureKind | None:
    """Recognize forward passes of a model: kernels of generation, or PyTorch operators without a backward pass."""
    if kernels := [name for name in trace.kernel_classes if re.search(SERVING_KERNEL, name)]:
        return CaptureKind("inference", f"the kernel {shortened(min(kernels))} reads a cache of earlier tokens")
    if "pytorch" not in trace.frameworks or "host_ops" not in trace.tables:
        return None
    model, count, others = _find_model(trace)
    no_more = "but no backward pass and no optimizer were recorded"
    steps = training_steps(trace)
    if steps.source == "passes" and steps.frame.height == 1:
        return CaptureKind("one-pass", f"one batch is taken from the loader, {no_more}")
    if model:
        key: Kind = "forward-pass" if count + others == 1 else "inference"
        calls = f"{counted(count, 'call')} of {shortened(model)}"
        return CaptureKind(key, f"{calls}{f' and {others} of other modules' if others else ''}, {no_more}")
    if names := _names_like(trace, PREDICTING):
        return CaptureKind("inference", f"annotations such as {shortened(min(names, key=len))}, {no_more}")
    if _names_like(trace, MATRIX_OP):
        return CaptureKind("inference", f"operators of a model, {no_more}")
    return None


def _find_model(trace: TraceView) -> tuple[str, int, int]:
    """Return the outermost module or compiled graph with most time, its number of calls, and that of other ones."""
    for prefix in (MODULE, COMPILED):
        names = trace.host_names.filter(pl.col("name").str.starts_with(prefix))
        if not names.height:
            continue
        calls = calls_named(trace, names).with_columns((pl.col("start_ns") + pl.col("dur_ns")).alias("end_ns"))
        outer = outermost(calls.sort("thread_id", "start_ns", "end_ns", descending=[False, False, True]))
        name = pl.lit("a compiled graph") if prefix == COMPILED else pl.col("name").str.replace(r"_\d+$", "")
        by_name = outer.group_by(name.alias("model")).agg(pl.len().alias("calls"), pl.col("dur_ns").sum())
        most = by_name.sort("dur_ns", "model", descending=[True, False]).row(0, named=True)
        return most["model"].removeprefix(MODULE), most["calls"], outer.height - most["calls"]
    return "", 0, 0


def _find_loop(trace: TraceView) -> CaptureKind | None:
    steps = training_steps(trace)
    return CaptureKind("unknown", f"steps repeat ({shortened(steps.marker)})") if steps.frame.height else None


def _marks_steps(trace: TraceView) -> bool:
    """Return whether the program marks its own steps: it runs a loop of any kind."""
    steps = training_steps(trace)
    return steps.source not in INFERRED and steps.frame.height >= MIN_STEPS


def _names_like(trace: TraceView, pattern: str) -> list[str]:
    """Return the distinct names of operations, annotations and NVTX ranges that match ``pattern``, sorted."""
    known = trace.host_names.filter(pl.col("category").is_in(["op", "annotation"]))["name"]
    if "nvtx" in trace.tables:
        ranges = (
            trace.tables.scan("nvtx")
            .select(pl.col("name").unique())
            .collect(engine=trace.tables.engine)["name"]
            .cast(pl.String)
        )
        known = pl.concat([known, ranges.drop_nulls()])
    return known.filter(known.str.contains(pattern)).unique().sort().to_list()
