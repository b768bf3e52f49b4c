"""Sentences about steps in reports: their source, their small number, why there are none, and how to mark them."""

from __future__ import annotations

from traceviz.analyses.derived.capture.kind import BENCHMARK, NOT_RECORDED, STOPPED, Kind, capture_kind
from traceviz.analyses.derived.capture.training import Remedy
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.steps.bounds import ENOUGH, ENOUGH_OF_CAPTURE
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
    "passes": "batches of a loader and updates of an optimizer",
    "host_cycle": "inferred from repeating calls of the program",
    "kernel_cycle": "inferred from repeating kernels",
    "none": "none found",
}
"""Sources of steps, as text."""


def _with_nvtx(calls: str) -> Remedy:
    return Remedy(
        f"Mark the steps: wrap each iteration in an NVTX range named 'step' ({calls})",
        ", or name your own ranges with --step-marker REGEX.",
    )


HOW_TO_MARK = _with_nvtx("nvtx.annotate('step') or torch.cuda.nvtx.range_push('step')")
"""Advice if steps are missing or uncertain."""
HOW_TO_MARK_WITHOUT_TORCH = _with_nvtx("nvtx.annotate('step')")
HOW_TO_MARK_NATIVE = _with_nvtx("nvtxRangePush and nvtxRangePop")
"""Advice for programs that do not use PyTorch, and for programs that do not run Python."""

HOW_TO_MARK_IN_RUN = Remedy(
    "Mark the steps: wrap each iteration in traceviz.step_range(number), which tells nsys and the profilers of "
    "frameworks; of a program without steps, record a time (--delay, --duration)."
)
"""Advice if ``traceviz collect`` recorded a program whose framework is unknown."""

SEES_NVTX_ONLY = frozenset({"nsys", "nvprof"})
"""Formats whose profilers record NVTX and no annotations of a framework."""

_NAME_THEM = "; or name your own annotations with --step-marker REGEX."
HOW_TO_MARK_IN = {
    "pytorch": Remedy(
        "Mark the steps: call prof.step() of torch.profiler.profile at the end of each iteration",
        "; or name your own annotations (torch.profiler.record_function) with --step-marker REGEX.",
    ),
    "tensorflow": Remedy(
        'Mark the steps: with tf.profiler.experimental.Trace("train", step_num=i, _r=1) around each iteration, or the '
        "TensorBoard callback of Keras (profile_batch=(10, 20))",
        _NAME_THEM,
    ),
    "jax": Remedy(
        'Mark the steps: with jax.profiler.StepTraceAnnotation("train", step_num=i) around each iteration', _NAME_THEM
    ),
}
"""Advice by framework."""

MAY_HAVE_STEPS: frozenset[Kind] = frozenset({"cpu-only", "training", "one-pass", "inference", "unknown"})
"""Kinds of captures whose steps are worth marking."""

FEW_STEPS = 3
"""With fewer steps than this, the judgement comes with a caution."""


def how_to_mark(trace: TraceView) -> Remedy:
    """Return how the program of this trace can mark its steps."""
    remedy = _how_to_mark(trace)
    if capture_kind(trace).key == "inference":
        return Remedy(remedy.first.replace('"train"', '"generate"'), remedy.others)
    return remedy


def _how_to_mark(trace: TraceView) -> Remedy:
    facts = trace.tables.run_facts()
    if facts.get("format") in SEES_NVTX_ONLY:
        likely = likely_frameworks(trace)
        return HOW_TO_MARK if "pytorch" in likely else HOW_TO_MARK_WITHOUT_TORCH if likely else HOW_TO_MARK_NATIVE
    known = next((words for name, words in HOW_TO_MARK_IN.items() if name in trace.frameworks), None)
    if known or facts.get("format") == "run":
        return known or HOW_TO_MARK_IN_RUN
    if "host_ops" not in trace.tables:
        return HOW_TO_MARK
    return Remedy(
        'Mark the steps: with tf.profiler.experimental.Trace("train", step_num=i, _r=1) or '
        'jax.profiler.StepTraceAnnotation("train", step_num=i) around each iteration',
        _NAME_THEM,
    )


def why_no_steps(trace: TraceView) -> tuple[str, Remedy]:
    """Return why there are no steps to judge, within a sentence, and what to do about it."""
    if count_cut_steps(trace):
        cut = "the step there is cut by an edge of it" if count_cut_steps(trace) == 1 else "all are cut by its edges"
        return f"the window holds no whole step: {cut}", Remedy("Choose an earlier --from or a later --to.")
    if count_lost_steps(trace):
        steps = counted(count_lost_steps(trace), "step")
        return f"the file is cut off, and device work of its {steps} is missing", Remedy("Copy or write it whole.")
    if count_unseen_steps(trace):
        steps = counted(count_unseen_steps(trace), "step")
        return (
            f"what the devices did in its {steps} was not recorded",
            Remedy("Begin the capture with a wait for the devices, and end it with one."),
        )
    if slight_steps(trace) is not None:
        return f"no steps were found: what repeats {covers_little(trace)}", how_to_mark(trace)
    if "totals" in trace.tables and not trace.span_ns:
        return "the file is a summary without events", Remedy()
    remedy = how_to_mark(trace) if may_have_steps(trace) else Remedy(capture_kind(trace).remedy)
    return _why_not_recorded(trace) or ("no steps were found", remedy)


def covers_little(trace: TraceView) -> str:
    """Return the coverage of inferred steps, as text."""
    covered = covered_by_steps(trace)
    assert covered is not None
    if covered.captured < ENOUGH_OF_CAPTURE and covered.time >= ENOUGH:
        return f"covers {format_ratio(covered.captured)} of the captured time"
    if covered.work is not None and covered.work < covered.time:
        return f"covers {format_ratio(covered.work)} of the device work"
    return f"covers {format_ratio(covered.time)} of the {_EXTENT if covered.work is not None else 'captured time'}"


_EXTENT = "time from first to last device work"


def may_have_steps(trace: TraceView) -> bool:
    """Return whether the program may run steps that can be marked; a benchmark of one kernel has none."""
    kind = capture_kind(trace)
    if kind.key != "no-device-work":
        return kind.key in MAY_HAVE_STEPS
    if trace.tables.run_facts().get("format") == "run":
        return True
    is_benchmark = trace.host_names["name"].str.contains(BENCHMARK).any()
    own = trace.ranges["name"].str.starts_with("MPI_").not_().any() or trace.host_names.height
    return bool(own and not is_benchmark)


def _why_not_recorded(trace: TraceView) -> tuple[str, Remedy] | None:
    """Return why a run has no steps, by its notes, which are text; ``None`` if marking steps would have helped."""
    if trace.tables.run_facts().get("format") != "run":
        return None
    messages = {note["code"]: note["message"] for note in reversed(trace.tables.arrow("notes").to_pylist())}
    reason = next((messages[code] for code in NOT_RECORDED if code in messages), None)
    if reason is not None:
        cause = reason.partition(": ")[2] if reason.startswith("Collector") else reason
        return "no steps were recorded", Remedy(cause)
    ended = next((messages[code] for code in STOPPED if code in messages), None)
    if ended is not None:
        how = ended.partition(";")[0]
        return f"no steps were found, and {how[:1].lower()}{how[1:]}", Remedy()
    return None


def few_steps(steps: Steps) -> str:
    """Return a caution if the steps are few; empty if not."""
    count = steps.steady.height
    if count >= FEW_STEPS:
        return ""
    return "Only one step was captured." if count == 1 else f"Only {count} steps were captured."
