"""Is training waiting for its input, for which stage of it, and what would be gained at best?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.frames import bounds, intervals
from traceviz.analyses.host import class_times, host_classes, is_input, measured
from traceviz.analyses.view import TraceView
from traceviz.intervals import IntervalSet
from traceviz.report import Block, Column, Fact, Facts, Finding, Grid, Prose, Section
from traceviz.rules import rule
from traceviz.units import format_ns, format_ratio

InputVerdict = Literal[
    "not input-bound", "moderately input-bound", "highly input-bound", "possibly input-bound", "cannot judge"
]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the input, or one suspect where no stage was recorded.

    Args:
        name: Name of the range, or what the host did.
        kind: What kind of evidence this is.
        calls: How often it ran within the steady steps; ``None`` where that has no meaning.
        total_ns: Its duration within steady steps.
        capture_calls: How often it ran in the whole capture.
        capture_ns: Its duration in the whole capture.
        self_ns: The part of it that the device had to wait for.
        inside: The nested range in which most of it was spent, with its share; empty where there is none.
        advice: What to do about it.
    """

    name: str
    kind: str
    calls: int | None
    total_ns: int
    capture_calls: int | None
    capture_ns: int
    self_ns: int
    inside: str
    advice: str


@dataclass(frozen=True, slots=True)
class InputPipelineResult:
    """The verdict and what it rests on; times in nanoseconds over all steady steps of all ranks.

    Args:
        verdict: The verdict.
        step_ns: Steady step time.
        wait_ns: Input wait and exposed copies of input.
        host_ns: Host time with an idle device.
        stages: What took the time, largest first.
        reason: Why nothing can be judged.
        unranged: Why no data-loading range was found.
        caveat: What makes the wait an upper bound; no speed-up is stated then.
    """

    verdict: InputVerdict
    step_ns: int
    wait_ns: int
    host_ns: int
    stages: tuple[Stage, ...]
    reason: str = ""
    unranged: str = ""
    caveat: str = ""

    @property
    def input_share(self) -> float | None:
        """Input wait and exposed copies of input as a share of steady step time; ``None`` without steps."""
        return self.wait_ns / self.step_ns if self.step_ns else None

    @property
    def best_case_speedup(self) -> float | None:
        """Step time over step time without the wait: an upper bound of the gain. ``None`` where it is not known."""
        left = self.step_ns - self.at_stake_ns
        if self.caveat:
            return None
        return self.step_ns / left if self.step_ns and left > 0 else None

    @property
    def at_stake_ns(self) -> int:
        """Time that the verdict is about."""
        return self.host_ns if self.verdict == "possibly input-bound" else self.wait_ns


@dataclass(frozen=True, slots=True)
class InputPipelineAnalysis(Analysis[InputPipelineResult]):
    """Input-bound verdict over steady steps.

    ``input share = (input wait + exposed host-to-device copy) / step time``. Where no data-loading range was
    recorded, host time with an idle device can only make it *possibly* input-bound.

    Args:
        moderate: From this input share on, moderately input-bound.
        high: From this input share on, highly input-bound.
        suspicious: From this share of host time on (no ranges recorded), possibly input-bound.
    """

    slug: ClassVar[str] = "input_pipeline"
    title: ClassVar[str] = "Input pipeline"
    needs: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = ("steps", "nvtx", "kernels", "memcpy", "memset", "cuda_api", "os_calls")
    rules: ClassVar[tuple[str, ...]] = ("TV101", "TV102")

    moderate: float = 0.05
    high: float = 0.20
    suspicious: float = 0.20

    def run(self, trace: TraceView) -> InputPipelineResult:
        """Judge the steady steps."""
        if not trace.steady:
            return _cannot_judge("no steps were found, so there is no step time to compare the input with")
        times = class_times(trace, trace.steady)
        step_ns = sum(times.values())
        seen = measured(trace)
        wait_ns = times["input_wait"] + times["copy_h2d"]
        host_ns = times["host_blocked"] + times["host_compute"]
        verdict = self._verdict(wait_ns / step_ns, host_ns / step_ns, ranges="input_wait" in seen)
        guess = verdict == "possibly input-bound"
        if guess and not trace.rank_busy:
            return _cannot_judge("neither data-loading ranges nor device work were recorded")
        stages = _suspects(trace) if guess else [*_range_stages(trace), *_copy_stage(times["copy_h2d"])]
        unclear = verdict != "not input-bound" or trace.options.input_range is not None
        unranged = _why_no_ranges(trace) if unclear and "input_wait" not in seen else ""
        return InputPipelineResult(
            verdict, step_ns, wait_ns, host_ns, _largest_first(stages), unranged=unranged, caveat=_caveat(trace)
        )

    def _verdict(self, input_share: float, host_share: float, *, ranges: bool) -> InputVerdict:
        if input_share >= self.high:
            return "highly input-bound"
        if not ranges and host_share >= self.suspicious:
            return "possibly input-bound"
        return "moderately input-bound" if input_share >= self.moderate else "not input-bound"

    def judge(self, result: InputPipelineResult) -> tuple[Finding, ...]:
        """TV101 where input was seen to be waited for, TV102 where it can only be suspected."""
        if result.verdict in {"not input-bound", "cannot judge"}:
            return ()
        stage = result.stages[0] if result.stages else None
        share = result.at_stake_ns / result.step_ns
        speedup = result.best_case_speedup
        gain = f" At best, steps would be {speedup:.1f}× as fast without it." if speedup else ""
        evidence = (
            Fact("input_share", "of steady step time", share, "ratio"),
            Fact("stage", "largest stage", stage.name if stage else None),
            Fact("stage_calls", "calls in the capture", stage.capture_calls if stage else None, "count"),
            Fact("stage_ns", "time in the capture", stage.capture_ns if stage else None, "ns"),
            Fact("best_case_speedup", "speed-up at best", speedup, "factor"),
        )
        if result.verdict == "possibly input-bound":
            message = (
                f"Steps may wait for input: in {format_ratio(share)} of steady step time the device is idle and "
                f"the host launches nothing (mostly {stage.name if stage else 'host compute'})."
            )
            return (finding("TV102", message, evidence, result.at_stake_ns, result.step_ns, "steady step time"),)
        bound = f" ({result.caveat})" if result.caveat else ""
        message = f"Steps wait for input in {format_ratio(share)} of their time{_mostly(stage)}{bound}.{gain}"
        advice = tuple(dict.fromkeys([stage.advice] if stage and stage.advice else [])) + rule("TV101").advice
        return (
            finding("TV101", message, evidence, result.at_stake_ns, result.step_ns, "steady step time", advice=advice),
        )

    def describe(self, result: InputPipelineResult) -> Section:
        """Verdict, bounds and stages."""
        stage = result.stages[0].name if result.stages else None
        facts = (
            Fact("verdict", "verdict", result.verdict),
            Fact("input_share", "input share of steps", result.input_share, "ratio"),
            Fact("best_case_speedup", "speed-up at best", result.best_case_speedup, "factor"),
            Fact("stage", "largest stage", stage),
            Fact("moderate", "moderately from", self.moderate, "ratio"),
            Fact("high", "highly from", self.high, "ratio"),
        )
        blocks: list[Block] = [Facts(facts)]
        if result.reason:
            blocks.append(Prose(f"Cannot judge: {result.reason}."))
        remarks = [remark for remark in (result.caveat, result.unranged) if remark]
        blocks.extend(Prose(f"{remark[0].upper()}{remark[1:].rstrip('.')}.") for remark in remarks)
        if result.stages:
            blocks.append(_grid(result))
        return Section(self.slug, self.title, tuple(blocks))


def _cannot_judge(reason: str) -> InputPipelineResult:
    return InputPipelineResult("cannot judge", 0, 0, 0, (), reason)


def _caveat(trace: TraceView) -> str:
    """Without device work the host's wait counts in full, even where a device would have been busy meanwhile."""
    if trace.rank_busy:
        return ""
    launched = trace.api_calls("launch").height
    seen = f"{launched:,} launch calls were recorded and no device work" if launched else "no device work was recorded"
    return f"{seen}, so this is an upper bound"


def _why_no_ranges(trace: TraceView) -> str:
    pattern = trace.options.input_range
    if pattern is not None:
        return f"No range of the training thread matches --input-range {pattern!r}."
    elsewhere = trace.ranges.filter(is_input(None))["name"].unique().sort().to_list()
    if elsewhere:
        return (
            f'Ranges such as "{elsewhere[0]}" run on another thread; name what the training thread waits in with '
            "--input-range."
        )
    return "No data-loading ranges were recorded to tell."


def _mostly(stage: Stage | None) -> str:
    if stage is None:
        return ""
    ranges = f" ({stage.calls} ranges, {format_ns(stage.total_ns)})" if stage.calls else ""
    return f', mostly in "{stage.name}"{ranges}'


def _range_stages(trace: TraceView) -> list[Stage]:
    """Outermost data-loading ranges by name, and what the device waited for in each."""
    found: dict[str, list[Stage]] = {}
    for rank, steady in trace.steady.items():
        classes = host_classes(trace)[rank]
        waits = classes.sets["input_wait"].intersect(steady)
        inputs = classes.input_ranges
        for part in _outermost(inputs).partition_by("name", maintain_order=True):
            starts, ends = bounds(part)
            within = steady.overlap(starts, ends)
            stage = Stage(
                name=str(part["name"][0]),
                kind="NVTX range",
                calls=int(np.count_nonzero(within)),
                total_ns=int(within.sum()),
                capture_calls=part.height,
                capture_ns=int((ends - starts).sum()),
                self_ns=int(waits.overlap(starts, ends).sum()),
                inside=_largest_inside(trace, part, waits),
                advice="",
            )
            found.setdefault(stage.name, []).append(stage)
    return [_with_advice(_summed(parts)) for parts in found.values()]


def _outermost(ranges: pl.DataFrame) -> pl.DataFrame:
    """Those of ``ranges`` (of one thread) that lie in no other of them, however many ranges are in between."""
    ordered = ranges.sort("start_ns", "end_ns", "range_id", descending=[False, True, False])
    reach = pl.col("end_ns").cum_max().shift(1)
    return ordered.filter(reach.is_null() | (pl.col("end_ns") > reach))


def _summed(parts: list[Stage]) -> Stage:
    """One stage from those of several ranks."""
    return replace(
        parts[0],
        calls=sum(part.calls or 0 for part in parts),
        total_ns=sum(part.total_ns for part in parts),
        capture_calls=sum(part.capture_calls or 0 for part in parts),
        capture_ns=sum(part.capture_ns for part in parts),
        self_ns=sum(part.self_ns for part in parts),
    )


def _largest_first(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Stages that ran in steady steps, by what the device waited for them."""
    return tuple(sorted((s for s in stages if s.total_ns), key=lambda stage: (-stage.self_ns, stage.name)))


def _largest_inside(trace: TraceView, outer: pl.DataFrame, waits: IntervalSet) -> str:
    """The direct child of the ranges ``outer`` in which most of the wait was spent."""
    children = trace.ranges.filter(pl.col("parent_id").is_in(outer["range_id"].implode()))
    if not children.height:
        return ""
    starts, ends = bounds(children)
    spent = children.select("name").with_columns(pl.Series("waited", waits.overlap(starts, ends)))
    totals = spent.group_by("name").agg(pl.col("waited").sum()).sort("waited", "name", descending=[True, False])
    return str(totals["name"][0]) if totals["waited"][0] else ""


_LOADER_ADVICE = (
    (
        r"_MultiProcessingDataLoaderIter",
        (
            "DataLoader with workers: raise num_workers towards the number of free cores, and prefetch_factor; "
            "keep workers alive with persistent_workers=True."
        ),
    ),
    (r"_SingleProcessDataLoaderIter", "The DataLoader loads in the training process: set num_workers > 0."),
    (
        r"(?i)iterator::|iteratorgetnext",
        "tf.data: add .prefetch(AUTOTUNE) at the end and num_parallel_calls=AUTOTUNE to map and interleave.",
    ),
)


def _with_advice(stage: Stage) -> Stage:
    text = f"{stage.name} {stage.inside}"
    advice = next((words for pattern, words in _LOADER_ADVICE if re.search(pattern, text)), "")
    fallback = "Load the next batch while the device computes (prefetch in a background thread or process)."
    return replace(stage, advice=advice or fallback)


def _copy_stage(copy_ns: int) -> list[Stage]:
    if not copy_ns:
        return []
    advice = "Copy from pinned memory, on a stream of its own, while the step before computes."
    return [Stage("copy to device", "exposed copy", None, copy_ns, None, copy_ns, copy_ns, "", advice)]


def _suspects(trace: TraceView) -> list[Stage]:
    """What the host did while the device was idle, where no data-loading range was recorded."""
    blocked: dict[str, list[Stage]] = {}
    compute = 0
    for rank, steady in trace.steady.items():
        classes = host_classes(trace)[rank]
        compute += classes.sets["host_compute"].intersect(steady).total
        waiting = classes.sets["host_blocked"].intersect(steady)
        for part in classes.blocking_calls.partition_by("name", maintain_order=True):
            stage = _blocked_stage(part, waiting, steady)
            blocked.setdefault(stage.name, []).append(stage)
    stages = [_summed(parts) for parts in blocked.values()]
    stages.append(Stage("host compute", "no call recorded", None, compute, None, compute, compute, "", _RECORD_RANGES))
    return [stage for stage in stages if stage.self_ns]


_RECORD_RANGES = "Record ranges around data loading to tell whether this is the input."


def _blocked_stage(calls: pl.DataFrame, waiting: IntervalSet, steady: IntervalSet) -> Stage:
    covered = intervals(calls)
    return Stage(
        name=f"host blocked in {calls['name'][0]}",
        kind="OS call",
        calls=int(np.count_nonzero(steady.overlap(*bounds(calls)))),
        total_ns=covered.intersect(steady).total,
        capture_calls=calls.height,
        capture_ns=covered.total,
        self_ns=covered.intersect(waiting).total,
        inside="",
        advice=_RECORD_RANGES,
    )


def _grid(result: InputPipelineResult) -> Grid:
    columns = (
        Column("stage", "Stage", "text", 0),
        Column("kind", "Evidence", "text", 3),
        Column("calls", "Calls", "count", 2),
        Column("total_ns", "Total", "ns", 2),
        Column("self_ns", "Device waited", "ns", 0),
        Column("share_of_input", "Of the wait", "ratio", 1, bar=True),
        Column("inside", "Mostly inside", "text", 4),
        Column("advice", "Advice", "text", 9),
        Column("capture_calls", "Calls in capture", "count", 9),
        Column("capture_ns", "Total in capture", "ns", 9),
    )
    whole = sum(stage.self_ns for stage in result.stages)
    rows = tuple(
        (
            *(s.name, s.kind, s.calls, s.total_ns, s.self_ns, s.self_ns / whole if whole else None),
            *(s.inside or None, s.advice, s.capture_calls, s.capture_ns),
        )
        for s in result.stages
    )
    title = "What the host did while the device was idle" if result.verdict == "possibly input-bound" else ""
    return Grid(columns, rows, title)
