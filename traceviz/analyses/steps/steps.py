"""Steps: their number, duration, and certainty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.calls.host_calls import annotated_calls
from traceviz.analyses.derived.capture.step_words import (
    HOW_TO_MARK,
    SOURCE_WORDS,
    covers_little,
    few_steps,
    how_to_mark,
    may_have_steps,
    why_no_steps,
)
from traceviz.analyses.derived.steps.bounds import Coverage
from traceviz.analyses.derived.steps.kinds import TwoKinds, two_kinds
from traceviz.analyses.derived.steps.passes import batches_per_update
from traceviz.analyses.derived.steps.search import (
    count_cut_steps,
    count_lost_steps,
    count_unseen_steps,
    covered_by_steps,
    found_steps,
    slight_steps,
)
from traceviz.analyses.derived.steps.steps import INFERRED, MIN_STEPS, Steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import counted, format_ns
from traceviz.report import EVERY_STEP, Column, Fact, Facts, Grid, Prose, Section, Skipped


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Steps, and the distribution of the steady ones' durations in nanoseconds; ``mark`` describes how to mark steps.

    ``covered`` is the coverage of inferred steps. ``slight`` states the coverage if it is too little for a judgement.
    ``kinds`` describes steps that come in two kinds. ``lost`` steps are left out, because the profiler lost their
    device work. ``unseen`` steps are left out, because most of that lies outside of the recorded time. Each step takes
    ``batches`` from a loader.
    """

    steps: Steps
    median_ns: float
    mean_ns: float
    p95_ns: float
    covered: Coverage | None = None
    slight: str = ""
    kinds: TwoKinds | None = None
    mark: str = HOW_TO_MARK.text
    lost: int = 0
    unseen: int = 0
    batches: int = 1

    @property
    def warmup(self) -> int:
        """Number of warm-up steps."""
        return int(self.steps.frame["warmup"].sum())


@dataclass(frozen=True, slots=True)
class StepAnalysis(Analysis[StepTimes]):
    """Duration of the training steps, with warm-up separate."""

    slug = "steps"
    title = "Steps"

    def run(self, trace: TraceView) -> StepTimes | Skipped:
        """Find the steps."""
        steps = found_steps(trace)
        durations = steps.steady["end_ns"] - steps.steady["start_ns"]
        if not durations.len():
            return self.skipped(_why_none(trace))
        times = durations.to_numpy()
        return StepTimes(
            steps,
            median_ns=float(np.median(times)),
            mean_ns=float(times.mean()),
            p95_ns=float(durations.quantile(0.95, "nearest") or 0),
            covered=covered_by_steps(trace),
            slight=covers_little(trace) if slight_steps(trace) else "",
            kinds=two_kinds(times),
            mark=how_to_mark(trace).text if may_have_steps(trace) else "",
            lost=count_lost_steps(trace),
            unseen=count_unseen_steps(trace),
            batches=batches_per_update(trace) if steps.source == "passes" else 1,
        )

    def describe(self, result: StepTimes) -> Section:
        """Describe facts, a caution if steps are inferred, and every step."""
        facts = _facts_of_slight(result) if result.slight else _facts(result)
        prose = (Prose(text) for text in _cautions(result))
        columns: tuple[Column, ...] = (
            Column("step", "Step", "id", 0),
            Column("start_ns", "Start", "ns", 1),
            Column("dur_ns", "Duration", "ns", 0, additive=True),
            Column("warmup", "Warm-up", "bool", 1),
            Column("cut", "Cut", "bool", 2),
            Column("process", "Process", "id", 2),
        )
        frame = result.steps.frame
        lasted = pl.col("end_ns") - pl.col("start_ns")
        rows = frame.select("step", "start_ns", lasted.alias("dur_ns"), "warmup", "cut", "process_id")
        if result.steps.host is not None:
            columns = (
                *columns,
                Column("host_start_ns", "On the host", "ns", 2),
                Column("host_dur_ns", "Took there", "ns", 2),
            )
            times = pl.col("start_ns").alias("host_start_ns"), lasted.alias("host_dur_ns")
            on_host = result.steps.host.select(*_STEP, *times)
            rows = rows.join(on_host, on=_STEP, how="left", maintain_order="left")
        title = "Every repeat" if result.slight else EVERY_STEP
        grid = Grid(columns, tuple(rows.iter_rows()), title, audience="machine")
        return Section(self.slug, self.title, (Facts(facts), *prose, grid))


def _facts(result: StepTimes) -> tuple[Fact, ...]:
    steps = result.steps
    of_both: tuple[Fact, ...] = ()
    if steps.host is not None:  # the host launches work in advance
        steady = steps.host.join(steps.steady, on=_STEP, how="semi")
        on_host = float(np.median((steady["end_ns"] - steady["start_ns"]).to_numpy()))
        of_both = (
            Fact("device_median_ns", "on the devices", round(result.median_ns), "ns"),
            Fact("host_median_ns", "on the host", round(on_host), "ns"),
        )
    ranks = steps.frame["process_id"].n_unique()
    count = steps.frame.height + result.lost + result.unseen
    return (
        Fact("count", "steps, all ranks" if ranks > 1 else "steps", count, "count"),
        Fact("warmup", "of which warm-up", result.warmup, "count"),
        Fact("median_ns", "median step", round(result.median_ns), "ns"),
        Fact("mean_ns", "mean step", round(result.mean_ns), "ns"),
        Fact("p95_ns", "95th percentile", round(result.p95_ns), "ns"),
        *of_both,
        Fact("source", "source", SOURCE_WORDS[steps.source]),
        Fact("marker", "marker", steps.marker),
        Fact("confidence", "confidence", steps.confidence, "ratio"),
        *_covered(result.covered),
    )


_STEP = ("process_id", "step")


def _facts_of_slight(result: StepTimes) -> tuple[Fact, ...]:
    """Return facts under separate names, so that no budget, archive or comparison takes unjudged repeats for steps."""
    steps = result.steps
    return (
        Fact("repeats", "repeats that are not judged", steps.frame.height, "count"),
        Fact("repeat_median_ns", "median repeat", round(result.median_ns), "ns"),
        Fact("source", "source", SOURCE_WORDS[steps.source]),
        Fact("marker", "marker", steps.marker),
        Fact("confidence", "confidence", steps.confidence, "ratio"),
        *_covered(result.covered),
    )


def _covered(covered: Coverage | None) -> tuple[Fact, ...]:
    if covered is None:
        return ()
    facts = (
        Fact("work_share", "of the device work", covered.work, "ratio"),
        Fact("time_share", "of the time from first to last device work", covered.time, "ratio"),
    )
    return facts if covered.work is not None else (Fact("time_share", "of the captured time", covered.time, "ratio"),)


def _cautions(result: StepTimes) -> Iterator[str]:
    steps = result.steps
    if result.slight:
        yield f"What repeats {result.slight}: nothing is judged by it. {result.mark}"
    elif steps.source in INFERRED:
        yield f"What repeats may be a layer rather than a training step. {result.mark}".rstrip()
    if steps.host is not None:
        yield (
            "The host runs ahead of the devices: a step is the device work that it launched, from its first work to "
            "the first of the next step."
        )
    if result.batches > 1:
        yield (
            f"Each step takes {result.batches} batches before it updates the model: gradients accumulate over "
            "micro-batches, or several loaders are read."
        )
    if result.lost:
        yield (
            f"{counted(result.lost, 'later step')} left out of all figures: events were lost, and after the "
            "last recorded device work nobody knows what the devices did."
        )
    if result.unseen:
        yield (
            f"{counted(result.unseen, 'step')} left out of all figures: what the devices did in them was not "
            "recorded (see Capture)."
        )
    if result.kinds and not result.slight:
        kinds = result.kinds
        quick = f"{kinds.quick:,} of about {format_ns(kinds.quick_ns)}"
        slow = f"{kinds.slow:,} of about {format_ns(kinds.slow_ns)}"
        yield (
            f"Steps come in two kinds: {quick} and {slow}. How fast the program is, their mean tells "
            f"({format_ns(result.mean_ns)}), and not the median ({format_ns(result.median_ns)})."
        )
    if few := few_steps(steps):
        yield f"{few} Capture ten or more for figures that hold."


def _why_none(trace: TraceView) -> str:
    marker = trace.options.step_marker
    if marker is None or count_cut_steps(trace) or count_lost_steps(trace) or count_unseen_steps(trace):
        reason, remedy = why_no_steps(trace)
        return f"{reason}. {remedy.text}" if remedy.first else reason
    matching = trace.ranges["name"].str.contains(marker).sum() + annotated_calls(trace, marker).height
    needed = f"at least {MIN_STEPS} on one thread are needed"
    return f"--step-marker {marker!r} matches {matching} ranges of the capture; {needed}"
