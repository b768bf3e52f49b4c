"""The first line of the report: one sentence that says where the time went."""

from __future__ import annotations

from typing import Any

from traceviz.analyses.capture.capture import CaptureFacts
from traceviz.analyses.capture.totals import PrintedTotals
from traceviz.analyses.derived.host_classes import LABELS
from traceviz.analyses.derived.step_words import SOURCE_WORDS, few_steps
from traceviz.analyses.derived.steps.steps import INFERRED
from traceviz.analyses.device.use import DeviceUse
from traceviz.analyses.input.dataloader import DATALOADER
from traceviz.analyses.input.input_pipeline import NO_INPUT, InputPipelineResult
from traceviz.analyses.serving.serving import ServingResult
from traceviz.analyses.steps.breakdown import Breakdown
from traceviz.analyses.steps.steps import StepTimes
from traceviz.report import Finding, Severity, Verdict
from traceviz.units import format_ratio

LONGEST_NAME = 48
"""Characters of a name within a sentence."""
MOSTLY_IDLE = 0.5
"""Below this share of busy time, the sentence says what else there is."""


def verdict(results: dict[str, Any], findings: tuple[Finding, ...]) -> Verdict:
    """The verdict from the results of the analyses (by slug) and the findings, worst first."""
    pipeline = results.get("input_pipeline")
    if not isinstance(pipeline, InputPipelineResult):
        partial = "Only some sections were analysed; the verdict needs input_pipeline."
        return Verdict("partial", " ".join(filter(None, (partial, _largest(findings)))))
    printed, capture = results.get("totals"), results.get("capture")
    if isinstance(printed, PrintedTotals) and isinstance(capture, CaptureFacts) and not capture.events:
        return Verdict("cannot-judge", _summary_sentence(printed))
    doubts = (_unseen(results), _clock_doubt(results))
    if pipeline.verdict == "not judged":
        sentences = (_serving_sentence(results, pipeline), _largest(findings), *doubts)
        return Verdict("serving", " ".join(filter(None, sentences)))
    code = pipeline.verdict.replace(" ", "-")
    about_input = (pipeline.kind.opening, _input_sentence(pipeline))
    judged = (*about_input, _device_sentence(results, pipeline, findings), _caution(results))
    return Verdict(code, " ".join(filter(None, (*judged, *doubts))))


def _summary_sentence(printed: PrintedTotals) -> str:
    """What a summary without events can say: who takes most of the time that it lists."""
    parts = ((printed.gpu, "of the time of GPU activities"), (printed.api, "of the time of API calls"))
    largest = []
    for part, of in parts:
        if part.height and part["share"][0] is not None:
            name = part["name"][0]
            short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
            largest.append(f"{short} has {format_ratio(part['share'][0])} {of}.")
    no_events = "Cannot judge the input pipeline: the file is a summary without events."
    return " ".join([no_events, *largest])


def _serving_sentence(results: dict[str, Any], pipeline: InputPipelineResult) -> str:
    serving, use = results.get("serving"), results.get("device_use")
    if not isinstance(serving, ServingResult):
        return f"Not judged: {pipeline.reason}."
    return serving.sentence(_idle_cause(use) if isinstance(use, DeviceUse) else "")


def _idle_cause(use: DeviceUse) -> str:
    """What the host mostly does while the devices idle; empty where nobody saw it."""
    cause, time = max(use.idle_causes.items(), key=lambda item: item[1])
    return LABELS[cause] if time and use.host_seen else ""


def _input_sentence(pipeline: InputPipelineResult) -> str:
    if pipeline.verdict == "cannot judge":
        if pipeline.reason.startswith(NO_INPUT):
            return "It has no input to judge."
        return f"Cannot judge the input pipeline: {pipeline.reason}.{f' {pipeline.remedy}' if pipeline.remedy else ''}"
    share = format_ratio(pipeline.at_stake_ns / pipeline.step_ns)
    if pipeline.verdict == "not input-bound":
        return f"Not input-bound: {share} of steady step time waits for input."
    if pipeline.verdict == "possibly input-bound":
        return (
            f"Possibly input-bound: in {share} of steady step time the device is idle and the host launches nothing, "
            f"mostly {pipeline.stages[0].name if pipeline.stages else 'host compute'}. {pipeline.unranged}"
        )
    speedup = pipeline.best_case_speedup
    best = f"; at best {speedup:.1f}× as fast without the wait" if speedup else ""
    bound = f" ({pipeline.caveat})" if pipeline.caveat else ""
    where = ""
    if pipeline.stages:
        stage = pipeline.stages[0]
        named = f"for {stage.name} (tf.data)" if stage.path else f'in "{stage.name}"'
        where = f", mostly {f'in the {stage.name}' if stage.kind == DATALOADER else named}"
    return f"{pipeline.verdict.capitalize()}: {share} of steady step time waits for input{where}{best}{bound}."


def _device_sentence(results: dict[str, Any], pipeline: InputPipelineResult, findings: tuple[Finding, ...]) -> str:
    """How busy the device is, and the largest finding that is not about the input."""
    if pipeline.verdict in {"highly input-bound", "possibly input-bound"}:
        return ""
    breakdown, use = results.get("breakdown"), results.get("device_use")
    busy = ""
    if isinstance(breakdown, Breakdown) and "device_compute" in breakdown.measured and breakdown.step_ns:
        # "it" is the step time of the sentence before
        whole = "steady step time" if pipeline.verdict == "cannot judge" else "it"
        share = breakdown.times["device_compute"] / breakdown.step_ns
        busy = f"The device computes in {format_ratio(share)} of {whole}."
    elif isinstance(use, DeviceUse):
        judged = sum(d.judged_ns for d in use.devices) or 1
        share = sum(d.judged_busy_ns for d in use.devices) / judged
        busy = f"The device is busy in {format_ratio(share)} of the {use.judged_words}"
        cause = _idle_cause(use) if share < MOSTLY_IDLE else ""
        busy += f"; the rest is mostly {cause}." if cause else "."
    return " ".join(filter(None, (busy, pipeline.spent, _largest(findings))))


def _caution(results: dict[str, Any]) -> str:
    """A verdict on inferred steps is worth no more than the inference, one on few steps no more than those."""
    times = results.get("steps")
    if not isinstance(times, StepTimes) or times.slight:
        return ""
    source = times.steps.source
    inferred = f"The steps were {SOURCE_WORDS[source]}." if source in INFERRED else ""
    return " ".join(filter(None, (few_steps(times.steps), inferred)))


def _unseen(results: dict[str, Any]) -> str:
    """What is not known of the devices, where that is much of the capture."""
    capture = results.get("capture")
    return capture.unseen.sentence if isinstance(capture, CaptureFacts) and capture.unseen is not None else ""


def _clock_doubt(results: dict[str, Any]) -> str:
    """How certain idle time is where clocks of devices were moved."""
    use = results.get("device_use")
    return use.doubt if isinstance(use, DeviceUse) else ""


def _largest(findings: tuple[Finding, ...]) -> str:
    worth = [f for f in findings if f.severity is not Severity.INFO and f.cost_ns and f.code not in {"TV101", "TV102"}]
    if not worth:
        return ""
    problem = worth[0].slug.replace("-", " ")
    return f"Largest problem: {problem} ({format_ratio(worth[0].share or 0)} of the {worth[0].share_of})."
