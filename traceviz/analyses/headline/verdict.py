"""The first line of the report: the kind of capture, the cause that takes the time, and the verdict on the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from traceviz.analyses.capture.capture import CaptureFacts
from traceviz.analyses.capture.totals import PrintedTotals
from traceviz.analyses.capture.whole_run import describe_failure
from traceviz.analyses.derived.calls.short_names import shortened
from traceviz.analyses.derived.capture.kind import uses_unseen_devices
from traceviz.analyses.derived.capture.speedups import WhatIf
from traceviz.analyses.derived.capture.step_words import FEW_STEPS, SOURCE_WORDS, few_steps
from traceviz.analyses.derived.capture.time_spent import BRIEF, describe_time_around_work, share_with_device_work
from traceviz.analyses.derived.causes.attribution import host_causes
from traceviz.analyses.derived.causes.kinds import HOST
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.likely_frameworks import likely_frameworks
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.steps.steps import INFERRED
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.headline.choice import (
    COMPUTE,
    HEALTHY,
    INPUT,
    INPUTS,
    MOST,
    MUCH,
    UNEXPLAINED,
    Choice,
    Option,
    choose,
)
from traceviz.analyses.headline.claims import NO_HEADLINE, Headline
from traceviz.analyses.headline.first_lines import (
    WORTH_A_FUNCTION,
    headline_of_computing,
    headline_of_lanes,
    headline_of_largest,
    headline_of_lead,
    headline_of_mild,
    headline_of_own_work,
    headline_of_totals,
    headline_of_unjudged,
    own_share,
)
from traceviz.analyses.headline.judged_time import Judged, measure_judged_time
from traceviz.analyses.headline.parts import (
    find_own_work,
    find_parts,
    find_precise_options,
    find_waits_for_work,
    list_kinds,
    list_parts,
    suspect_input,
)
from traceviz.analyses.headline.sentences import (
    describe_input,
    describe_input_cause,
    describe_minor_cause,
    describe_others,
    fit_sentences,
)
from traceviz.analyses.headline.whole_run import (
    RunText,
    describe_capture,
    describe_run,
    describe_start_up,
    has_long_warm_up,
    has_whole_run,
)
from traceviz.analyses.host.host_waits import HostCauses
from traceviz.analyses.host.own_function import working_function
from traceviz.analyses.input.input_pipeline import InputPipelineResult
from traceviz.analyses.options import OURS
from traceviz.analyses.program.cpu_steps import OF_OPERATORS, OF_THE_PROGRAM, CpuSteps, CpuStepsAnalysis
from traceviz.analyses.program.lanes import LaneTimes
from traceviz.analyses.ranks.rank_times import RanksResult
from traceviz.analyses.serving.serving import ServingResult
from traceviz.analyses.steps.steps import StepTimes
from traceviz.core.units import format_ratio
from traceviz.report import Finding, Severity, Verdict
from traceviz.report.findings.registry import record_of
from traceviz.report.verdicts import Cause, InputVerdict, VerdictCode

MOST_FAMILIES = 2
"""At most this many families of operators are named."""
WORTH_NAMING = 0.1
"""A family of operators is named if it takes this share of the time."""
_WITHOUT_DEVICE = frozenset({"cpu-only", "no-device-work"})
"""Kinds of captures without device work whose programs need no device."""
UNEXPLAINED_SHARE = 0.1
"""Least share of unexplained time that is reported for a program without a device."""
LEAST_WORK = 0.001
"""The time from first to last device work is described if it is this share of the captured time."""
MOSTLY_COMPUTES = 0.8
"""Least share of computing with which a trace is healthy if nothing else takes much time."""


def verdict(trace: TraceView, results: dict[str, Any], findings: tuple[Finding, ...]) -> Verdict:
    """Return the verdict on ``trace`` from the results of its analyses (by slug) and the findings, worst first."""
    pipeline = results.get("input_pipeline")
    if not isinstance(pipeline, InputPipelineResult):
        return _judge_some_sections(findings)
    printed, capture = results.get("totals"), results.get("capture")
    if isinstance(printed, PrintedTotals) and isinstance(capture, CaptureFacts) and not capture.events:
        caveat = "The file is a summary without events: it does not show why devices wait."
        first = headline_of_totals(printed)
        return Verdict(VerdictCode.CANNOT_JUDGE, _summary_sentence(printed), **_first_lines(first, (caveat,)))
    pipeline = _with_prediction(pipeline, results.get("what_if"))
    results = {**results, "input_pipeline": pipeline}
    time = measure_judged_time(trace)
    lanes = _describe_lanes(results)
    says_nothing = _says_nothing(trace, pipeline, time) or lanes
    options = () if says_nothing else tuple(_options(trace, results, time, findings))
    choice = choose(options, 0.0 if lanes else own_share(trace, time), _find_lateness(trace, results.get("ranks")))
    around = _describe_time_around_work(trace, results)
    working = share_with_device_work(trace)
    judges_steps = bool(steady_time(trace))
    is_brief = (bool(around) or pipeline.kind.key == "start-up") and working < BRIEF and not judges_steps
    if is_brief and not lanes:  # most of the capture is before or after the work
        cause_sentence = _describe_brief_work(time, choice.lead) if working >= LEAST_WORK else ""
    else:
        cause_sentence = lanes or _describe_cause(trace, results, time, choice)
    opening = _name_kind(results, pipeline)
    run = _describe_whole(trace, results, findings, choice.lead)
    if is_brief and not lanes:
        run = describe_start_up(trace, working)
    is_plain = pipeline.kind.key in _WITHOUT_DEVICE and has_whole_run(results.get("whole_run")) and time.sampled
    is_judged = judges_steps and not time.has_device
    knows_more = choice.lead or around or lanes or is_judged or pipeline.spent == cause_sentence
    judges_input = pipeline.verdict is not InputVerdict.NOT_JUDGED
    failure, cycle, unrecorded = describe_failure(trace), _name_cycle(trace), _describe_unrecorded_work(results)
    unexplained, caution = _describe_unexplained(trace, results, time, choice), _caution_about_steps(results)
    sentences = [
        (0, failure),
        (0, run.sentence if run.candidate else ""),
        (0, "" if is_plain else opening),
        (0, around if is_brief else ""),
        (0, cause_sentence),
        (4, opening if is_plain else ""),  # a record of the whole run already shows that there is no device
        (3 if judges_steps else 0 if working < MOST else 1, "" if is_brief else around),
        (1, describe_others(choice, time) if cause_sentence else ""),
        (0, "" if run.candidate else run.sentence),
        (2, unexplained),
        (1, _advise_recording(results, choice)),
        (2, describe_input(pipeline, choice.lead) if judges_input else ""),
        (6, _describe_host_while_idle(trace, time, choice)),
        (5, _describe_computing(time, pipeline, choice)),
        (6, "" if knows_more else pipeline.spent),
        (2, pipeline.remedy.brief),
        (3, caution),
        (0, unrecorded),
        (0, trace.clock_doubt),
        (0, cycle),
    ]
    lead = run.candidate or choice.lead
    cause = lead.key if lead else Cause.HEALTHY if _is_healthy(time) else Cause.UNKNOWN
    is_divided = time.has_device and time.total_ns and not says_nothing and trace.options.basis == OURS
    parts = list_parts(time, options) if is_divided else ()
    judged = _find_headline(trace, results, time, choice, findings)
    first = run.headline if run.candidate else judged
    caveats = (
        failure,
        run.caveat,
        f"{judged.text}." if run.candidate and choice.lead and judged.text else "",
        opening,
        around if is_brief else "",
        trace.clock_doubt,
        unrecorded,
        describe_others(choice, time, is_alone=True) if cause_sentence else "",
        "" if run.candidate else run.sentence,
        caution,
        describe_input(pipeline, choice.lead, is_alone=True) if judges_input else "",
        "" if is_brief else around,
        unexplained,
        cycle,
        pipeline.remedy.brief,
    )
    return Verdict(
        pipeline.verdict.code,
        fit_sentences(sentences),
        cause,
        run.among(choice.candidates),
        parts,
        capture_parts=run.parts,
        **_first_lines(first, caveats),
    )


def _judge_some_sections(findings: tuple[Finding, ...]) -> Verdict:
    """Return the verdict if the input was not analysed: the largest problem of the sections that were."""
    partial = "Only some sections were analysed; the verdict needs input_pipeline."
    first = headline_of_largest(_list_problems(findings))
    caveat = partial if first.figure else "The verdict needs the section input_pipeline."
    line = " ".join(filter(None, (partial, _name_largest_problem(findings))))
    return Verdict(VerdictCode.PARTIAL, line, **_first_lines(first, (caveat,)))


def _first_lines(first: Headline, caveats: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a verdict for its headline, without repeated caveats."""
    return {
        "headline": first.text,
        "figure": first.figure,
        "consequence": first.consequence,
        "caveats": tuple(dict.fromkeys(filter(None, caveats))),
    }


def _find_headline(
    trace: TraceView, results: dict[str, Any], time: Judged, choice: Choice, findings: tuple[Finding, ...]
) -> Headline:
    """Return the headline on the judged time: the option that leads, else what computes, else what is known."""
    pipeline, lead, own = results["input_pipeline"], choice.lead, own_share(trace, time)
    if _describe_lanes(results):
        return headline_of_lanes(results["lanes"])
    is_minor = lead is not None and not time.has_device and lead.share < min(MUCH, own) and lead.key != INPUT
    if lead is not None and not is_minor:
        if _is_mild(time, lead):
            return headline_of_mild(time, lead)
        return headline_of_lead(results, time, lead, findings)
    found = NO_HEADLINE
    if time.total_ns and not _says_nothing(trace, pipeline, time):
        if time.has_device:
            found = headline_of_computing(trace, time, is_healthy=_is_healthy(time))
        else:
            steps = results.get("cpu_steps") or CpuStepsAnalysis().run(trace)
            found = headline_of_own_work(trace, time, steps, own)
    return found if found.text else headline_of_unjudged(trace, pipeline)


def _with_prediction(pipeline: InputPipelineResult, predicted: object) -> InputPipelineResult:
    """Return the result with the least speed-up without the input, if predictions were requested."""
    found = predicted.found if isinstance(predicted, WhatIf) else ()
    least = next((p.low for p in found if p.key == INPUT and not p.reason), 1.0)
    return replace(pipeline, least_speedup=least) if least > 1 else pipeline


def _describe_whole(
    trace: TraceView, results: dict[str, Any], findings: tuple[Finding, ...], lead: Option | None
) -> RunText:
    """Return the text about the whole run or capture, if steps are only a part of it."""
    pipeline, whole_run, judges_steps = results["input_pipeline"], results.get("whole_run"), bool(steady_time(trace))
    if not has_whole_run(whole_run) and pipeline.verdict is not InputVerdict.NOT_JUDGED:
        blames = lead is not None and lead.certainty == "measured" and lead.share >= MUCH
        is_good = pipeline.verdict is InputVerdict.NOT_BOUND and not blames
        return describe_capture(trace, lead, is_good=is_good) if not _describe_lanes(results) else RunText()
    is_recorded = judges_steps and training_steps(trace).source != "counted"  # true if a profiler recorded these steps
    text = describe_run(
        whole_run,
        lead if lead is not None and lead.key != UNEXPLAINED else None,
        are_steps_judged=judges_steps,
        are_recorded=is_recorded,
        has_device=bool(trace.rank_busy),
        recompiles=any(finding.code == "TV401" for finding in findings),
    )
    # Warm-up steps are steps of the run. If devices idle in them, the capture shows what the host did.
    return text if text.sentence or not has_long_warm_up(whole_run) else describe_capture(trace, lead, is_good=False)


def _options(
    trace: TraceView, results: dict[str, Any], time: Judged, findings: tuple[Finding, ...]
) -> Iterator[Option]:
    """Yield everything that may lead: exclusive parts, the input, and more precise findings."""
    if not time.total_ns:
        return
    pipeline, waits = results["input_pipeline"], results.get("host_waits")
    judges = pipeline.verdict.is_judged and pipeline.step_ns
    for part in find_parts(trace, time, pipeline.copy_ns if judges else 0, waits.within if waits else ""):
        if not (judges and part.key == INPUT):
            yield part
    if judges and pipeline.wait_ns:
        share, label = pipeline.input_share or 0.0, "input"
        where = f"mostly {pipeline.stages[0].name}" if pipeline.stages else "waits for batches and copies of them"
        sentences = [describe_input_cause(pipeline, gain=gain) for gain in (True, False)]
        sentence, alone = sentences if pipeline.verdict is not InputVerdict.POSSIBLY_BOUND else ("", "")
        yield Option(INPUT, label, pipeline.wait_ns, share, time.words, "measured", where, sentence, without_gain=alone)
    if pipeline.verdict is InputVerdict.POSSIBLY_BOUND:
        yield suspect_input(pipeline.at_stake_share, pipeline.at_stake_ns, time, describe_input_cause(pipeline))
    if not pipeline.verdict.is_judged:
        yield from find_waits_for_work(trace, time)
    are_input = bool(judges and 2 * pipeline.copy_ns > time.times["copy_h2d"])
    may_be_network = bool(likely_frameworks(trace))
    causes = host_causes(trace)
    yield from find_precise_options(findings, time, causes, input_copies=are_input, is_network=may_be_network)


def _find_lateness(trace: TraceView, ranks: object) -> str:
    """Return the part of the judged time by which all ranks are late in turn; empty if there is none."""
    shared = ranks.shared if isinstance(ranks, RanksResult) else ""
    if shared in {"", "input_wait"}:
        return INPUT if shared else ""
    times = having(host_causes(trace), "class", shared).group_by("part").agg(pl.col("time_ns").sum())
    return str(times.sort("time_ns", "part", descending=[True, False])["part"][0]) if times.height else ""


def _says_nothing(trace: TraceView, pipeline: InputPipelineResult, time: Judged) -> bool:
    """Return whether the judged time cannot show its causes: device work was lost, or was not measured."""
    if pipeline.kind.key in {"no-kernels", "counters", "filtered"}:
        return True
    is_elsewhere = trace.api_calls("launch").height > 0 or bool(uses_unseen_devices(trace))
    return not time.has_device and (pipeline.verdict is InputVerdict.NOT_JUDGED or is_elsewhere)


def _name_kind(results: dict[str, Any], pipeline: InputPipelineResult) -> str:
    """Return the sentence that names the kind of capture."""
    if pipeline.verdict is not InputVerdict.NOT_JUDGED:
        return pipeline.kind.opening
    serving = results.get("serving")
    if isinstance(serving, ServingResult):
        return serving.sentence()
    return f"{pipeline.verdict.title}: {pipeline.reason.text}." if pipeline.reason else ""


def _describe_cause(trace: TraceView, results: dict[str, Any], time: Judged, choice: Choice) -> str:
    """Return the sentence of the leading cause, or that there is none."""
    lead = choice.lead
    own = own_share(trace, time)
    if lead is not None and not time.has_device and lead.share < min(MUCH, own) and lead.key != INPUT:
        return f"{_describe_own_work(trace, results, time)} Beside it: {lead.label} ({format_ratio(lead.share)})."
    if lead is not None:
        longer = "" if time.has_device else _name_longer_function(trace, lead)
        return describe_minor_cause(time, lead) if _is_mild(time, lead) else f"{lead.sentence}{longer}"
    # The opening already reports missing device work, or how busy an engine keeps the device.
    if not time.total_ns or _says_nothing(trace, results["input_pipeline"], time) or "serving" in results:
        # The host's calls are known even if the work that they launched was not recorded.
        return "" if time.has_device else results["input_pipeline"].spent
    if not time.has_device:
        return _describe_own_work(trace, results, time)
    computing = f"{time.device} computes in {format_ratio(time.compute_share)} of {time.whole}."
    return f"Healthy: {computing}" if _is_healthy(time) else f"{computing[0].upper()}{computing[1:]}"


def _name_longer_function(trace: TraceView, lead: Option) -> str:
    """Return the function that computes for longer than the leading cause takes, as a further sentence; may be empty.

    It may compute for the model, so that it is no cause by itself: an agent that acts, a loss, an average of weights.
    """
    function = working_function(trace) if lead.record is not None and lead.record.is_sampled else None
    if function is None or function.share <= max(lead.share, WORTH_A_FUNCTION) or function.words in lead.sentence:
        return ""
    return f" Longer still computes {function.words}: {format_ratio(function.share)}."


def _describe_brief_work(time: Judged, lead: Option | None) -> str:
    """Return the sentence about the time with device work, if most of the capture is before or after it."""
    if lead is None or _is_mild(time, lead):
        share = format_ratio(time.compute_share)
        begin = "Healthy from first to last device work:" if _is_healthy(time) else "From first to last device work,"
        return f"{begin} {time.device} computes in {share} of that time."
    part = "mostly" if lead.share >= MOST else "the largest part is"
    where = f": {lead.culprit}" if lead.culprit else ""
    return f"From first to last device work, {part} {lead.label} ({format_ratio(lead.share)}{where})."


def _describe_lanes(results: dict[str, Any]) -> str:
    """Return the sentence about lanes that no profiler describes; empty if there are operators, which show more."""
    lanes = results.get("lanes")
    return lanes.sentence if isinstance(lanes, LaneTimes) and "cpu_steps" not in results else ""


def _describe_time_around_work(trace: TraceView, results: dict[str, Any]) -> str:
    """Return the sentence about the time before or after all device work; empty for a program with steps."""
    times = results.get("steps")
    has_steps = isinstance(times, StepTimes) and not times.slight and times.steps.steady.height >= FEW_STEPS
    return "" if has_steps else describe_time_around_work(trace)


def _describe_unexplained(trace: TraceView, results: dict[str, Any], time: Judged, choice: Choice) -> str:
    """Return the unexplained time; if that leads, the host's computing. Empty if there is a device."""
    if time.has_device or not time.total_ns:
        return ""
    if choice.lead is not None and choice.lead.key == UNEXPLAINED:
        return _describe_own_work(trace, results, time)
    share = _unexplained_alone(choice)
    return f"Also: unexplained ({format_ratio(share)})." if share else ""


def _unexplained_alone(choice: Choice) -> float:
    """Return the unexplained share if nothing leads and the share is worth reporting, else 0."""
    shares = (c.share for c in choice.candidates if c.key == UNEXPLAINED and c.share >= UNEXPLAINED_SHARE)
    return 0.0 if choice.lead is not None else next(shares, 0.0)


def _advise_recording(results: dict[str, Any], choice: Choice) -> str:
    """Return what to record next if unexplained time leads."""
    waits = results.get("host_waits")
    lead = choice.lead
    leads = lead is not None and lead.key == UNEXPLAINED
    if isinstance(waits, HostCauses) and lead is not None and lead.key == HOST:
        leads = waits.time_of(["running"]) >= MOST * lead.time_ns
    if not isinstance(waits, HostCauses) or not (leads or _unexplained_alone(choice)):
        return ""
    return f"To see more: {waits.record[0]}."


def _describe_host_while_idle(trace: TraceView, time: Judged, choice: Choice) -> str:
    """Return the sentence about the host's work while the device waits for its next launch."""
    own = find_own_work(trace)
    if choice.lead is None or not choice.lead.is_launch_bound or time.share(int(own["time_ns"].sum())) < HEALTHY:
        return ""
    return f"The host works meanwhile{list_kinds(own, time)}."


def _is_healthy(time: Judged) -> bool:
    return time.has_device and time.compute_share >= MOSTLY_COMPUTES


def _is_mild(time: Judged, lead: Option) -> bool:
    """Return whether the lead is small compared to computing. The input has sentences of its own for that."""
    return _is_healthy(time) and lead.share < MUCH and lead.key != INPUT and COMPUTE not in lead.within


def _describe_own_work(trace: TraceView, results: dict[str, Any], time: Judged) -> str:
    """Return the sentence about the program's own work on the host, if there is no device."""
    share = own_share(trace, time)
    if share < HEALTHY:
        return ""
    steps = results.get("cpu_steps") or CpuStepsAnalysis().run(trace)  # the line does not depend on the sections shown
    if not isinstance(steps, CpuSteps):
        return f"The program works in {format_ratio(share)} of {time.whole}{list_kinds(find_own_work(trace), time)}."
    computes = steps.groups.filter(pl.col("kind").is_in(list(OF_OPERATORS)))["time_ns"].sum()
    verb = "computes" if 2 * computes >= share * time.total_ns else "works"
    function = working_function(trace)  # not one in which a model learns, as all steps do
    is_large = function is not None and function.share >= WORTH_A_FUNCTION
    where = f", {format_ratio(function.share)} in {function.words}" if function is not None and is_large else ""
    base = f"{format_ratio(share)} of {time.whole}{steps.precision_words}"
    return f"The program {verb} in {base}{where}{_list_families(steps, time, share)}."


def _list_families(steps: CpuSteps, time: Judged, own_share: float) -> str:
    """Return the families of operators, or other work, that take most of the program's ``own_share``."""
    groups = steps.groups.filter(pl.col("kind").is_in(list(OF_OPERATORS | OF_THE_PROGRAM))).head(MOST_FAMILIES)
    named = []
    for row in groups.filter(pl.col("time_ns") >= WORTH_NAMING * steps.judged_ns).iter_rows(named=True):
        label = str(row["label"])
        label = label if row["group"] == "python" else label.lower()  # Python is a name
        named.append(f"{label} ({format_ratio(time.share(row['time_ns']))})")
    if not named:
        return ""
    said = groups.filter(pl.col("time_ns") >= WORTH_NAMING * steps.judged_ns)
    top = said.sort("largest_ns", "largest", descending=[True, False]).row(0, named=True)
    largest, share = shortened(str(top["largest"]).strip("# "), line=time.sampled), time.share(int(top["largest_ns"]))
    is_most = time.share(int(said["time_ns"].sum())) >= MOST * own_share
    parts = "mostly" if is_most else f"the largest part{'s' if len(named) > 1 else ''} being"
    inside = "in " if top["kind"] == "range" else ""  # a range is a place
    if len(named) == 1 and top["label"] == "Ranges":
        return f", most of all in {largest} ({format_ratio(share)})"
    return f", {parts} {' and '.join(named)}, above all {inside}{largest} ({format_ratio(share)})"


def _describe_computing(time: Judged, pipeline: InputPipelineResult, choice: Choice) -> str:
    """Return the sentence with the share in which the device computes, unless the cause states it."""
    if not time.total_ns or not time.has_device or choice.lead is None or choice.lead.key in INPUTS:
        return ""
    if pipeline.verdict is InputVerdict.NOT_JUDGED or _is_mild(time, choice.lead):  # the cause states that
        return ""
    return f"{time.opening} computes in {format_ratio(time.compute_share)}."


def _summary_sentence(printed: PrintedTotals) -> str:
    """Return the sentence about a summary without events: which entry takes most of the listed time."""
    parts = ((printed.gpu, "of the time of GPU activities"), (printed.api, "of the time of API calls"))
    largest = []
    for part, of in parts:
        if part.height and part["share"][0] is not None:
            largest.append(f"{shortened(part['name'][0])} has {format_ratio(part['share'][0])} {of}.")
    no_events = "Cannot judge the input pipeline: the file is a summary without events."
    return " ".join([no_events, *largest])


def _caution_about_steps(results: dict[str, Any]) -> str:
    """Return the caution if the verdict rests on inferred steps or on few steps."""
    times = results.get("steps")
    if not isinstance(times, StepTimes) or times.slight:
        return ""
    source = times.steps.source
    inferred = f"The steps were {SOURCE_WORDS[source]}." if source in INFERRED else ""
    return " ".join(filter(None, (few_steps(times.steps), inferred)))


def _describe_unrecorded_work(results: dict[str, Any]) -> str:
    """Return the sentence about unrecorded device work, if that is much of the capture."""
    capture = results.get("capture")
    return capture.unseen.sentence if isinstance(capture, CaptureFacts) and capture.unseen is not None else ""


def _name_cycle(trace: TraceView) -> str:
    """Return that the trace is one of several recordings of the program, one for each cycle of its profiler."""
    notes = trace.tables.arrow("notes").to_pylist() if "notes" in trace.tables else []
    is_cycle = any(note["code"] == "run-chosen" and note["severity"] == Severity.WARNING for note in notes)
    return "The folder has several recordings; this report is about the newest." if is_cycle else ""


def _list_problems(findings: tuple[Finding, ...]) -> list[Finding]:
    """Return the findings with a cost that are more than a hint, except those about the input."""
    serious = (finding for finding in findings if finding.severity is not Severity.INFO and finding.cost_ns)
    return [finding for finding in serious if not record_of(finding.code).is_of_input]


def _name_largest_problem(findings: tuple[Finding, ...]) -> str:
    worth = _list_problems(findings)
    if not worth:
        return ""
    problem = worth[0].slug.replace("-", " ")
    return f"Largest problem: {problem} ({format_ratio(worth[0].share or 0)} of the {worth[0].share_of})."
