"""What reports say of steps: where they come from, that they are few, why there are none, and how to mark them."""

from __future__ import annotations

from traceviz.analyses.derived.capture.kind import BENCHMARK, NOT_RECORDED, STOPPED, Kind, capture_kind
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.steps.search import (
    count_cut_steps,
    count_lost_steps,
    count_unseen_steps,
    covered_by_steps,
    slight_steps,
)
from traceviz.analyses.derived.steps.steps import Steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted, format_ratio

SOURCE_WORDS = {
    "serving": "steps of a serving engine",
    "trace": "declared by the trace",
    "nvtx": "NVTX ranges",
    "annotation": "annotations of the program",
    "nvtx_cycle": "inferred from repeating NVTX ranges",
    "module_cycle": "inferred from repeating compiled modules",
    "counted": "counted in the program",
    "host_cycle": "inferred from repeating calls of the program",
    "kernel_cycle": "inferred from repeating kernels",
    "none": "none found",
}
"""Where steps come from, for people."""

HOW_TO_MARK = (
    "Mark the steps: wrap each iteration in an NVTX range named 'step' (nvtx.annotate('step') or "
    "torch.cuda.nvtx.range_push('step')), or name your own ranges with --step-marker REGEX."
)
"""Advice where steps are missing or uncertain."""

HOW_TO_MARK_IN_RUN = (
    "Mark the steps: wrap each iteration in traceviz.step_range(number), which tells nsys and the profilers of "
    "frameworks; of a program without steps, record a time (--delay, --duration)."
)
"""Advice where ``traceviz collect`` recorded a program whose framework is unknown."""

HOW_TO_MARK_WITHOUT_TORCH = HOW_TO_MARK.replace(" or torch.cuda.nvtx.range_push('step')", "")
HOW_TO_MARK_NATIVE = HOW_TO_MARK_WITHOUT_TORCH.replace("nvtx.annotate('step')", "nvtxRangePush and nvtxRangePop")
"""The same for programs that do not use PyTorch, and for those that do not run Python."""

SEES_NVTX_ONLY = frozenset({"nsys", "nvprof"})
"""Formats whose profilers record NVTX and no annotations of a framework."""

HOW_TO_MARK_IN = {
    "pytorch": (
        "Mark the steps: call prof.step() of torch.profiler.profile at the end of each iteration; or name your own "
        "annotations (torch.profiler.record_function) with --step-marker REGEX."
    ),
    "tensorflow": (
        'Mark the steps: with tf.profiler.experimental.Trace("train", step_num=i, _r=1) around each iteration, or the '
        "TensorBoard callback of Keras (profile_batch=(10, 20)); or name your own annotations with --step-marker REGEX."
    ),
    "jax": (
        'Mark the steps: with jax.profiler.StepTraceAnnotation("train", step_num=i) around each iteration; or name '
        "your own annotations with --step-marker REGEX."
    ),
}
"""Advice by framework."""

MAY_HAVE_STEPS: frozenset[Kind] = frozenset({"cpu-only", "training", "inference", "unknown"})
"""Kinds of captures whose steps are worth marking."""

FEW_STEPS = 3
"""Fewer steps are judged, with a caution."""


def how_to_mark(trace: TraceView) -> str:
    """How the program of this trace can mark its steps."""
    facts = trace.tables.run_facts()
    if facts.get("format") in SEES_NVTX_ONLY:
        likely = likely_frameworks(trace)
        return HOW_TO_MARK if "pytorch" in likely else HOW_TO_MARK_WITHOUT_TORCH if likely else HOW_TO_MARK_NATIVE
    known = next((words for name, words in HOW_TO_MARK_IN.items() if name in trace.frameworks), None)
    if known or facts.get("format") == "run":
        return known or HOW_TO_MARK_IN_RUN
    if "host_ops" not in trace.tables:
        return HOW_TO_MARK
    return (
        'Mark the steps: with tf.profiler.experimental.Trace("train", step_num=i, _r=1) or '
        'jax.profiler.StepTraceAnnotation("train", step_num=i) around each iteration; or name your own annotations '
        "with --step-marker REGEX."
    )


def why_no_steps(trace: TraceView) -> tuple[str, str]:
    """Why there are no steps to judge, and what to do about it; the latter may be empty."""
    if count_cut_steps(trace):
        cut = "the step there is cut by an edge of it" if count_cut_steps(trace) == 1 else "all are cut by its edges"
        return f"the window holds no whole step: {cut}", "Choose an earlier --from or a later --to."
    if count_lost_steps(trace):
        steps = counted(count_lost_steps(trace), "step")
        return f"the file is cut off, and device work of its {steps} is missing", "Copy or write it whole."
    if count_unseen_steps(trace):
        steps = counted(count_unseen_steps(trace), "step")
        return (
            f"what the devices did in its {steps} was not recorded",
            "Begin the capture with a wait for the devices, and end it with one.",
        )
    if slight_steps(trace) is not None:
        return f"what repeats {covers_little(trace)}", how_to_mark(trace)
    if "totals" in trace.tables and not trace.span_ns:
        return "the file is a summary without events", ""
    remedy = how_to_mark(trace) if may_have_steps(trace) else capture_kind(trace).remedy
    return _why_not_recorded(trace) or ("no steps were found", remedy)


def covers_little(trace: TraceView) -> str:
    """What inferred steps cover, in words."""
    covered = covered_by_steps(trace)
    assert covered is not None
    if covered.work is not None and covered.work < covered.time:
        return f"covers {format_ratio(covered.work)} of the device work"
    return f"covers {format_ratio(covered.time)} of the {_EXTENT if covered.work is not None else 'captured time'}"


_EXTENT = "time from first to last device work"


def may_have_steps(trace: TraceView) -> bool:
    """Whether the program may run steps that can be marked: a benchmark of one kernel, for one, does not."""
    kind = capture_kind(trace)
    if kind.key != "no-device-work":
        return kind.key in MAY_HAVE_STEPS
    if trace.tables.run_facts().get("format") == "run":
        return True
    is_benchmark = trace.host_names["name"].str.contains(BENCHMARK).any()
    own = trace.ranges["name"].str.starts_with("MPI_").not_().any() or trace.host_names.height
    return bool(own and not is_benchmark)


def _why_not_recorded(trace: TraceView) -> tuple[str, str] | None:
    """What the notes of a run say of its missing steps: marking steps would not have helped."""
    if trace.tables.run_facts().get("format") != "run":
        return None
    messages = {note["code"]: note["message"] for note in reversed(trace.tables.arrow("notes").to_pylist())}
    reason = next((messages[code] for code in NOT_RECORDED if code in messages), None)
    if reason is not None:
        return "no steps were recorded", reason.partition(": ")[2] if reason.startswith("Collector") else reason
    ended = next((messages[code] for code in STOPPED if code in messages), None)
    if ended is not None:
        how = ended.partition(";")[0]
        return f"no steps were found, and {how[:1].lower()}{how[1:]}", ""
    return None


def few_steps(steps: Steps) -> str:
    """A caution where the steps are few; empty where they are not."""
    count = steps.steady.height
    if count >= FEW_STEPS:
        return ""
    return "Only one step was captured." if count == 1 else f"Only {count} steps were captured."
