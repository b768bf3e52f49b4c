"""Checks of the questions that a trace can answer: its tables, its markers, and how complete it is.

An empty table means that events of this kind were recorded, but none occurred. Nothing is known about an absent table:
most profilers, including nsys, omit a kind of event without any events, as if it had not been recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traceviz.analyses.capture.capture import Capture
from traceviz.analyses.capture.run import RunAnalysis
from traceviz.analyses.derived.capture.step_words import SOURCE_WORDS
from traceviz.analyses.derived.host.classes import sees_input
from traceviz.analyses.derived.launch.join import LAUNCH_KEY, graph_launches, without_graphs
from traceviz.analyses.derived.recorded.losses import DAMAGED, DIAGNOSTIC, is_damaged, losses
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.doctor.checks import Check
from traceviz.report import Skipped
from traceviz.trace.tables import TraceTables

RECORDED, MARKERS, COMPLETE = "recorded", "markers", "completeness"

_NONE_OF_A_KIND = re.compile(r"^(?>.*?\bNo ).+ events collected", re.MULTILINE)
"""nsys reports this for each process without events of a kind; a separate check covers whether there are any."""

_DECLARED = ("serving", "trace", "nvtx", "annotation", "counted")
"""Sources of declared steps; other steps are inferred from repetition."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Tables that answer one kind of question.

    Args:
        name: Contents of the tables.
        tables: Name of each table, with the display name of a row; one of the tables is enough.
        answers: Questions that they answer.
        fix: How to record them.
    """

    name: str
    tables: Mapping[str, str]
    answers: str
    fix: str


SUBJECTS = (
    Subject(
        "device work",
        {"kernels": "kernel", "memcpy": "transfer", "memset": "memory fill", "graphs": "whole graph"},
        "kernels, copies, idle gaps",
        "Record on a machine with a GPU: traceviz collect --with nsys, or a framework's profiler.",
    ),
    Subject("CUDA API", {"cuda_api": "call"}, "launches, waiting, allocation", "traceviz collect --with nsys"),
    Subject(
        "framework ops",
        {"host_ops": "host operation", "device_ops": "device operation"},
        "time by operation",
        "traceviz collect --with tensorflow, jax or torch",
    ),
    Subject("OS calls", {"os_calls": "call"}, "what threads wait for", "traceviz collect --with nsys"),
    Subject(
        "resources", {"samples": "sampled value"}, "CPU, memory, threads over time", "traceviz collect --with resources"
    ),
    Subject(
        "Python stacks",
        {"stacks": "sampled stack"},
        "the function and the line that take the host's time",
        "traceviz collect --with stacks",
    ),
    Subject(
        "phases",
        {"phases": "phase"},
        "start-up, saving, validation: the run outside of steps",
        "traceviz collect --with stacks",
    ),
    Subject(
        "memory",
        {"memory_events": "memory event"},
        "allocations",
        "Profile memory in the program itself (PyTorch: profile_memory=True); traceviz collect does not.",
    ),
)


def trace_checks(tables: TraceTables) -> Iterator[Check]:
    """Yield the checks of what ``tables`` can answer. Pure."""
    trace = TraceView(tables)
    yield from (_recorded(tables, subject) for subject in SUBJECTS)
    yield _steps(trace)
    yield _ranges(tables)
    yield _input(trace)
    yield from _graphs(trace)
    yield _whole(tables)
    yield _overhead(trace)
    # Other warnings of the readers and of the profiler; a separate check covers losses.
    lost = set(losses(tables))
    for note in tables.arrow("notes").to_pylist():
        is_known = note["message"] in lost or note["code"] == DAMAGED or _NONE_OF_A_KIND.search(note["message"])
        if note["severity"] in {"warning", "error"} and not is_known:
            name = "profiler" if note["code"] == DIAGNOSTIC else note["code"]
            yield Check(COMPLETE, name, "limited", note["message"])


def _recorded(tables: TraceTables, subject: Subject) -> Check:
    rows = {noun: tables.rows(name) for name, noun in subject.tables.items() if name in tables}
    if not rows:
        detail = f"None in the trace, so nothing on {subject.answers}."
        return Check(RECORDED, subject.name, "missing", detail, subject.fix)
    if not any(rows.values()):
        detail = f"Recorded, and there was no {' or '.join(rows)}: nothing on {subject.answers}."
        return Check(RECORDED, subject.name, "limited", detail)
    counts = ", ".join(counted(count, noun) for noun, count in rows.items() if count)
    return Check(RECORDED, subject.name, "ok", f"{subject.answers[:1].upper()}{subject.answers[1:]}: {counts}.")


def _steps(trace: TraceView) -> Check:
    steps = training_steps(trace)
    words = SOURCE_WORDS[steps.source]
    fix = "Let `traceviz collect` mark the steps, wrap each in an NVTX range 'step', or name yours with --step-marker."
    if steps.source == "none":
        return Check(MARKERS, "steps", "missing", "None found: no step time, and no verdict on the input.", fix)
    count = f"{steps.frame.height:,}, {words}"
    if steps.source not in _DECLARED:
        return Check(MARKERS, "steps", "limited", f"{count}: their bounds may be elsewhere.", fix)
    if steps.frame.height == 1:
        return Check(MARKERS, "steps", "limited", f"{count}: nothing to compare it with.", "Record more steps.")
    return Check(MARKERS, "steps", "ok", f"{count}.")


def _ranges(tables: TraceTables) -> Check:
    fix = "traceviz collect --with nsys makes ranges around steps, input, forward, backward and optimizer."
    if "nvtx" not in tables:
        return Check(MARKERS, "NVTX", "missing", "None in the trace.", fix)
    rows = tables.rows("nvtx")
    if not rows:
        detail = "Recorded, and there was none: the program has no ranges, or they were lost on their way."
        return Check(MARKERS, "NVTX", "limited", detail, "traceviz doctor says whether the program's nvtx fits nsys.")
    return Check(MARKERS, "NVTX", "ok", f"{rows:,} ranges and marks.")


def _input(trace: TraceView) -> Check:
    if sees_input(trace):
        return Check(MARKERS, "input", "ok", "Where the program takes its next batch is known.")
    detail = "No range and no operation loads input: waiting for it shows as idle time at best."
    fix = "Let `traceviz collect` mark it, wrap it in a range 'data loading', or name yours with --input-range."
    return Check(MARKERS, "input", "missing", detail, fix)


def _graphs(trace: TraceView) -> Iterator[Check]:
    """Check whether the kernels of CUDA graphs were recorded one by one; nothing if no graph was launched."""
    whole = trace.tables.rows("graphs")
    kernels = trace.frame("kernels", "graph_node_id", *LAUNCH_KEY)
    nodes = kernels.height - without_graphs(trace, kernels).height
    if whole or (graph_launches(trace) and not nodes):
        detail = "Graphs were launched, and none of their kernels is recorded by itself."
        if whole:
            detail = f"{whole:,} executions of graphs are recorded as a whole: which kernels ran in them is not known."
        yield Check(RECORDED, "CUDA graphs", "limited", detail, "nsys profile --cuda-graph-trace=node")
    elif nodes:
        yield Check(RECORDED, "CUDA graphs", "ok", f"Node by node: {nodes:,} kernels came from graphs.")


def _whole(tables: TraceTables) -> Check:
    lost = losses(tables)
    if not lost:
        return Check(COMPLETE, "events", "ok", "Neither the profiler nor the reader speaks of losses.")
    more = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
    if is_damaged(tables):
        detail = f"The file is cut off or broken: {lost[0]}{more}"
        return Check(COMPLETE, "events", "limited", detail, "Copy the file again, or record again.")
    detail = f"Events are missing; totals are lower bounds: {lost[0]}{more}"
    return Check(COMPLETE, "events", "limited", detail, "Record fewer steps, or trace fewer things.")


def _overhead(trace: TraceView) -> Check:
    """Check the profiler's own share of the judged time; the limit is that of analysis ``capture``."""
    capture = Capture().run(trace)
    if capture.overhead_ns is None or not capture.judged_ns:
        detail = "The trace does not say what the profiler itself took while it recorded."
        run = RunAnalysis().run(trace)
        cost_ns = None if isinstance(run, Skipped) else run.stop_cost_ns
        saving = f" Stopping and saving took {format_ns(cost_ns)} besides." if cost_ns else ""
        return Check(COMPLETE, "overhead", "limited", f"{detail}{saving}")
    share = capture.judged_overhead_ns / capture.judged_ns
    words = f"The profiler says that it took {format_ratio(share)} of the {capture.judged_words}"
    if share > Capture().overhead_share:
        return Check(COMPLETE, "overhead", "limited", f"{words}: times are too long.", "Trace fewer things.")
    return Check(COMPLETE, "overhead", "ok", f"{words}.")
