"""Steps: how many, how long, and how sure we are of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.capture.capture import SOURCE_WORDS
from traceviz.analyses.derived.host_calls import annotated_calls
from traceviz.analyses.derived.step_search import count_cut_steps, count_lost_steps, training_steps
from traceviz.analyses.derived.steps import INFERRED, MIN_STEPS, Steps
from traceviz.analyses.derived.view import STEP_TABLES, TraceView
from traceviz.report import EVERY_STEP, Block, Column, Fact, Facts, Grid, Prose, Section, Skipped
from traceviz.units import counted

HOW_TO_MARK = (
    "Mark the steps: wrap each iteration in an NVTX range named 'step' (nvtx.annotate('step') or "
    "torch.cuda.nvtx.range_push('step')), or name your own ranges with --step-marker REGEX."
)
"""What to do where steps are missing or uncertain."""

HOW_TO_MARK_IN_RUN = (
    "Mark the steps: wrap each iteration in traceviz.step_range(number), which tells nsys and the profilers of "
    "frameworks; of a program without steps, record a time (--delay, --duration)."
)
"""The same where ``traceviz collect`` recorded a program of which no framework is known."""

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
"""The same by framework."""

FEW_STEPS = 3
"""Fewer steps than this are judged, and said to be few."""


def how_to_mark(trace: TraceView) -> str:
    """How the program of this trace would mark its steps."""
    facts = trace.tables.run_facts()
    if facts.get("format") in SEES_NVTX_ONLY:
        return HOW_TO_MARK
    framework = str(facts.get("framework") or "").lower()
    known = next((words for name, words in HOW_TO_MARK_IN.items() if name in framework), None)
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
    if "totals" in trace.tables and not trace.span_ns:
        return "the file is a summary without events", ""
    return _why_not_recorded(trace) or ("no steps were found", how_to_mark(trace))


NOT_RECORDED = (
    "disk-full",
    "not-started",
    "killed-while-recording",
    "capture-too-large",
    "profiler-taken",
    "not-injected",
)
"""Codes of the notes by which a run and its collectors say why its steps are not recorded, the plainest first."""
_STOPPED = ("run-failed", "run-killed", "run-interrupted")
"""Codes of the notes on a run that did not end by itself."""


def _why_not_recorded(trace: TraceView) -> tuple[str, str] | None:
    """What the notes of a run say of its missing steps: marking steps would not have helped."""
    if trace.tables.run_facts().get("format") != "run":
        return None
    said = {note["code"]: note["message"] for note in reversed(trace.tables.arrow("notes").to_pylist())}
    told = next((said[code] for code in NOT_RECORDED if code in said), None)
    if told is not None:
        return "no steps were recorded", told.partition(": ")[2] if told.startswith("Collector") else told
    ended = next((said[code] for code in _STOPPED if code in said), None)
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


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Steps and the distribution of the steady ones' durations in nanoseconds; ``mark`` says how to mark them.

    ``lost`` steps are left out, since the profiler lost what the devices did in them.
    """

    steps: Steps
    median_ns: float
    p95_ns: float
    mark: str = HOW_TO_MARK
    lost: int = 0

    @property
    def warmup(self) -> int:
        """Number of warm-up steps."""
        return int(self.steps.frame["warmup"].sum())


@dataclass(frozen=True, slots=True)
class StepAnalysis(Analysis[StepTimes]):
    """Duration of the training steps, warm-up kept apart."""

    slug: ClassVar[str] = "steps"
    title: ClassVar[str] = "Steps"
    needs: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = STEP_TABLES

    def run(self, trace: TraceView) -> StepTimes | Skipped:
        """Find the steps."""
        steps = training_steps(trace)
        durations = steps.steady["end_ns"] - steps.steady["start_ns"]
        if not durations.len():
            return self.skipped(_why_none(trace))
        median, p95 = durations.median(), durations.quantile(0.95, "nearest")
        return StepTimes(steps, float(median or 0), float(p95 or 0), how_to_mark(trace), count_lost_steps(trace))  # type: ignore[arg-type]

    def describe(self, result: StepTimes) -> Section:
        """Facts, a caution where steps are inferred, and every step."""
        steps = result.steps
        ranks = steps.frame["process_id"].n_unique()
        facts = (
            Fact("count", "steps, all ranks" if ranks > 1 else "steps", steps.frame.height + result.lost, "count"),
            Fact("warmup", "of which warm-up", result.warmup, "count"),
            Fact("median_ns", "median step", round(result.median_ns), "ns"),
            Fact("p95_ns", "95th percentile", round(result.p95_ns), "ns"),
            Fact("source", "source", SOURCE_WORDS[steps.source]),
            Fact("marker", "marker", steps.marker),
            Fact("confidence", "confidence", steps.confidence, "ratio"),
        )
        blocks: list[Block] = [Facts(facts)]
        if steps.source in INFERRED:
            blocks.append(Prose(f"What repeats may be a layer rather than a training step. {result.mark}"))
        if result.lost:
            blocks.append(
                Prose(
                    f"{counted(result.lost, 'later step')} left out of all figures: events were lost, and after the "
                    "last recorded device work nobody knows what the devices did."
                )
            )
        if few := few_steps(steps):
            blocks.append(Prose(f"{few} Capture ten or more for figures that hold."))
        blocks.append(_grid(steps.frame))
        return Section(self.slug, self.title, tuple(blocks))


def _why_none(trace: TraceView) -> str:
    marker = trace.options.step_marker
    if marker is None or count_cut_steps(trace) or count_lost_steps(trace):
        why, what_to_do = why_no_steps(trace)
        return f"{why}. {what_to_do}" if what_to_do else why
    matching = trace.ranges["name"].str.contains(marker).sum() + annotated_calls(trace, marker).height
    needed = f"at least {MIN_STEPS} on one thread are needed"
    return f"--step-marker {marker!r} matches {matching} ranges of the capture; {needed}"


def _grid(frame: pl.DataFrame) -> Grid:
    columns = (
        Column("step", "Step", "id", 0),
        Column("start_ns", "Start", "ns", 1),
        Column("dur_ns", "Duration", "ns", 0),
        Column("warmup", "Warm-up", "bool", 1),
        Column("process", "Process", "id", 2),
    )
    rows = frame.select("step", "start_ns", pl.col("end_ns") - pl.col("start_ns"), "warmup", "process_id")
    return Grid(columns, tuple(rows.iter_rows()), EVERY_STEP, audience="machine")
