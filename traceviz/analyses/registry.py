"""Every analysis, in the order of the report."""

from __future__ import annotations

from typing import Any

from traceviz.analyses.base import Analysis
from traceviz.analyses.breakdown import BreakdownAnalysis
from traceviz.analyses.capture import Capture
from traceviz.analyses.communication import CommunicationAnalysis
from traceviz.analyses.compilation import CompilationAnalysis
from traceviz.analyses.copies import CopiesAnalysis
from traceviz.analyses.cuda_api import CudaApiAnalysis
from traceviz.analyses.device_programs import DeviceProgramsAnalysis
from traceviz.analyses.device_use import DeviceUseAnalysis
from traceviz.analyses.devices import DevicesAnalysis
from traceviz.analyses.framework_ops import FrameworkOpsAnalysis
from traceviz.analyses.gpu_efficiency import GpuEfficiencyAnalysis
from traceviz.analyses.host_resources import HostResourcesAnalysis
from traceviz.analyses.idle_gaps import IdleGapsAnalysis
from traceviz.analyses.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.kernels import KernelsAnalysis
from traceviz.analyses.launch import LaunchAnalysis
from traceviz.analyses.launch_contention import LaunchContentionAnalysis
from traceviz.analyses.memory import MemoryAnalysis
from traceviz.analyses.modules import ModulesAnalysis
from traceviz.analyses.operators import OperatorsAnalysis
from traceviz.analyses.os_calls import OsCallsAnalysis
from traceviz.analyses.precision import PrecisionAnalysis
from traceviz.analyses.ranges import RangesAnalysis
from traceviz.analyses.ranks import RanksAnalysis
from traceviz.analyses.run_section import RunAnalysis
from traceviz.analyses.steps import StepAnalysis
from traceviz.analyses.totals import TotalsAnalysis

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
