"""The headline of a report and its consequence, from the option that leads, or from what else is known.

The most useful claim leads: that the input cannot be judged is a caveat wherever anything was measured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from traceviz.analyses.capture.totals import PrintedTotals
from traceviz.analyses.derived.calls.short_names import function_of, shortened
from traceviz.analyses.derived.capture.time_spent import find_costliest_name
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import HOST
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.choice import HEALTHY, INPUT, MOST, POSSIBLE_INPUT, UNEXPLAINED, Option
from traceviz.analyses.headline.claims import (
    NO_HEADLINE,
    Headline,
    base_of,
    claim_of_option,
    claim_on,
    describe_gain,
    say_consequence,
    shorten_middle,
)
from traceviz.analyses.headline.judged_time import Judged
from traceviz.analyses.headline.whole_run import CAPTURED
from traceviz.analyses.host.host_waits import HostCauses
from traceviz.analyses.host.own_function import working_function
from traceviz.analyses.input.dataloader import DATALOADER
from traceviz.analyses.input.input_pipeline import InputPipelineResult
from traceviz.analyses.input.stages import SAMPLED
from traceviz.analyses.program.cpu_steps import OF_OPERATORS, OF_THE_PROGRAM, CpuSteps
from traceviz.analyses.program.lanes import LaneTimes
from traceviz.core.units import format_ratio
from traceviz.report import Finding
from traceviz.report.findings.record import BY_CAUSE, ELSEWHERE
from traceviz.report.findings.registry import record_of
from traceviz.report.start import find_start, place_within_sentence

WORTH_A_FUNCTION = 0.3
"""A function of the program is named if it takes this share of the steps."""
LONGEST_PLACE = 80
"""Most characters of a place in the consequence."""
_MARK_INPUT = "to know, mark data loading with a range"
_KERNEL_TIME, _GPU_TIME, _API_TIME = "kernel time", "GPU time", "API time"
_COLLECTIVE_TIME = "time in collectives"


def headline_of_lead(results: dict[str, Any], time: Judged, lead: Option, findings: tuple[Finding, ...]) -> Headline:
    """Return the headline of the option that leads, with the gain without it and the place at which to start."""
    pipeline: InputPipelineResult = results["input_pipeline"]
    finding = next((one for one in findings if lead.record is not None and one.code == lead.code), None)
    is_input = lead.key == INPUT
    made = claim_of_option(lead, finding, has_device=time.has_device, is_bound=is_input and bool(pipeline.caveat))
    if lead.key == UNEXPLAINED:
        waits = results.get("host_waits")
        record = waits.record[0] if isinstance(waits, HostCauses) and waits.record else ""
        return replace(made, consequence=f"To see the cause, record {record}" if record else "")
    if lead.key == POSSIBLE_INPUT:
        return replace(made, consequence=f"{say_consequence(describe_gain(lead), '')} if so; {_MARK_INPUT}")
    gain = "" if is_input and pipeline.caveat else describe_gain(lead, pipeline.least_speedup if is_input else 1.0)
    if finding is not None:
        start = find_start(finding)
    elif is_input:
        start = _start_of_input(pipeline)
    else:
        waits = results.get("host_waits")
        within = waits.within if isinstance(waits, HostCauses) and lead.key == HOST else ""
        start = "" if lead.key == "migration" else lead.culprit or within  # pages migrate anywhere
    tables = lead.record.tables if lead.record is not None else BY_CAUSE.get(lead.key, ELSEWHERE)
    sections = (place.partition(":")[0] for place in tables)
    section = next((slug for slug in sections if slug in results), "")
    fallback = section and f"see section {section}"
    if lead.key == "profiler":
        start, fallback = "", "record less: the profiler's own work hides that of the program"
    return replace(made, consequence=say_consequence(gain, _short(start), fallback))


def _short(place: str) -> str:
    return shorten_middle(place, LONGEST_PLACE)


def _start_of_input(pipeline: InputPipelineResult) -> str:
    """Return the line with most of the wait, else the stage; empty if no stage was recorded."""
    if pipeline.lines is not None and pipeline.lines.words:
        return place_within_sentence(pipeline.lines.functions[0].location)
    stage = pipeline.stages[0] if pipeline.stages else None
    if stage is None:
        return ""
    if stage.kind == DATALOADER:
        return f"the {stage.name}"
    if stage.kind == SAMPLED:
        return stage.name
    return f"{stage.name} (tf.data)" if stage.path else f'"{stage.name}"'


def headline_of_mild(time: Judged, lead: Option) -> Headline:
    """Return the headline of a healthy trace in which something else takes a little time."""
    made = claim_on("Healthy: devices compute", time.compute_share, time.words)
    share = f"{format_ratio(lead.share)} {base_of(lead.share_of)}"
    start = f"; start at {_short(lead.culprit)}" if lead.culprit else ""
    return replace(made, consequence=f"The largest other part is {lead.label}, {share}{start}")


def headline_of_computing(trace: TraceView, time: Judged, *, is_healthy: bool) -> Headline:
    """Return the headline on devices that compute, if nothing else leads. Only faster kernels then help much."""
    subject = "Healthy: devices compute" if is_healthy else "Devices compute"
    made = claim_on(subject, time.compute_share, time.words)
    kernel = _find_largest_kernel(trace)
    if kernel is None:
        return made
    name, share = kernel
    takes = f"{shorten_middle(name)}, {format_ratio(share)} of kernel time"
    return replace(made, consequence=f"To go faster, start at kernel {takes}")


def _find_largest_kernel(trace: TraceView) -> tuple[str, float] | None:
    """Return the function of the kernel with most time, and its share of kernel time."""
    kernels = trace.frame("kernels", "name", "dur_ns").group_by("name").agg(pl.col("dur_ns").sum().alias("time"))
    whole = int(kernels["time"].sum() or 0) if kernels.height else 0
    if not whole:
        return None
    name, time = kernels.with_columns(pl.col("name").cast(pl.String)).sort("time", "name", descending=True).row(0)
    return function_of(name), int(time) / whole


def headline_of_own_work(trace: TraceView, time: Judged, steps: object, share: float) -> Headline:
    """Return the headline on a program that works on the host, with the operator or function that takes most of it."""
    if share < HEALTHY:
        return NO_HEADLINE
    groups = steps.groups if isinstance(steps, CpuSteps) else None
    computes = 0
    if groups is not None:
        computes = int(groups.filter(pl.col("kind").is_in(list(OF_OPERATORS)))["time_ns"].sum())
    is_computing = 2 * computes >= share * time.total_ns
    subject = "Compute-bound: the program computes" if is_computing else "Host-bound: the program works"
    made = claim_on(subject, share, time.words)
    function = working_function(trace) if groups is not None else None
    if function is not None and function.share >= WORTH_A_FUNCTION:
        start, of = function.words, function.share
    elif groups is not None:
        own = groups.filter(pl.col("kind").is_in(list(OF_OPERATORS | OF_THE_PROGRAM)))
        if not own.height:
            return made
        top = own.sort("largest_ns", "largest", descending=[True, False]).row(0, named=True)
        start, of = shortened(str(top["largest"]).strip("# "), line=time.sampled), time.share(int(top["largest_ns"]))
    else:
        return made
    return replace(made, consequence=f"Start at {_short(start)}, {format_ratio(of)} {base_of(time.words)}")


def headline_of_lanes(lanes: LaneTimes) -> Headline:
    """Return the headline on the lane that works longer than its kind, else on the busiest."""
    whole = max(lanes.captured_ns, 1)
    if (longest := lanes.longest) is not None:
        made = claim_on("One lane works", longest.busy_ns / whole, CAPTURED, longest.lane)
        least, most = (format_ratio(time / whole) for time in (longest.least_ns, longest.most_ns))
        return replace(made, consequence=f"{longest.others} other lanes of its kind work {least} to {most} of it")
    lane = lanes.lanes.row(0, named=True)
    subject = "The busiest lane works" if lanes.lanes.height > 1 else "The lane works"
    made = claim_on(subject, lane["busy_ns"] / whole, CAPTURED, lane["lane"])
    share = format_ratio(lane["largest_ns"] / whole)
    return replace(made, consequence=f"Start at {_short(lane['largest'])}, {share} of the capture")


def headline_of_totals(printed: PrintedTotals) -> Headline:
    """Return the headline on a summary without events: the entry with most of the listed time."""
    parts = ((printed.gpu, _GPU_TIME, "kernel"), (printed.api, _API_TIME, "call"))
    found = [
        claim_on(
            _with_article(what, float(part["share"][0])), float(part["share"][0]), of, function_of(part["name"][0])
        )
        for part, of, what in parts
        if part.height and part["share"][0] is not None
    ]
    if not found:
        return NO_HEADLINE
    api = printed.api
    others = f"Of the API calls, {shortened(api['name'][0])} takes {format_ratio(api['share'][0])}" if found[1:] else ""
    return replace(found[0], consequence=others)


def _with_article(what: str, share: float) -> str:
    return f"One {what} takes" if share >= MOST else f"The largest {what} takes"


def headline_of_unjudged(trace: TraceView, pipeline: InputPipelineResult) -> Headline:
    """Return the headline of a capture that shows no causes: its largest kernel or event, else why it shows none."""
    kind = pipeline.kind
    kernel = _find_largest_kernel(trace)
    remedy = kind.remedy.rstrip(".")
    base = _COLLECTIVE_TIME if kind.key == "filtered" else _KERNEL_TIME
    if kind.late_device:
        made = claim_on("One late device takes up to", kind.late_share, base, kind.late_device)
        return replace(made, consequence=remedy)
    if kernel is not None:
        made = claim_on(_with_article("kernel", kernel[1]), kernel[1], base, kernel[0])
        return replace(made, consequence=remedy)
    if trace.ranks and trace.captured_ns:
        rank = max(trace.ranks, key=lambda process: trace.idle_of(process).total)
        name, inside = find_costliest_name(trace, rank, trace.idle_of(rank))
        if name:
            made = claim_on("One event takes", inside / trace.captured_ns, CAPTURED, name)
            return replace(made, consequence=remedy)
    reason = {"no-device-work": "no device work was recorded", "no-kernels": "no kernels were recorded"}
    why = reason.get(kind.key) or (pipeline.reason.fact if pipeline.reason is not None else "no steps were found")
    return Headline(f"Not judged: {why}", consequence=remedy)


def own_share(trace: TraceView, time: Judged) -> float:
    """Return the share in which the program computes on the host; 0 if there is a device."""
    return 0.0 if time.has_device else time.share(int(having(host_causes(trace), "part", HOST)["time_ns"].sum()))


def headline_of_largest(findings: list[Finding]) -> Headline:
    """Return the headline of the largest problem, if only some sections were analysed."""
    if not findings:
        return Headline("Not judged: only some sections were analysed")
    one = findings[0]
    record, share = record_of(one.code), one.share or 0.0
    label = one.heading or record.label or one.slug.replace("-", " ")
    option = Option(one.slug, label, one.cost_ns, share, one.share_of, record.certainty, one.code, "", record=record)
    start = find_start(one)
    made = claim_of_option(option, one, has_device=True)
    return replace(made, consequence=say_consequence(describe_gain(option), _short(start)))
