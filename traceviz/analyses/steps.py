"""Steps: how many, how long, and how sure we are of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.capture import SOURCE_WORDS
from traceviz.analyses.stepping import INFERRED, MIN_STEPS, Steps
from traceviz.analyses.view import TraceView
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, Section, Skipped

HOW_TO_MARK = (
    "Mark the steps: wrap each iteration in an NVTX range named 'step' (nvtx.annotate('step') or "
    "torch.cuda.nvtx.range_push('step')), or name your own ranges with --step-marker REGEX."
)
"""What to do where steps are missing or uncertain."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Steps and the distribution of the steady ones' durations in nanoseconds."""

    steps: Steps
    median_ns: float
    p95_ns: float

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
    uses: ClassVar[tuple[str, ...]] = ("steps", "nvtx", "kernels", "memcpy", "memset")

    def run(self, trace: TraceView) -> StepTimes | Skipped:
        """Find the steps."""
        steps = trace.steps
        durations = steps.steady["end_ns"] - steps.steady["start_ns"]
        if not durations.len():
            return self.skipped(_why_none(trace))
        return StepTimes(steps, float(durations.median() or 0), float(durations.quantile(0.95, "nearest") or 0))  # type: ignore[arg-type]

    def describe(self, result: StepTimes) -> Section:
        """Facts, a caution where steps are inferred, and every step."""
        steps = result.steps
        facts = (
            Fact("count", "steps", steps.frame.height, "count"),
            Fact("warmup", "of which warm-up", result.warmup, "count"),
            Fact("median_ns", "median step", round(result.median_ns), "ns"),
            Fact("p95_ns", "95th percentile", round(result.p95_ns), "ns"),
            Fact("source", "source", SOURCE_WORDS[steps.source]),
            Fact("marker", "marker", steps.marker),
            Fact("confidence", "confidence", steps.confidence, "ratio"),
        )
        blocks: list[Block] = [Facts(facts)]
        if steps.source in INFERRED:
            blocks.append(Prose(f"What repeats may be a layer rather than a training step. {HOW_TO_MARK}"))
        blocks.append(_grid(steps.frame))
        return Section(self.slug, self.title, tuple(blocks))


def _why_none(trace: TraceView) -> str:
    marker = trace.options.step_marker
    if marker is None:
        return f"no steps were found, declared or repeating. {HOW_TO_MARK}"
    matching = trace.ranges["name"].str.contains(marker).sum()
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
    return Grid(columns, tuple(rows.iter_rows()), "Every step", audience="machine")
