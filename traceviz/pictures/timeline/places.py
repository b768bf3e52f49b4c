"""Where in the timeline a finding is to be seen: a rule of its own for each code, and none where nowhere shows it.

A finding is about all of the judged time, a place is the stretch that shows it best: the longest wait for input, the
slowest rank's step. What only a sum over the run tells, such as threads that are too many, has no place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.capture.whole_run import OUTSIDE
from traceviz.analyses.derived.device.layouts import LAYOUT_KERNELS
from traceviz.analyses.derived.device.rank_names import rank_numbers
from traceviz.analyses.derived.frames import are_named, bounds, end_ns, parts_by, taken
from traceviz.analyses.derived.host.classes import IDLE_CLASSES, host_classes
from traceviz.analyses.derived.host.copy_calls import waiting_copies
from traceviz.analyses.derived.judged_time import judged_time, steady_time
from traceviz.analyses.derived.patterns import matches
from traceviz.analyses.derived.run_parts.parts import STARTUP, run_parts
from traceviz.analyses.derived.stacks.sampled import sampled_stacks
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import collective_skew
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.core.arrays.intervals import IntervalSet, union_all
from traceviz.core.units import format_ns
from traceviz.report import Finding
from traceviz.report.pictures.pictures import Place
from traceviz.trace.names.cuda_names import ApiKind
from traceviz.trace.names.kernel_names import KernelClass
from traceviz.trace.names.op_families import plain_name


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch of time, in a lane, and what it is."""

    start_ns: int
    end_ns: int
    process_id: int
    lane: str
    words: str


Rule = Callable[[TraceView, Finding], _Stretch | None]
Namer = Callable[[dict[str, object]], str]


def places(trace: TraceView, findings: Sequence[Finding]) -> tuple[Place, ...]:
    """The places of these findings, in their order: one for each code that has one."""
    found = {}
    for finding in findings:
        rule = RULES.get(finding.code)
        stretch = rule(trace, finding) if rule and finding.code not in found else None
        if stretch is not None:
            found[finding.code] = _place(trace, finding.code, stretch)
    return tuple(found.values())


def _place(trace: TraceView, code: str, stretch: _Stretch) -> Place:
    lasts = format_ns(stretch.end_ns - stretch.start_ns)
    label = f"{stretch.words}, {lasts}{_step_words(trace, stretch)}"
    return Place(code, stretch.start_ns, stretch.end_ns, stretch.lane, label)


def _step_words(trace: TraceView, stretch: _Stretch) -> str:
    """The step in which a stretch begins, in words; empty for none."""
    steps = training_steps(trace).frame
    inside = (steps["start_ns"] <= stretch.start_ns) & (steps["end_ns"] > stretch.start_ns)
    inside &= steps["process_id"] == stretch.process_id
    numbers = steps["step"].filter(inside)
    return f" in step {numbers[0]}" if len(numbers) else ""


def _judged(trace: TraceView, process: int) -> IntervalSet:
    """The time that a process is judged by; all of the capture where nothing limits it."""
    known = judged_time(trace, process)
    return known if len(known) or steady_time(trace) else IntervalSet.span(*trace.program_window)


def _of_class(words: str, *keys: str) -> Rule:
    """The longest stretch of some classes, in judged time, on any rank."""

    def rule(trace: TraceView, _: Finding) -> _Stretch | None:
        return max(_longest_members(trace, words, keys), key=_length, default=None)

    return rule


def _longest_members(trace: TraceView, words: str, keys: Sequence[str]) -> Iterator[_Stretch]:
    for process, classes in host_classes(trace).items():
        sets = classes.sets
        time = union_all(sets[key] for key in keys).intersect(_judged(trace, process))
        if len(time):
            at = int(time.durations.argmax())
            yield _Stretch(int(time.starts[at]), int(time.ends[at]), process, f"classes-{process}", words)


def _length(stretch: _Stretch) -> int:
    return stretch.end_ns - stretch.start_ns


def _longest(trace: TraceView, rows: pl.DataFrame, words: str, lane: Namer) -> _Stretch | None:
    """The longest of events that begin in judged time: ``start_ns, end_ns, process_id``, and what ``lane`` needs."""
    best: _Stretch | None = None
    for process, own in parts_by(rows, "process_id").items():
        starts, ends = bounds(own)
        inside = np.flatnonzero(_judged(trace, process).contains(starts))
        if not inside.size:
            continue
        at = int(inside[(ends - starts)[inside].argmax()])
        found = _Stretch(int(starts[at]), int(ends[at]), process, lane(own.row(at, named=True)), words)
        best = max(filter(None, (best, found)), key=_length)
    return best


def _of_thread(kind: str) -> Namer:
    return lambda row: f"{kind}-{row['process_id']}-{row['thread_id']}"


def _stream(row: dict[str, object]) -> str:
    stream = row["stream"]
    return f"device-{row['process_id']}-{row['device_id']}-{-1 if stream is None else stream}"


def _kernel(words: str, is_meant: Callable[[TraceView], list[str]]) -> Rule:
    """The longest of the kernels with some names."""

    def rule(trace: TraceView, _: Finding) -> _Stretch | None:
        names = is_meant(trace)
        if not names:
            return None
        kernels = trace.frame("kernels", "start_ns", "dur_ns", "process_id", "device_id", "stream", "name")
        rows = np.flatnonzero(are_named(kernels["name"], names).to_numpy())
        chosen = taken(kernels.drop("name"), rows).with_columns(end_ns())
        return _longest(trace, chosen, words, _stream)

    return rule


def _converting(trace: TraceView) -> list[str]:
    named = pl.DataFrame({"name": list(trace.kernel_classes)}, {"name": pl.String})
    return named.filter(matches(pl.col("name"), LAYOUT_KERNELS))["name"].to_list()


def _in_full_precision(trace: TraceView) -> list[str]:
    def is_full(one: KernelClass) -> bool:
        return one.family in {"gemm", "convolution"} and one.precision == "f32" and one.tensor_core is not True

    return [name for name, one in trace.kernel_classes.items() if is_full(one)]


def _small_grid(trace: TraceView, _: Finding) -> _Stretch | None:
    """The longest kernel with fewer blocks than its device has multiprocessors."""
    devices = trace.frame("devices", "device_id", "sm_count")
    grid = ("grid_x", "grid_y", "grid_z")
    columns = ("start_ns", "dur_ns", "process_id", "device_id", "stream", *grid)
    kernels = trace.frame("kernels", *columns).join(devices, on="device_id", how="left", maintain_order="left")
    blocks = pl.col(grid[0]).cast(pl.Int64) * pl.col(grid[1]).fill_null(1) * pl.col(grid[2]).fill_null(1)
    small = kernels.filter((blocks < pl.col("sm_count")).fill_null(value=False)).with_columns(end_ns())
    return _longest(trace, small, "the longest kernel with a small grid", _stream)


def _pageable_copy(trace: TraceView, _: Finding) -> _Stretch | None:
    columns = ("start_ns", "dur_ns", "process_id", "device_id", "stream", "src_memory", "dst_memory")
    copies = trace.frame("memcpy", *columns)
    is_pageable = (pl.col("src_memory") == "pageable") | (pl.col("dst_memory") == "pageable")
    return _longest(trace, copies.filter(is_pageable).with_columns(end_ns()), "the longest pageable copy", _stream)


def _waiting_copy(trace: TraceView, _: Finding) -> _Stretch | None:
    rows = waiting_copies(trace).select(pl.col("wait_ns").alias("start_ns"), "end_ns", "process_id", "thread_id")
    return _longest(trace, rows, "the longest wait in a copy call", _of_thread("api"))


def _call(words: str, *kinds: ApiKind) -> Rule:
    """The longest call of some kinds."""
    return lambda trace, _: _longest(trace, trace.api_calls(*kinds), words, _of_thread("api"))


def _phase(words: str, *kinds: str) -> Rule:
    """The longest phase of some kinds; they are judged by the whole run."""

    def rule(trace: TraceView, _: Finding) -> _Stretch | None:
        phases = trace.frame("phases", "start_ns", end_ns(), "process_id", pl.col("kind").cast(pl.String))
        own = phases.filter(pl.col("kind").is_in(kinds))
        if not own.height:
            return None
        start, end, process = own.select("start_ns", "end_ns", "process_id").row(
            (own["end_ns"] - own["start_ns"]).arg_max() or 0
        )
        return _Stretch(start, end, process, f"phases-{process}", words)

    return rule


def _part(words: str, *parts: str, in_loop: bool = False) -> Rule:
    """The longest stretch of some parts of the run, of the process that trains."""

    def rule(trace: TraceView, _: Finding) -> _Stretch | None:
        run = run_parts(trace)
        if run is None:
            return None
        time = union_all(run.times[part] for part in parts if part in run.times)
        time = time.intersect(run.loop) if in_loop else time
        if not len(time):
            return None
        at = int(time.durations.argmax())
        return _Stretch(int(time.starts[at]), int(time.ends[at]), run.process_id, f"run-{run.process_id}", words)

    return rule


def _named(words: str) -> Rule:
    """The longest call of what the finding names as the largest."""

    def rule(trace: TraceView, finding: Finding) -> _Stretch | None:
        name = next((fact.value for fact in finding.evidence if fact.key == "largest"), None)
        texts = trace.host_names["name"].to_list()
        meant = np.array([name in {text, plain_name(text)} for text in texts], bool)
        if not meant.any():
            return None
        ops = trace.frame("host_ops", "start_ns", "dur_ns", "process_id", "thread_id")
        rows = np.flatnonzero(meant[trace.host_name_rows])
        return _longest(trace, taken(ops, rows).with_columns(end_ns()), f"{words}, {name}", _of_thread("ops"))

    return rule


def _sampled(words: str, *kinds: str) -> Rule:
    """The longest stretch of samples of a training thread in which it does one of some kinds of things."""

    def rule(trace: TraceView, _: Finding) -> _Stretch | None:
        threads = {training_thread(trace, process) for process in trace.ranks}
        rows = sampled_stacks(trace).filter(pl.col("kind").is_in(kinds) & pl.col("thread_id").is_in(list(threads)))
        return _longest(trace, rows, words, _of_thread("stacks"))

    return rule


def _straggler(trace: TraceView, finding: Finding) -> _Stretch | None:
    """The slowest step of the rank that the finding names."""
    rank = next((fact.value for fact in finding.evidence if fact.key == "rank"), None)
    process = next((process for process, number in rank_numbers(trace).items() if number == rank), None)
    if process is None:
        return None
    steps = training_steps(trace).steady.filter(pl.col("process_id") == process)
    return _longest(trace, steps, f"the slowest step of rank {rank}", _steps)


def _uneven_step(trace: TraceView, _: Finding) -> _Stretch | None:
    """The step that takes one rank longest compared with the others."""
    steps = training_steps(trace).steady.with_columns((pl.col("end_ns") - pl.col("start_ns")).alias("dur_ns"))
    widest = steps.with_columns((pl.col("dur_ns").max() - pl.col("dur_ns").min()).over("step").alias("spread"))
    if not widest.height:
        return None
    step = widest["step"][int(widest["spread"].arg_max() or 0)]
    return _longest(trace, steps.filter(pl.col("step") == step), "the step in which ranks differ most", _steps)


def _steps(row: dict[str, object]) -> str:
    return f"steps-{row['process_id']}"


def _late_collective(trace: TraceView, _: Finding) -> _Stretch | None:
    """The longest wait of a rank in a collective for the last one."""
    arrivals = collective_skew(trace, RanksAnalysis().tolerance).arrivals if len(rank_numbers(trace)) > 1 else None
    if arrivals is None or not arrivals.height:
        return None
    waits = arrivals.select("process_id", "start_ns", (pl.col("start_ns") + pl.col("wait_ns")).alias("end_ns"))
    words = "the longest wait for a late rank"
    return _longest(trace, waits, words, lambda row: f"collectives-{row['process_id']}")


def _fullest(trace: TraceView, _: Finding) -> _Stretch | None:
    """Around the moment in which most memory of a pool was in use."""
    events = trace.frame("memory_events", "start_ns", "process_id", "in_use_bytes").drop_nulls("in_use_bytes")
    if not events.height:
        return None
    at = int(events["in_use_bytes"].arg_max() or 0)
    moment, around = int(events["start_ns"][at]), max(trace.span_ns // 100, 1)
    return _Stretch(
        max(moment - around, 0), moment + around, int(events["process_id"][at]), "", "around the highest use of memory"
    )


_INPUT_WAIT = _of_class("the longest wait for input", "input_wait")


def _input(trace: TraceView, finding: Finding) -> _Stretch | None:
    """The longest wait for input; where input is only seen as it is copied, the longest such copy."""
    return _INPUT_WAIT(trace, finding) or max(_input_copies(trace), key=_length, default=None)


def _input_copies(trace: TraceView) -> Iterator[_Stretch]:
    for process, classes in host_classes(trace).items():
        copies = classes.input_copies.intersect(_judged(trace, process))
        if len(copies):
            at = int(copies.durations.argmax())
            lane, words = f"classes-{process}", "the longest copy of input"
            yield _Stretch(int(copies.starts[at]), int(copies.ends[at]), process, lane, words)


_LAUNCH = _of_class("the longest kernel launch without device work", "kernel_launch")
_SYNC = _of_class("the longest wait for a device that then idles", "synchronisation")
_ALLOCATION = _of_class("the longest allocation without device work", "allocation")
_COMPILATION = _of_class("the longest compilation without device work", "compilation")
_COMMUNICATION = _of_class("the longest communication without computing", "communication")
_PARAMETERS = _of_class("the longest transfer of parameters without computing", "parameter_transfer")

RULES: dict[str, Rule] = {
    **dict.fromkeys(("TV101", "TV103", "TV104", "TV105", "TV106", "TV107", "TV108", "TV109", "TV404"), _input),
    "TV102": _of_class("the longest idle time that may be input", "host_blocked", "host_compute"),
    "TV201": _of_class(
        "the longest time without device work", *(c.key for c in IDLE_CLASSES if c.key != "communication")
    ),
    **dict.fromkeys(("TV202", "TV406", "TV407"), _LAUNCH),
    **dict.fromkeys(("TV203", "TV207"), _SYNC),
    "TV204": _small_grid,
    "TV205": _of_class("the longest work of the host without device work", "host_compute"),
    "TV206": _waiting_copy,
    **dict.fromkeys(("TV208", "TV211", "TV401"), _COMPILATION),
    "TV209": _of_class("the longest wait in the operating system", "host_blocked"),
    **dict.fromkeys(("TV210", "TV301", "TV304"), _ALLOCATION),
    "TV302": _pageable_copy,
    "TV303": _call("the longest blocking copy call", "blocking_copy"),
    "TV310": _kernel("the longest conversion of a layout", _converting),
    "TV402": _fullest,
    "TV405": _kernel("the longest matrix kernel in full precision", _in_full_precision),
    "TV409": _small_grid,
    "TV501": _straggler,
    "TV502": _uneven_step,
    "TV503": _late_collective,
    **dict.fromkeys(("TV504", "TV506"), _COMMUNICATION),
    "TV505": _PARAMETERS,
    "TV606": _named("the longest call of the operator with most time"),
    "TV607": _named("the longest call of what takes most time"),
    "TV610": _sampled("the longest input and output", "io", "saving"),
    "TV611": _sampled("the longest stretch of Python", "python"),
    "TV612": _sampled("the longest wait for the interpreter", "gil"),
    "TV613": _sampled("the longest wait for a lock or a thread", "lock", "sleep"),
    "TV614": _sampled("the longest logging", "logging"),
    "TV615": _phase("the longest garbage collection", "collection"),
    "TV701": _part("the longest time outside of steps", *OUTSIDE),
    "TV702": _part("the longest validation", "validation"),
    "TV703": _part("the longest saving in the loop", "saving", in_loop=True),
    "TV704": _part("the longest part of the start", *STARTUP),
    "TV705": _part("the longest time between steps", "between"),
    "TV902": _of_class("the longest work of the profiler", "profiler"),
}
"""How the place of a finding is found, by its code."""
