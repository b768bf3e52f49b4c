"""Every analysis, in the order of the report."""

from __future__ import annotations

from typing import Any

from traceviz.analyses.base import Analysis
from traceviz.analyses.capture.capture import Capture
from traceviz.analyses.capture.run import RunAnalysis
from traceviz.analyses.capture.totals import TotalsAnalysis
from traceviz.analyses.device.copies import CopiesAnalysis
from traceviz.analyses.device.devices import DevicesAnalysis
from traceviz.analyses.device.gpu_efficiency import GpuEfficiencyAnalysis
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.analyses.device.kernels import KernelsAnalysis
from traceviz.analyses.device.memory import MemoryAnalysis
from traceviz.analyses.device.precision import PrecisionAnalysis
from traceviz.analyses.device.programs import DeviceProgramsAnalysis
from traceviz.analyses.device.use import DeviceUseAnalysis
from traceviz.analyses.host.os_calls import OsCallsAnalysis
from traceviz.analyses.host.resources import HostResourcesAnalysis
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.launch.contention import LaunchContentionAnalysis
from traceviz.analyses.launch.cuda_api import CudaApiAnalysis
from traceviz.analyses.launch.launch import LaunchAnalysis
from traceviz.analyses.program.compilation import CompilationAnalysis
from traceviz.analyses.program.framework_ops import FrameworkOpsAnalysis
from traceviz.analyses.program.modules import ModulesAnalysis
from traceviz.analyses.program.operators import OperatorsAnalysis
from traceviz.analyses.program.ranges import RangesAnalysis
from traceviz.analyses.ranks.communication import CommunicationAnalysis
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.analyses.steps.breakdown import BreakdownAnalysis
from traceviz.analyses.steps.steps import StepAnalysis

ANALYSES: tuple[Analysis[Any], ...] = (
    RunAnalysis(),
    Capture(),
    BreakdownAnalysis(),
    InputPipelineAnalysis(),
    StepAnalysis(),
    TotalsAnalysis(),
    CudaApiAnalysis(),
    FrameworkOpsAnalysis(),
    OperatorsAnalysis(),
    ModulesAnalysis(),
    KernelsAnalysis(),
    PrecisionAnalysis(),
    CopiesAnalysis(),
    DeviceUseAnalysis(),
    GpuEfficiencyAnalysis(),
    DevicesAnalysis(),
    DeviceProgramsAnalysis(),
    IdleGapsAnalysis(),
    LaunchAnalysis(),
    LaunchContentionAnalysis(),
    CompilationAnalysis(),
    MemoryAnalysis(),
    HostResourcesAnalysis(),
    CommunicationAnalysis(),
    RanksAnalysis(),
    RangesAnalysis(),
    OsCallsAnalysis(),
)
"""Analyses with their default thresholds."""
