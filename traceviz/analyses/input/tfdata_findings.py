"""Findings about the settings of a tf.data pipeline that the program waits for."""

from __future__ import annotations

from dataclasses import replace

from traceviz.analyses.input.stages import TF_DATA, Stage
from traceviz.analyses.input.tfdata import CACHE, FASTER_MAP, STILL_SLOW
from traceviz.analyses.input.tfdata_settings import WRAPPERS, PipelineSettings, StageSettings
from traceviz.core.units import counted, format_ratio
from traceviz.report import Fact, Finding
from traceviz.report.findings.registry import record_of

CODES = ("TV103", "TV104", "TV105", "TV106", "TV107")
"""Codes of the findings that this module raises."""


def settings_findings(
    settings: PipelineSettings, stages: tuple[Stage, ...], *, empty: float, blamed: float, memory: float
) -> tuple[Finding, ...]:
    """Return findings that explain the wait. They have no time at stake, because another finding counts the wait.

    Args:
        settings: The settings.
        stages: Stages in which the program waited.
        empty: A prefetch runs empty if at least this share of calls found its buffer empty.
        blamed: Stages with less than this share of the wait are left out.
        memory: The memory budget is used up from this share on.
    """
    whole = sum(stage.self_ns for stage in stages) or 1
    shares = {stage.path: stage.self_ns / whole for stage in stages if stage.kind == TF_DATA}
    if sum(shares.values()) < blamed:
        return ()  # the wait is not due to the pipeline
    waited = [(s, share) for s in settings.stages if (share := shares.get(" > ".join(reversed(s.path)), 0.0)) >= blamed]
    prefetches = [s for s in settings.stages if s.kind == "Prefetch" and s.empty_share is not None]
    cores = settings.cpu_budget or 0
    findings = [
        *(_runs_empty(stage) for stage in prefetches if (stage.empty_share or 0.0) >= empty),
        *(_few_at_once(stage, cores, share) for stage, share in waited if settings.leaves_cores(stage)),
    ]
    for share in (share for stage, share in waited if stage.kind == "Map"):
        message = f"A sequential Map takes {format_ratio(share)} of the wait: it maps one element after the other."
        findings.append(_info("TV106", message, (Fact("share_of_wait", "of the wait", share, "ratio"),)))
    if settings.stages and not settings.prefetches:
        in_use = settings.in_use
        last = next((stage for stage in in_use if stage.kind not in WRAPPERS), in_use[0]).kind
        message = f"The pipeline ends in {last}, without a prefetch: each batch is prepared while the program waits."
        findings.append(_info("TV105", message, (Fact("last_stage", "last stage", last),)))
    if settings.memory_used is not None and settings.memory_used >= memory:
        used = settings.memory_used
        message = f"The pipeline's buffers use {format_ratio(used)} of their memory budget: they cannot grow further."
        evidence = (
            Fact("memory_used", "of the memory budget", used, "ratio"),
            Fact("memory_budget", "memory budget", settings.memory_budget, "bytes"),
        )
        findings.append(_info("TV107", message, evidence))
    return tuple({finding.code: finding for finding in reversed(findings)}.values())[::-1]


def with_settings(stage: Stage, settings: PipelineSettings) -> Stage:
    """Return ``stage`` with advice that agrees with its settings in the trace."""
    own = settings.at(stage.path) if stage.kind == TF_DATA else None
    if own is None:
        return stage
    advice = [line for line in (stage.advice, *stage.further) if not (line == CACHE and "Cache" in own.path)]
    advice = [words for line in advice for words in (_parallel(own, settings) if line == STILL_SLOW else (line,))]
    first, *others = advice or [""]
    return replace(stage, advice=first, further=tuple(others))


def _parallel(stage: StageSettings, settings: PipelineSettings) -> tuple[str, ...]:
    """Return advice for a stage that works on several elements at once."""
    if settings.leaves_cores(stage):
        return record_of("TV104").advice
    if "Map" in stage.fused and stage.parallelism is not None:
        return (f"tf.data itself maps {counted(stage.parallelism, 'element')} at once already: {FASTER_MAP}.",)
    return (STILL_SLOW,)


def _runs_empty(stage: StageSettings) -> Finding:
    share = stage.empty_share or 0.0
    message = f"In {format_ratio(share)} of its {counted(stage.calls, 'call')}, the prefetch buffer was found empty."
    evidence = (
        Fact("empty_share", "calls that found it empty", share, "ratio"),
        Fact("buffer_limit", "elements it may hold", stage.buffer_limit, "count"),
    )
    return _info("TV103", message, evidence)


def _few_at_once(stage: StageSettings, cores: int, share: float) -> Finding:
    number = counted(stage.parallelism or 0, "element")
    message = f"{stage.kind} works on {number} at once, where the pipeline may use {counted(cores, 'core')}."
    evidence = (
        Fact("parallelism", "elements at once", stage.parallelism, "count"),
        Fact("cpu_budget", "cores it may use", cores, "count"),
        Fact("share_of_wait", "of the wait", share, "ratio"),
    )
    return _info("TV104", message, evidence)


def _info(code: str, message: str, evidence: tuple[Fact, ...]) -> Finding:
    record = record_of(code)
    return Finding(code, record.slug, record.severity_of(0.0), message, evidence, record.advice, 0)
