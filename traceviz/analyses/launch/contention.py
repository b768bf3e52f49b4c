"""Contention of launches and the input pipeline: threads that prepare input may delay those that launch kernels."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.frames import having, intervals
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import format_ratio
from traceviz.report import STEADY_STEP_TIME, Fact, Facts, Finding, Section, Skipped


@dataclass(frozen=True, slots=True)
class Contention:
    """Launch time of steady steps, and the part of it during input preparation; over all ranks.

    Args:
        launch_ns: Time in which no device works and a launch call runs or launched work is queued.
        contended_ns: The part of it in which the input pipeline is busy.
        pipeline_ns: Time in which the input pipeline is busy on any thread.
        step_ns: Steady step time.
        private_threads: True if launches have threads of their own.
    """

    launch_ns: int
    contended_ns: int
    pipeline_ns: int
    step_ns: int
    private_threads: bool


@dataclass(frozen=True, slots=True)
class LaunchContentionAnalysis(Analysis[Contention]):
    """Overlay of kernel launching and input preparation.

    Args:
        launch_share: Least share of steady step time in which launching overlaps input preparation for a finding.
    """

    slug = "launch_contention"
    title = "Launching beside the input pipeline"
    rules = ("TV406",)

    launch_share: float = 0.03

    def run(self, trace: TraceView) -> Contention | Skipped:
        """Intersect the launch time of steady steps with the busy time of the input pipeline."""
        pipeline = trace.host_ops("pipeline")
        if not pipeline.height:
            return self.skipped("the trace shows no input pipeline (tf.data)")
        if not steady_time(trace):
            return self.skipped("no steady steps were found")
        launch_ns = contended_ns = pipeline_ns = step_ns = 0
        for process, window in steady_time(trace).items():
            busy = intervals(having(pipeline, "process_id", process)).intersect(window)
            launching = host_classes(trace)[process].sets["kernel_launch"].intersect(window)
            launch_ns += launching.total
            contended_ns += launching.intersect(busy).total
            pipeline_ns += busy.total
            step_ns += window.total
        names = trace.frame("threads", "name")["name"].drop_nulls()
        return Contention(launch_ns, contended_ns, pipeline_ns, step_ns, bool(names.str.contains(PRIVATE).any()))

    def judge(self, result: Contention) -> tuple[Finding, ...]:
        """Return a finding on launches that are delayed while input is prepared."""
        if result.private_threads or not result.step_ns:
            return ()
        if result.contended_ns < self.launch_share * result.step_ns:
            return ()
        message = (
            f"In {format_ratio(result.contended_ns / result.step_ns)} of the steady step time kernels are being "
            "launched, no device works, and threads of the input pipeline run at the same time: they share the cores."
        )
        evidence = (
            Fact("contended_ns", "launching while input is prepared", result.contended_ns, "ns"),
            Fact("launch_ns", "launching", result.launch_ns, "ns"),
            Fact("pipeline_ns", "input pipeline busy", result.pipeline_ns, "ns"),
        )
        return (finding("TV406", message, evidence, result.contended_ns, result.step_ns, STEADY_STEP_TIME),)

    def describe(self, result: Contention) -> Section:
        """Describe the overlay in figures."""
        facts = (
            Fact("launch_ns", "launching, device idle", result.launch_ns, "ns"),
            Fact("launch_share", "of steady step time", ratio(result.launch_ns, result.step_ns), "ratio"),
            Fact("contended_ns", "of which input is being prepared", result.contended_ns, "ns"),
            Fact("pipeline_share", "input pipeline busy", ratio(result.pipeline_ns, result.step_ns), "ratio"),
            Fact("private_threads", "launches have threads of their own", result.private_threads, "bool"),
        )
        return Section(self.slug, self.title, (Facts(facts),))


PRIVATE = r"gpu_(private|shared)"
"""Threads that TensorFlow starts for launching if ``TF_GPU_THREAD_MODE`` asks for it."""
