"""Verdict on the input: whether training waits for it, for which stage, and the largest possible gain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding, known
from traceviz.analyses.derived.capture.kind import (
    TRAINS_NOTHING,
    UNKNOWN,
    CaptureKind,
    capture_kind,
    uses_unseen_devices,
)
from traceviz.analyses.derived.capture.speedups import describe_speedup
from traceviz.analyses.derived.capture.step_words import FEW_STEPS, why_no_steps
from traceviz.analyses.derived.capture.time_spent import describe_time_spent
from traceviz.analyses.derived.capture.training import (
    IF_IT_TRAINS,
    NO_REMEDY,
    Reason,
    ReasonCode,
    Remedy,
    trains,
    why_nothing_trains,
)
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import OPTIMIZER
from traceviz.analyses.derived.frames import bounds, parts_by
from traceviz.analyses.derived.host.classes import class_times, host_classes, sees_host, sees_input
from traceviz.analyses.derived.host.input_fetches import dispatching, is_input, parameter_fetches
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.serving import engine_calls
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.input import dataloader
from traceviz.analyses.input.dataloader import LABELS, LoaderUse, inside_grid, loader_findings, loader_kind, loader_uses
from traceviz.analyses.input.input_lines import InputLines, input_lines, lines_grid
from traceviz.analyses.input.recorded_stages import pipeline_stages
from traceviz.analyses.input.stages import (
    INFEED,
    SAMPLED,
    UNRECORDED,
    Stage,
    copy_stage,
    exposed_input,
    infeed_stage,
    is_before_batches,
    largest_first,
    producer_stages,
    range_stages,
    sampled_stages,
    suspects,
)
from traceviz.analyses.input.tfdata import READY_ADVICE
from traceviz.analyses.input.tfdata_findings import CODES, settings_findings, with_settings
from traceviz.analyses.input.tfdata_settings import PipelineSettings, describe_settings, pipeline_settings
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import STEADY_STEP_TIME, Block, Column, Fact, Facts, Finding, Grid, Prose, Section
from traceviz.report.findings.registry import record_of
from traceviz.report.verdicts import InputVerdict


@dataclass(frozen=True, slots=True)
class InputPipelineResult:
    """The verdict and its evidence; times in nanoseconds over all steady steps of all ranks.

    Args:
        verdict: The verdict.
        step_ns: Steady step time.
        wait_ns: Input wait and exposed copies of input.
        host_ns: Host time with an idle device. If no input was seen, without the time in which recorded operations
            prepare device work.
        stages: Stages that took the time, largest first.
        reason: Reason why nothing can be judged.
        unranged: Reason why no data-loading range was found.
        caveat: Reason why the wait is an upper bound, if it is. No speed-up is stated then.
        host_only: True if the program computes on the host, without any device.
        copy_ns: The exposed copies of input among ``wait_ns``.
        other_copies_ns: Exposed copies to the device for an unknown purpose. They are no part of ``wait_ns``.
        best_case_step_ns: Median duration of the steady steps without the wait.
        least_speedup: Least speed-up without the wait, if section ``what_if`` was requested.
        settings: Settings of the pipeline, if the trace states them.
        loaders: Calls that take batches from PyTorch's DataLoader.
        remedy: Advice on what to record, so that the input can be judged.
        kind: Kind of capture.
        spent: Sentence about the time of the capture, if nothing can be judged.
        lines: Functions that take the time of the input; ``None`` if stacks do not show them.
    """

    verdict: InputVerdict
    step_ns: int
    wait_ns: int
    host_ns: int
    stages: tuple[Stage, ...]
    reason: Reason | None = None
    unranged: str = ""
    caveat: str = ""
    host_only: bool = False
    copy_ns: int = 0
    other_copies_ns: int = 0
    best_case_step_ns: int | None = None
    least_speedup: float = 1.0
    settings: PipelineSettings = field(default_factory=PipelineSettings)
    loaders: tuple[LoaderUse, ...] = ()
    remedy: Remedy = NO_REMEDY
    kind: CaptureKind = UNKNOWN
    spent: str = ""
    lines: InputLines | None = None

    @property
    def input_share(self) -> float | None:
        """Input wait and exposed copies of input as a share of steady step time; ``None`` without steps."""
        return self.wait_ns / self.step_ns if self.step_ns else None

    @property
    def best_case_speedup(self) -> float | None:
        """Step time over step time without the wait: an upper bound of the gain. ``None`` if it is not known."""
        left = self.step_ns - self.at_stake_ns
        if self.caveat:
            return None
        return self.step_ns / left if self.step_ns and left > 0 else None

    @property
    def speedup_words(self) -> str:
        """The speed-up without the wait as text: ``at best 2.6×``, ``1.9 to 2.6×``; empty if it is not known."""
        best = self.best_case_speedup
        has_bound = not self.host_only or self.least_speedup <= 1  # what shares cores with the input may gain as well
        return describe_speedup(self.least_speedup, best if has_bound else None) if best else ""

    @property
    def loader(self) -> LoaderUse | None:
        """The use of the loader that the largest stage belongs to, if it is one."""
        stage = self.stages[0] if self.stages else None
        kind = loader_kind(f"{stage.name} {stage.inside}") if stage else None
        uses = (use for use in self.loaders if stage and (LABELS[use.kind] == stage.name or use.kind == kind))
        return next(uses, None)

    @property
    def at_stake_ns(self) -> int:
        """Time at stake in the verdict."""
        return self.host_ns if self.verdict is InputVerdict.POSSIBLY_BOUND else self.wait_ns

    @property
    def at_stake_share(self) -> float:
        """Time at stake as a share of steady step time."""
        return self.at_stake_ns / self.step_ns if self.step_ns else 0.0


@dataclass(frozen=True, slots=True)
class InputPipelineAnalysis(Analysis[InputPipelineResult]):
    """Input-bound verdict over steady steps.

    ``input share = (input wait + exposed copies of input to the device) / step time``. If no data-loading range was
    recorded, host time with an idle device can only make it *possibly* input-bound.

    Args:
        moderate: From this input share on, moderately input-bound.
        high: From this input share on, highly input-bound.
        suspicious: From this share of host time on (no ranges recorded), possibly input-bound.
        empty: If at least this share of calls find it empty, a prefetch buffer runs empty.
        blamed: Stages get advice on a better set-up from this share of the wait on.
        memory: From this share on, the memory budget of the pipeline counts as used up.
    """

    slug = "input_pipeline"
    title = "Input pipeline"
    rules = ("TV101", "TV102", *CODES, *dataloader.CODES)

    moderate: float = 0.05
    high: float = 0.20
    suspicious: float = 0.20
    empty: float = 0.5
    blamed: float = 0.1
    memory: float = 0.9

    def run(self, trace: TraceView) -> InputPipelineResult:
        """Judge the steady steps."""
        if (unjudged := _without_step_time(trace)) is not None:
            return unjudged
        times = class_times(trace, steady_time(trace))
        step_ns = sum(times.values())
        has_input = sees_input(trace)
        copy_ns = sum(exposed_input(trace, rank).intersect(steady).total for rank, steady in steady_time(trace).items())
        wait_ns = times["input_wait"] + copy_ns
        host_ns = times["host_blocked"] + times["host_compute"]
        # Recorded operations prepare device work in a part of the time of the host
        dispatch_ns = sum(
            host_classes(trace)[rank].sets["host_compute"].intersect(steady).intersect(dispatching(trace, rank)).total
            for rank, steady in steady_time(trace).items()
        )
        idle_ns = host_ns if has_input else host_ns - dispatch_ns
        host_ns = host_ns if has_input else min(idle_ns, _unexplained_host_ns(trace))
        verdict = self._verdict(wait_ns / step_ns, host_ns / step_ns, has_input=has_input)
        guess = verdict is InputVerdict.POSSIBLY_BOUND
        if guess and not trace.rank_busy:
            return _unjudged(trace, _NEITHER, _how_to_annotate(trace))
        if guess and not sees_host(trace):
            return _unjudged(trace, _NO_HOST)
        if guess and training_steps(trace).steady.height < FEW_STEPS:
            return _unjudged(trace, _TOO_FEW, _how_to_annotate(trace))
        if guess and not is_before_batches(trace):
            return _unjudged(trace, _NO_RANGES, _how_to_annotate(trace))
        if verdict is InputVerdict.NOT_BOUND and not has_input and idle_ns - host_ns >= self.suspicious * step_ns:
            return _unjudged(trace, _NO_RANGES, _how_to_annotate(trace))
        settings = pipeline_settings(trace)
        stages = (
            *range_stages(trace),
            *producer_stages(trace),
            *sampled_stages(trace),
            *(with_settings(stage, settings) for stage in pipeline_stages(trace)),
            *infeed_stage(trace),
            *copy_stage(trace, copy_ns),
        )
        kind = capture_kind(trace)
        is_host_alone = bool(uses_unseen_devices(trace))
        unclear = verdict is not InputVerdict.NOT_BOUND or trace.options.input_range is not None
        return InputPipelineResult(
            verdict,
            step_ns,
            wait_ns,
            host_ns,
            largest_first(suspects(trace) if guess else stages),
            unranged=_why_no_ranges(trace) if unclear and not has_input else "",
            caveat=_caveat(trace),
            host_only=_host_only(trace),
            copy_ns=copy_ns,
            other_copies_ns=times["copy_h2d"] - copy_ns,
            best_case_step_ns=None if guess else _best_case_step(trace),
            settings=settings,
            loaders=loader_uses(trace),
            remedy=Remedy(kind.remedy) if is_host_alone else NO_REMEDY,
            kind=kind,
            spent=describe_time_spent(trace) if is_host_alone else "",
            lines=None if guess else input_lines(trace),
        )

    def _verdict(self, input_share: float, host_share: float, *, has_input: bool) -> InputVerdict:
        if input_share >= self.high:
            return InputVerdict.HIGHLY_BOUND
        if not has_input and host_share >= self.suspicious:
            return InputVerdict.POSSIBLY_BOUND
        return InputVerdict.MODERATELY_BOUND if input_share >= self.moderate else InputVerdict.NOT_BOUND

    def judge(self, result: InputPipelineResult) -> tuple[Finding, ...]:
        """Return TV101 if waits for input were seen, TV102 if they are only suspected.

        For waits that were seen, the settings of the pipeline may be the cause: TV103 to TV109, for information.
        """
        if result.verdict is InputVerdict.NOT_BOUND or not result.verdict.is_judged:
            return ()
        stage = result.stages[0] if result.stages else None
        share = result.at_stake_share
        speedup = result.best_case_speedup
        gain = f" At best, steps would be {speedup:.1f}× as fast without it." if speedup else ""
        facts = (
            Fact("input_share", "of steady step time", share, "ratio"),
            Fact("stage", "largest stage", stage.name if stage else None),
            Fact("stage_path", "path to the program", stage.path or None if stage else None),
            Fact("stage_calls", "calls in the capture", stage.capture_calls if stage else None, "count"),
            Fact("stage_ns", "time in the capture", stage.capture_ns if stage else None, "ns"),
            Fact("best_case_speedup", "speed-up at best", speedup, "factor"),
            Fact("line", "the line", result.lines.functions[0].location if result.lines is not None else None),
        )
        evidence = known(facts)
        if result.verdict is InputVerdict.POSSIBLY_BOUND:
            message = (
                f"Steps may wait for input: in {format_ratio(share)} of steady step time the device is idle and "
                f"the host launches nothing (mostly {stage.name if stage else UNRECORDED})."
            )
            return (finding("TV102", message, evidence, result.at_stake_ns, result.step_ns, STEADY_STEP_TIME),)
        bound = f" ({result.caveat})" if result.caveat else ""
        few = result.loader.few_words if result.loader is not None else ""
        line = "; ".join(filter(None, (few, result.lines.words if result.lines is not None else "")))
        where = f"{_place_of_wait(stage)}{f': {line}' if line else ''}"
        message = f"Steps wait for input in {format_ratio(share)} of their time{where}{bound}.{gain}"
        advice = _advice(stage, result, self.empty)
        explained = settings_findings(
            result.settings, result.stages, empty=self.empty, blamed=self.blamed, memory=self.memory
        )
        lines = result.lines
        function = lines.functions[0].words if lines is not None and lines.who == "main" and lines.words else ""
        return (
            finding("TV101", message, evidence, result.at_stake_ns, result.step_ns, STEADY_STEP_TIME, advice=advice),
            *explained,
            *loader_findings(
                result.loaders,
                result.wait_ns,
                self.blamed,
                function=function,
                first=lines.advice if lines is not None else (),
            ),
        )

    def describe(self, result: InputPipelineResult) -> Section:
        """Describe verdict, bounds and stages."""
        has_parts = bool(result.copy_ns and result.step_ns)
        waiting, copying = (
            (ns / result.step_ns if has_parts else None) for ns in (result.wait_ns - result.copy_ns, result.copy_ns)
        )
        parts = (
            Fact("waiting_share", "of which waiting", waiting, "ratio"),
            Fact("copy_share", "of which copying", copying, "ratio"),
        )
        stage = result.stages[0].name if result.stages else None
        facts = (
            Fact("verdict", "verdict", result.verdict.value),
            Fact("input_share", "input share of steps", result.input_share, "ratio"),
            *known(parts),
            Fact("best_case_speedup", "speed-up at best", result.best_case_speedup, "factor"),
            Fact("best_case_step_ns", "median step at best", result.best_case_step_ns, "ns"),
            Fact("stage", "largest stage", stage),
            Fact("moderate", "moderately from", self.moderate, "ratio"),
            Fact("high", "highly from", self.high, "ratio"),
        )
        thresholds = set() if result.verdict.is_judged else {"moderate", "high"}
        shown = tuple(fact for fact in known(facts) if fact.key not in thresholds)
        rest = tuple(fact for fact in facts if fact not in shown)
        blocks: list[Block] = [Facts(shown), *((Facts(rest, audience="machine"),) if rest else ())]
        if result.reason:
            blocks.append(Prose(f"{result.verdict.title}: {result.reason.text.rstrip('.')}."))
        remarks = [r for r in (result.remedy.text, result.caveat, result.unranged, self._other_copies(result)) if r]
        blocks.extend(Prose(f"{remark[0].upper()}{remark[1:].rstrip('.')}.") for remark in remarks)
        if result.stages:
            blocks.append(_grid(result))
        if result.verdict.is_bound:
            blocks.extend(inside_grid(use) for use in result.loaders if use.inside.height > 1)
            blocks.extend(lines_grid(lines) for lines in [result.lines] if lines is not None)
        blocks.extend(describe_settings(result.settings))
        return Section(self.slug, self.title, tuple(blocks))

    def _other_copies(self, result: InputPipelineResult) -> str:
        """Return the sentence about copies that do not count as input, if they would change the verdict."""
        if not result.step_ns or result.other_copies_ns < self.moderate * result.step_ns:
            return ""
        share = format_ratio(result.other_copies_ns / result.step_ns)
        return (
            f"copies to the device take {share} more of steady step time; nothing shows that they are input, so they "
            "do not count (name the range around them with --input-range REGEX if they are)"
        )


def _unjudged(trace: TraceView, reason: Reason, remedy: Remedy = NO_REMEDY) -> InputPipelineResult:
    kind, serves = capture_kind(trace), reason.code is ReasonCode.SERVES
    verdict = InputVerdict.NOT_JUDGED if serves else InputVerdict.CANNOT_JUDGE
    spent = "" if serves else describe_time_spent(trace)
    return InputPipelineResult(verdict, 0, 0, 0, (), reason, remedy=remedy, kind=kind, spent=spent)


def _without_step_time(trace: TraceView) -> InputPipelineResult | None:
    """Return the result if there is no step time to compare the wait for input with."""
    if engine_calls(trace).height:
        return _unjudged(trace, _SERVES)
    kind = capture_kind(trace)
    asked = trace.options.step_marker or trace.options.input_range
    if kind.key in TRAINS_NOTHING and not asked:
        why = f"it holds {kind.words}" if kind.key == "counters" else f"nothing is trained ({kind.words})"
        return _unjudged(trace, Reason(ReasonCode.TRAINS_NOTHING, why))
    if not steady_time(trace):
        why, remedy = why_no_steps(trace)
        reason = Reason(ReasonCode.NO_STEPS, why, "there is no step time to compare the input with")
        return _unjudged(trace, reason, remedy)
    if not trains(trace):
        return replace(_unjudged(trace, why_nothing_trains(trace)), unranged=IF_IT_TRAINS)
    return None


_SERVES = Reason(
    ReasonCode.SERVES,
    "the program runs a language model for requests and trains on nothing",
    "there is no input of training to wait for",
)
_NEITHER = Reason(ReasonCode.NO_RANGES_NOR_DEVICE, "neither data-loading ranges nor device work were recorded")
_NO_HOST = Reason(ReasonCode.NO_HOST, "nothing of the host was recorded")
_NO_RANGES = Reason(
    ReasonCode.NO_RANGES,
    "no data-loading ranges were recorded",
    "the input cannot be told from the other work of the host",
)
# In a single step, the host may do anything while the device is idle.
_TOO_FEW = Reason(
    ReasonCode.FEW_STEPS,
    "no data-loading ranges were recorded, and so few steps are not enough to suspect the input without them",
)


def _best_case_step(trace: TraceView) -> int | None:
    """Return the median duration of the steady steps without waiting for input and copying it."""
    if _caveat(trace):
        return None
    remaining = []
    for rank, part in parts_by(training_steps(trace).steady, "process_id").items():
        sets = host_classes(trace)[rank].sets
        starts, ends = bounds(part)
        remaining.append(ends - starts - sets["input_wait"].union(exposed_input(trace, rank)).overlap(starts, ends))
    return round(float(np.median(np.concatenate(remaining)))) if remaining else None


def _unexplained_host_ns(trace: TraceView) -> int:
    """Return host time of steady steps with an idle device that no recorded event assigns to anything but input.

    Time in functions and in the optimizer has a name, so it is not suspected.
    """
    operators = ("operator",) if trace.rank_busy else ()  # without a device, steps are operators
    is_known = pl.col("kind").is_in((*_KNOWN_KINDS, *operators)) | pl.any_horizontal(
        pl.col(column).str.contains(OPTIMIZER).fill_null(value=False) for column in ("cause", "operator", "range")
    )
    causes = host_causes(trace).filter(pl.col("class").is_in(["host_blocked", "host_compute"]))
    return int(causes.filter(~is_known)["time_ns"].sum())


_KNOWN_KINDS = (
    *("library", "native", "saving", "logging", "serialization", "import", "io", "sleep", "lock", "gil"),
    *("python", "python_wait", "optimizer", "runtime", "driver", "compilation"),
    *("host_collective", "parameter_transfer", "profiler"),
)
"""Kinds of causes whose name is not one of input."""


def _host_only(trace: TraceView) -> bool:
    """Return whether the program computes on the host: a framework's trace without any device or launch."""
    framework = "host_ops" in trace.tables and not (trace.has_device_tables or uses_unseen_devices(trace))
    return framework and not trace.api_calls("launch").height


def _caveat(trace: TraceView) -> str:
    """Return why the wait is an upper bound: without device work it counts in full, even if a device worked."""
    if trace.rank_busy or _host_only(trace):
        return ""
    launched = trace.api_calls("launch").height
    reason = (
        f"{launched:,} launch calls were recorded and no device work" if launched else "no device work was recorded"
    )
    return f"{reason}, so this is an upper bound"


_LEARNS = "process.gradients"
"""Setting of a process: 0 if hooks would have seen gradients and saw none."""
_TAKE_FROM = {
    "pytorch": (
        "take batches from a torch.utils.data.DataLoader, or wrap the code that takes the next one in "
        'torch.profiler.record_function("data loading")'
    ),
    "jax": 'wrap the code that takes the next batch in jax.profiler.TraceAnnotation("data loading")',
    "tensorflow": (
        "take batches from tf.data, or wrap the code that takes the next one in "
        'tf.profiler.experimental.Trace("data loading")'
    ),
}
"""Advice to make the wait for input visible, by framework."""


def _how_to_annotate(trace: TraceView) -> Remedy:
    """Return advice to make the wait for input visible in a framework's trace; empty for others.

    A program that only applies a model takes requests, not batches. Samples of its stacks show what all steps do.
    """
    if trace.tables.rows("stacks"):
        return NO_REMEDY
    settings = trace.frame("settings", pl.col("key", "value").cast(pl.String))
    stated = settings.filter(pl.col("key") == _LEARNS)["value"]
    if "host_ops" not in trace.tables or (stated.len() and not (stated != "0").any()):
        return NO_REMEDY
    ways = [words for name, words in _TAKE_FROM.items() if name in trace.frameworks] or list(_TAKE_FROM.values())
    words = ", or ".join(ways)
    return Remedy(f"{words[0].upper()}{words[1:]}.")


def _advice(stage: Stage | None, result: InputPipelineResult, empty: float) -> tuple[str, ...]:
    """Return advice for the stage of a pipeline if there is one, else general advice."""
    own = (stage.advice, *stage.further) if stage else ()
    settings = result.settings.at(stage.path) if stage else None
    if settings and settings.is_last_prefetch and settings.empty_share is not None and settings.empty_share < empty:
        own = (READY_ADVICE,)
    if result.loader is not None:
        own = result.loader.advice
    first = result.lines.advice if result.lines is not None else ()
    is_loader = stage and (stage.kind == dataloader.DATALOADER or loader_kind(f"{stage.name} {stage.inside}"))
    general = () if stage and (stage.path or stage.kind == INFEED or is_loader) else record_of("TV101").advice
    return tuple(dict.fromkeys(line for line in (*first, *own, *general) if line))


def _why_no_ranges(trace: TraceView) -> str:
    pattern = trace.options.input_range
    if pattern is not None:
        return f"No range of the training thread matches --input-range {pattern!r}."
    of_input = is_input(None) & ~pl.col("name").is_in(list(parameter_fetches(trace)))
    elsewhere = trace.ranges.filter(of_input)["name"].unique().sort().to_list()
    if elsewhere:
        return (
            f'Ranges such as "{elsewhere[0]}" run on another thread; name what the training thread waits in with '
            "--input-range."
        )
    return "No data-loading ranges were recorded to tell."


def _place_of_wait(stage: Stage | None) -> str:
    if stage is None:
        return ""
    calls = counted(stage.calls or 0, "range" if stage.kind == "NVTX range" else "call")
    if stage.kind == SAMPLED:
        return f", mostly in {stage.name}"
    if stage.path:
        return f", mostly for the stage {stage.name} of tf.data ({format_ns(stage.self_ns)}, {calls})"
    calls_and_time = f" ({calls}, {format_ns(stage.total_ns)})" if stage.calls else ""
    if stage.kind == dataloader.DATALOADER:
        return f", mostly in the {stage.name}{calls_and_time}"
    return f', mostly in "{stage.name}"{calls_and_time}'


def _grid(result: InputPipelineResult) -> Grid:
    columns = (
        Column("stage", "Stage", "text", 0),
        Column("kind", "Evidence", "text", 3),
        Column("calls", "Calls", "count", 2, additive=True),
        Column("total_ns", "Total", "ns", 2, additive=True),
        Column(
            "self_ns", "Steps waited" if result.host_only or result.caveat else "Device waited", "ns", 0, additive=True
        ),
        Column("share_of_input", "Of the wait", "ratio", 1, bar=True),
        Column("inside", "Mostly inside", "text", 4),
        Column("path", "Path to the program", "text", 5),
        Column("advice", "Advice", "text", 9),
        Column("capture_calls", "Calls in capture", "count", 9),
        Column("capture_ns", "Total in capture", "ns", 9),
    )
    whole = sum(stage.self_ns for stage in result.stages)
    of_loaders = {LABELS[use.kind]: use.advice[0] for use in result.loaders}
    rows = tuple(
        (
            *(s.name, s.kind, s.calls, s.total_ns, s.self_ns, s.self_ns / whole if whole else None),
            *(s.inside or None, s.path or None, of_loaders.get(s.name, s.advice), s.capture_calls, s.capture_ns),
        )
        for s in result.stages
    )
    title = "What the host did while the device was idle" if result.verdict is InputVerdict.POSSIBLY_BOUND else ""
    return Grid(columns, rows, title)
