"""Every analysis, in the order of the report. One is loaded when its section is asked for."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from traceviz.errors import UsageError

if TYPE_CHECKING:
    from traceviz.analyses.base import Analysis

_CLASSES = {
    "run": "capture.run:RunAnalysis",
    "capture": "capture.capture:Capture",
    "breakdown": "steps.breakdown:BreakdownAnalysis",
    "input_pipeline": "input.input_pipeline:InputPipelineAnalysis",
    "steps": "steps.steps:StepAnalysis",
    "totals": "capture.totals:TotalsAnalysis",
    "cuda_api": "launch.cuda_api:CudaApiAnalysis",
    "framework_ops": "program.framework_ops:FrameworkOpsAnalysis",
    "operators": "program.operators:OperatorsAnalysis",
    "modules": "program.modules:ModulesAnalysis",
    "kernels": "device.kernels:KernelsAnalysis",
    "precision": "device.precision:PrecisionAnalysis",
    "copies": "device.copies:CopiesAnalysis",
    "device_use": "device.use:DeviceUseAnalysis",
    "gpu_efficiency": "device.gpu_efficiency:GpuEfficiencyAnalysis",
    "devices": "device.devices:DevicesAnalysis",
    "device_programs": "device.programs:DeviceProgramsAnalysis",
    "idle_gaps": "device.idle_gaps:IdleGapsAnalysis",
    "launch": "launch.launch:LaunchAnalysis",
    "launch_contention": "launch.contention:LaunchContentionAnalysis",
    "compilation": "program.compilation:CompilationAnalysis",
    "memory": "device.memory:MemoryAnalysis",
    "host": "host.resources:HostResourcesAnalysis",
    "communication": "ranks.communication:CommunicationAnalysis",
    "ranks": "ranks.ranks:RanksAnalysis",
    "ranges": "program.ranges:RangesAnalysis",
    "os_calls": "host.os_calls:OsCallsAnalysis",
}
"""Module and class of each analysis, by the slug of its section."""

SLUGS: tuple[str, ...] = tuple(_CLASSES)
"""Slugs of all sections, in the order of the report."""


def analyses(sections: Collection[str] | None = None) -> tuple[Analysis[Any], ...]:
    """The analyses of ``sections`` with their default thresholds, in the order of the report; all of them for ``None``.

    Raises:
        UsageError: a section does not exist.
    """
    check_sections(sections or ())
    return tuple(_analysis(slug) for slug in SLUGS if sections is None or slug in sections)


def check_sections(sections: Collection[str]) -> None:
    """Refuse sections that do not exist, without loading those that do.

    Raises:
        UsageError: a section does not exist.
    """
    for slug in sections:
        if slug not in SLUGS:
            raise UsageError.unknown("section", slug, SLUGS)


@cache
def _analysis(slug: str) -> Analysis[Any]:
    module, _, name = _CLASSES[slug].partition(":")
    analysis: Analysis[Any] = getattr(import_module(f"traceviz.analyses.{module}"), name)()
    return analysis
