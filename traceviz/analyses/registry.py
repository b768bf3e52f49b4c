"""Every analysis, in the order of the report: which tables it reads, and when a report says that it has none.

Only declarations: an analysis is loaded when there is something for it to read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from traceviz.analyses.derived.recorded.frameworks import frameworks_in
from traceviz.core.errors import UsageError

if TYPE_CHECKING:
    from traceviz.analyses.base import Analysis

DEVICE_WORK = ("kernels", "memcpy", "memset", "graphs")
"""As :data:`traceviz.trace.schema.DEVICE_WORK`, without loading what the schema is made of."""
STEP_TABLES = ("steps", "nvtx", "host_ops", "device_ops", "cuda_api", *DEVICE_WORK, "phases", "windows", "overhead")
"""Tables in which steps, ranks and the time that is judged are found: what every analysis of steps may read."""
CLASS_TABLES = (*STEP_TABLES, "os_calls", "stacks", "stack_frames")
"""Tables from which the classes of a step are made."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What there is to know of an analysis before it is loaded.

    Args:
        slug: Slug of its section.
        home: Its module below ``traceviz.analyses``, and its class.
        needs: Tables without which it is skipped.
        uses: Tables that it reads where the trace has them.
        columns: Of these tables it reads only these nullable columns, besides all that may not be null; of others, all.
        expected: Whether a report on any trace should say why it has no such section; else it is said to who asks.
        formats: Formats of the only traces that are expected to have it; empty for any.
        frameworks: Frameworks that it is about, in lower case; empty for any. Traces of others lack nothing without it.
    """

    slug: str
    home: str
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    expected: bool = True
    formats: frozenset[str] = frozenset()
    frameworks: frozenset[str] = frozenset()

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables that it can make use of."""
        return (*self.needs, *self.uses)

    def missing(self, tables: Collection[str]) -> tuple[str, ...]:
        """Tables that it needs and a trace with ``tables`` does not have."""
        return tuple(name for name in self.needs if name not in tables)

    def is_expected(self, run: Mapping[str, Any]) -> bool:
        """Whether a report on a trace with these facts about its run should say why it has no such section."""
        if self.formats:
            return run.get("format") in self.formats
        stated = frameworks_in(run.get("framework"))
        is_of_others = bool(stated) and stated.isdisjoint(self.frameworks)
        return self.expected and not (self.frameworks and is_of_others)

    def load(self) -> Analysis[Any]:
        """The analysis with its default thresholds."""
        return _loaded(self.home)


@cache
def _loaded(home: str) -> Analysis[Any]:
    module, _, name = home.partition(":")
    analysis: Analysis[Any] = getattr(import_module(f"traceviz.analyses.{module}"), name)()
    return analysis


_CUDA_API_COLUMNS = {
    **dict.fromkeys(DEVICE_WORK, frozenset({"dur_ns", "correlation_id", "stream"})),
    "cuda_api": frozenset({"dur_ns", "correlation_id"}),
}

UNREAD: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("kernels", "memcpy", "memset", "graphs", "sync"), frozenset({"context_id"})),
    "cuda_api": frozenset({"status"}),
}
"""Nullable columns of large tables that no analysis reads."""

PROPERTIES = frozenset(
    {
        *("Input Dims", "Sequence number", "Fwd thread id", "Module Hierarchy"),
        *("is_eager", "tf_function_call", "_ipl_stage_name", "id", "parent_id", "element_id"),
        *("parallelism", "autotune", "buffer_limit", "buffered_elements", "batch_size", "name"),
        *("cpu_budget", "ram_budget_megabytes", "ram_usage_megabytes"),
    }
)
"""Keys of table ``op_args`` that analyses read."""

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "whole_run",
        "capture.whole_run:WholeRunAnalysis",
        uses=(*STEP_TABLES, "phases", "stacks", "stack_frames", "settings"),
        expected=False,
    ),
    Entry(
        "measures",
        "capture.measures:MeasuresAnalysis",
        uses=(*CLASS_TABLES, "settings", "samples", "memory_events", "op_args"),
        expected=False,
    ),
    Entry("run", "capture.run:RunAnalysis", needs=("settings",), expected=False),
    Entry("quality", "program.quality:QualityAnalysis", needs=("metrics",), expected=False),
    Entry("capture", "capture.capture:Capture", uses=(*CLASS_TABLES, "settings", "samples")),
    Entry("breakdown", "steps.breakdown:BreakdownAnalysis", uses=CLASS_TABLES),
    Entry("serving", "serving.serving:ServingAnalysis", uses=(*STEP_TABLES, "op_args"), expected=False),
    Entry("input_pipeline", "input.input_pipeline:InputPipelineAnalysis", uses=(*CLASS_TABLES, "op_args")),
    Entry("steps", "steps.steps:StepAnalysis", uses=STEP_TABLES),
    Entry("totals", "capture.totals:TotalsAnalysis", needs=("totals",), expected=False),
    Entry(
        "cuda_api", "launch.cuda_api:CudaApiAnalysis", needs=("cuda_api",), uses=STEP_TABLES, columns=_CUDA_API_COLUMNS
    ),
    Entry(
        "framework_ops",
        "program.framework_ops:FrameworkOpsAnalysis",
        needs=("host_ops",),
        uses=(*STEP_TABLES, "op_args"),
        frameworks=frozenset({"jax", "tensorflow"}),
    ),
    Entry(
        "operators",
        "program.operators:OperatorsAnalysis",
        needs=("host_ops",),
        uses=(*STEP_TABLES, "op_args", "graph_nodes"),
        frameworks=frozenset({"pytorch"}),
    ),
    Entry(
        "modules",
        "program.modules:ModulesAnalysis",
        needs=("host_ops",),
        uses=("op_args", "cuda_api", *DEVICE_WORK, "graph_nodes"),
        frameworks=frozenset({"pytorch"}),
    ),
    Entry("lanes", "program.lanes:LanesAnalysis", needs=("host_ops",), uses=STEP_TABLES, expected=False),
    Entry("cpu_steps", "program.cpu_steps:CpuStepsAnalysis", uses=CLASS_TABLES, expected=False),
    Entry("kernels", "device.kernels:KernelsAnalysis", needs=("kernels",), uses=STEP_TABLES),
    Entry("precision", "device.precision:PrecisionAnalysis", needs=("kernels",), uses=STEP_TABLES),
    Entry("copies", "device.copies:CopiesAnalysis", needs=("memcpy",), uses=STEP_TABLES),
    Entry("device_use", "device.use:DeviceUseAnalysis", needs=("kernels",), uses=CLASS_TABLES),
    Entry("gpu_efficiency", "device.gpu_efficiency:GpuEfficiencyAnalysis", needs=("kernels",), uses=STEP_TABLES),
    Entry(
        "devices",
        "device.devices:DevicesAnalysis",
        needs=("kernels",),
        uses=(*STEP_TABLES, "memory_events", "settings"),
    ),
    Entry(
        "device_programs",
        "device.programs:DeviceProgramsAnalysis",
        needs=("device_ops",),
        uses=(*DEVICE_WORK, "steps"),
        frameworks=frozenset({"jax", "tensorflow"}),
    ),
    Entry("idle_gaps", "device.idle_gaps:IdleGapsAnalysis", needs=("kernels",), uses=CLASS_TABLES),
    Entry("host_waits", "host.host_waits:HostWaitsAnalysis", uses=CLASS_TABLES),
    Entry(
        "host_limits",
        "host.host_limits:HostLimitsAnalysis",
        uses=(*CLASS_TABLES, "op_args"),
        expected=False,
    ),
    Entry(
        "host_time",
        "host.host_time:HostTimeAnalysis",
        uses=CLASS_TABLES,
        formats=frozenset({"run"}),
    ),
    Entry("launch", "launch.launch:LaunchAnalysis", needs=("cuda_api", "kernels"), uses=STEP_TABLES),
    Entry(
        "launch_contention",
        "launch.contention:LaunchContentionAnalysis",
        needs=("host_ops", "cuda_api", "kernels"),
        uses=(*CLASS_TABLES, "op_args"),
        frameworks=frozenset({"tensorflow"}),
    ),
    Entry(
        "compilation",
        "program.compilation:CompilationAnalysis",
        needs=("host_ops",),
        uses=(*STEP_TABLES, "op_args"),
    ),
    Entry("memory", "device.memory:MemoryAnalysis", needs=("memory_events",), uses=STEP_TABLES),
    Entry(
        "host",
        "host.resources:HostResourcesAnalysis",
        needs=("samples",),
        uses=(*CLASS_TABLES, "settings"),
        formats=frozenset({"resources", "run"}),
    ),
    Entry(
        "communication",
        "ranks.communication:CommunicationAnalysis",
        needs=("kernels",),
        uses=(*STEP_TABLES, "collectives"),
    ),
    Entry(
        "host_collectives",
        "ranks.host_collectives:HostCollectivesAnalysis",
        uses=(*CLASS_TABLES, "collectives", "settings"),
        expected=False,
    ),
    Entry(
        "ranks",
        "ranks.ranks:RanksAnalysis",
        uses=(*CLASS_TABLES, "collectives", "settings"),
        expected=False,
    ),
    Entry(
        "ranges",
        "program.ranges:RangesAnalysis",
        needs=("nvtx",),
        uses=("cuda_api", *DEVICE_WORK, "graph_nodes"),
    ),
    Entry("os_calls", "host.os_calls:OsCallsAnalysis", needs=("os_calls",)),
)
"""All analyses, in the order of the report."""

SLUGS: tuple[str, ...] = tuple(entry.slug for entry in ENTRIES)
"""Slugs of all sections, in the order of the report."""


def entries(sections: Collection[str] | None = None) -> tuple[Entry, ...]:
    """The analyses of ``sections``, in the order of the report; all of them for ``None``.

    Raises:
        UsageError: a section does not exist.
    """
    for slug in sections or ():
        if slug not in SLUGS:
            raise UsageError.unknown("section", slug, SLUGS)
    return tuple(entry for entry in ENTRIES if sections is None or entry.slug in sections)


def analyses() -> tuple[Analysis[Any], ...]:
    """All analyses, loaded."""
    return tuple(entry.load() for entry in ENTRIES)
