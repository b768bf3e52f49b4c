"""Registry of all analyses, in the order of the report: tables, dependencies, and expected traces.

Only declarations. An analysis is loaded when there is something for it to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from traceviz.analyses.derived.recorded.frameworks import frameworks_in
from traceviz.core.registry import Registry, load_home

if TYPE_CHECKING:
    from traceviz.analyses.base import Analysis
    from traceviz.analyses.derived.view import TraceView

DEVICE_WORK = ("kernels", "memcpy", "memset", "graphs")
"""Same as :data:`traceviz.trace.schema.DEVICE_WORK`, without importing the modules of the schema."""
STEP_TABLES = ("steps", "nvtx", "host_ops", "device_ops", "cuda_api", *DEVICE_WORK, "phases", "windows", "overhead")
"""Tables for steps, ranks and judged time. Every analysis of steps may read them."""
CLASS_TABLES = (*STEP_TABLES, "os_calls", "scheduling", "stacks", "stack_frames")
"""Tables from which the classes of a step are computed."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A derived result that several analyses need, and that one thread can compute before them.

    Args:
        home: Its module below ``traceviz.analyses``, and the function that computes it from a trace.
        cost: About its share of the time of all analyses of a large trace, in percent.
        waits_for: Keys of :data:`SHARED` that it needs.
        is_first_on_disk: True if the result is small and takes much memory to compute. It is then computed first if
            tables lie in files.
    """

    home: str
    cost: int
    waits_for: tuple[str, ...] = ()
    is_first_on_disk: bool = False

    def compute(self, trace: TraceView) -> None:
        """Compute the result and store it in ``trace``."""
        cast("Callable[[TraceView], object]", load_home(f"traceviz.analyses.{self.home}"))(trace)


SHARED: Mapping[str, Shared] = {
    "training_steps": Shared("derived.steps.search:training_steps", 8),
    "kernel_shapes": Shared("derived.device.occupancy:kernel_shapes", 2),
    "first_calls": Shared("derived.launch.first:first_calls", 1, is_first_on_disk=True),
    "copy_calls": Shared("derived.host.copy_calls:copy_calls", 2),
    "unasked_waits": Shared("derived.host.copy_calls:unasked_waits", 1, ("copy_calls",), is_first_on_disk=True),
    "classes": Shared("derived.host.classes:sort_out_classes", 12, ("training_steps", "first_calls", "copy_calls")),
    "causes": Shared("derived.causes.attribution:host_causes", 16, ("classes",)),
}
"""Derived results that several analyses need."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Declaration of an analysis, known before the analysis is loaded.

    Args:
        slug: Slug of its section.
        home: Its module and its class: ``traceviz.analyses.steps.steps:StepAnalysis``.
        needs: Tables without which it is skipped.
        uses: Other tables that it reads if the trace has them.
        columns: Nullable columns that it reads of these tables, besides all that may not be null. Of other tables it
            reads all columns.
        expected: True if a report on any trace should explain why this section is missing. Otherwise only a report for
            which this section was requested does.
        on_request: True if only a report for which this section was requested has it.
        formats: Only traces of these formats are expected to have it; empty for any.
        frameworks: Frameworks that it is about, in lower case; empty for any. Traces of others lack nothing without it.
        waits_for: Keys of :data:`SHARED` that it needs.
        cost: About its share of the time of all analyses of a large trace, in percent, without what it waits for.
        properties: Keys of table ``op_args`` that it reads, besides :data:`PROPERTIES`.
    """

    slug: str
    home: str
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    expected: bool = True
    on_request: bool = False
    formats: frozenset[str] = frozenset()
    frameworks: frozenset[str] = frozenset()
    waits_for: tuple[str, ...] = ("training_steps",)
    cost: int = 1
    properties: frozenset[str] = frozenset()

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables that it can use."""
        return (*self.needs, *self.uses)

    def missing(self, tables: Collection[str]) -> tuple[str, ...]:
        """Return the tables that it needs and that are not in ``tables``."""
        return tuple(name for name in self.needs if name not in tables)

    def is_expected(self, run: Mapping[str, Any]) -> bool:
        """Return whether a report on a run with these facts should explain why this section is missing."""
        if self.formats:
            return run.get("format") in self.formats
        stated = frameworks_in(run.get("framework"))
        is_of_others = bool(stated) and stated.isdisjoint(self.frameworks)
        return self.expected and not (self.frameworks and is_of_others)

    def load(self) -> Analysis[Any]:
        """Load the analysis with its default thresholds."""
        return _loaded(self.home)


@cache
def _loaded(home: str) -> Analysis[Any]:
    analysis: Analysis[Any] = cast("type[Analysis[Any]]", load_home(home))()
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
"""Keys of table ``op_args`` that analyses of traceviz read."""

_CLASSES, _CAUSES, _SHAPES = ("classes",), ("causes",), ("training_steps", "kernel_shapes")
_TORCH, _XLA = frozenset({"pytorch"}), frozenset({"jax", "tensorflow"})


def _own(slug: str, home: str, needs: tuple[str, ...] = (), uses: tuple[str, ...] = (), **options: Any) -> Entry:
    """Return the declaration of an analysis of traceviz, whose ``home`` is below ``traceviz.analyses``."""
    return Entry(slug, f"traceviz.analyses.{home}", needs, uses, **options)


ENTRIES: tuple[Entry, ...] = (
    _own(
        "whole_run",
        "capture.whole_run:WholeRunAnalysis",
        uses=(*STEP_TABLES, "phases", "stacks", "stack_frames", "settings"),
        expected=False,
    ),
    _own(
        "measures",
        "capture.measures:MeasuresAnalysis",
        uses=(*CLASS_TABLES, "settings", "samples", "memory_events", "op_args"),
        expected=False,
        cost=4,
    ),
    _own("run", "capture.run:RunAnalysis", ("settings",), waits_for=(), expected=False),
    _own("quality", "program.quality:QualityAnalysis", ("metrics",), waits_for=(), expected=False),
    _own("capture", "capture.capture:Capture", uses=(*CLASS_TABLES, "settings", "samples"), waits_for=_CLASSES),
    _own("breakdown", "steps.breakdown:BreakdownAnalysis", uses=CLASS_TABLES, waits_for=_CLASSES, cost=2),
    _own("serving", "serving.serving:ServingAnalysis", uses=(*STEP_TABLES, "op_args"), expected=False),
    _own(
        "input_pipeline",
        "input.input_pipeline:InputPipelineAnalysis",
        uses=(*CLASS_TABLES, "op_args"),
        waits_for=_CAUSES,
        cost=12,
    ),
    _own("steps", "steps.steps:StepAnalysis", uses=STEP_TABLES),
    _own(
        "what_if",
        "steps.what_if:WhatIfAnalysis",
        uses=(*CLASS_TABLES, "op_args"),
        waits_for=_CAUSES,
        expected=False,
        on_request=True,
        cost=3,
    ),
    _own("totals", "capture.totals:TotalsAnalysis", ("totals",), waits_for=(), expected=False),
    _own(
        "cuda_api",
        "launch.cuda_api:CudaApiAnalysis",
        ("cuda_api",),
        STEP_TABLES,
        waits_for=("classes", "unasked_waits"),
        columns=_CUDA_API_COLUMNS,
        cost=8,
    ),
    _own(
        "framework_ops",
        "program.framework_ops:FrameworkOpsAnalysis",
        ("host_ops",),
        (*STEP_TABLES, "op_args"),
        frameworks=_XLA,
        cost=5,
    ),
    _own(
        "operators",
        "program.operators:OperatorsAnalysis",
        ("host_ops",),
        (*STEP_TABLES, "op_args", "graph_nodes"),
        frameworks=_TORCH,
        cost=8,
    ),
    _own(
        "modules",
        "program.modules:ModulesAnalysis",
        ("host_ops",),
        ("op_args", "cuda_api", *DEVICE_WORK, "graph_nodes"),
        waits_for=(),
        frameworks=_TORCH,
        cost=4,
    ),
    _own("lanes", "program.lanes:LanesAnalysis", ("host_ops",), STEP_TABLES, expected=False),
    _own(
        "cpu_steps", "program.cpu_steps:CpuStepsAnalysis", uses=CLASS_TABLES, waits_for=_CAUSES, expected=False, cost=3
    ),
    _own(
        "kernels",
        "device.kernels:KernelsAnalysis",
        ("kernels",),
        CLASS_TABLES,
        waits_for=("kernel_shapes", "causes"),
        cost=4,
    ),
    _own("precision", "device.precision:PrecisionAnalysis", ("kernels",), STEP_TABLES, waits_for=_SHAPES, cost=2),
    _own(
        "copies",
        "device.copies:CopiesAnalysis",
        ("memcpy",),
        CLASS_TABLES,
        waits_for=("unasked_waits", "causes"),
        cost=2,
    ),
    _own("device_use", "device.use:DeviceUseAnalysis", ("kernels",), CLASS_TABLES, waits_for=_CAUSES, cost=2),
    _own(
        "gpu_efficiency",
        "device.gpu_efficiency:GpuEfficiencyAnalysis",
        ("kernels",),
        STEP_TABLES,
        waits_for=_SHAPES,
        cost=8,
    ),
    _own(
        "devices",
        "device.devices:DevicesAnalysis",
        ("kernels",),
        (*STEP_TABLES, "memory_events", "settings"),
        waits_for=_SHAPES,
        cost=3,
    ),
    _own(
        "device_programs",
        "device.programs:DeviceProgramsAnalysis",
        ("device_ops",),
        (*DEVICE_WORK, "steps"),
        frameworks=_XLA,
    ),
    _own("idle_gaps", "device.idle_gaps:IdleGapsAnalysis", ("kernels",), CLASS_TABLES, waits_for=_CLASSES, cost=4),
    _own("host_waits", "host.host_waits:HostWaitsAnalysis", uses=CLASS_TABLES, waits_for=_CAUSES, cost=6),
    _own(
        "host_limits",
        "host.host_limits:HostLimitsAnalysis",
        uses=(*CLASS_TABLES, "op_args"),
        waits_for=_CLASSES,
        expected=False,
        cost=8,
    ),
    _own(
        "host_time",
        "host.host_time:HostTimeAnalysis",
        uses=CLASS_TABLES,
        waits_for=_CLASSES,
        formats=frozenset({"run"}),
        cost=4,
    ),
    _own("launch", "launch.launch:LaunchAnalysis", ("cuda_api", "kernels"), STEP_TABLES, cost=12),
    _own(
        "launch_contention",
        "launch.contention:LaunchContentionAnalysis",
        ("host_ops", "cuda_api", "kernels"),
        (*CLASS_TABLES, "op_args"),
        waits_for=_CLASSES,
        frameworks=frozenset({"tensorflow"}),
    ),
    _own("compilation", "program.compilation:CompilationAnalysis", ("host_ops",), (*STEP_TABLES, "op_args")),
    _own("memory", "device.memory:MemoryAnalysis", ("memory_events",), STEP_TABLES, cost=3),
    _own(
        "host",
        "host.resources:HostResourcesAnalysis",
        ("samples",),
        (*CLASS_TABLES, "settings"),
        formats=frozenset({"resources", "run"}),
    ),
    _own(
        "communication",
        "ranks.communication:CommunicationAnalysis",
        ("kernels",),
        (*CLASS_TABLES, "collectives", "settings"),
        waits_for=_CLASSES,
        cost=2,
    ),
    _own(
        "host_collectives",
        "ranks.host_collectives:HostCollectivesAnalysis",
        uses=(*CLASS_TABLES, "collectives", "settings"),
        waits_for=_CLASSES,
        expected=False,
    ),
    _own(
        "ranks",
        "ranks.ranks:RanksAnalysis",
        uses=(*CLASS_TABLES, "collectives", "settings"),
        waits_for=_CAUSES,
        expected=False,
        cost=2,
    ),
    _own(
        "ranges",
        "program.ranges:RangesAnalysis",
        ("nvtx",),
        ("cuda_api", *DEVICE_WORK, "graph_nodes"),
        waits_for=(),
        cost=2,
    ),
    _own("os_calls", "host.os_calls:OsCallsAnalysis", ("os_calls",), waits_for=()),
)
"""The analyses of traceviz, in the order of the report."""


def _accept(value: object) -> Entry:
    """Return the declaration of an analysis of a plugin."""
    from traceviz.trace import schema  # noqa: PLC0415 (to list the sections needs no schema)

    if not isinstance(value, Entry):
        raise TypeError(f"{value!r} is no {__name__}.Entry")
    if unknown := {*value.tables, *value.columns} - set(schema.TABLES):
        raise ValueError(f"there are no tables {', '.join(sorted(unknown))}")
    return value


ANALYSES: Registry[Entry] = Registry(
    "section", "traceviz.analyses", {entry.slug: entry for entry in ENTRIES}, _accept, attrgetter("slug")
)
"""All analyses by the slug of their section, those of plugins last. Entry points name values of :class:`Entry`."""


def entries(sections: Collection[str] | None = None) -> tuple[Entry, ...]:
    """Return the analyses of ``sections``, in the order of the report; for ``None`` all but those on request.

    Raises:
        UsageError: a section does not exist.
        PluginError: a section belongs to a plugin that cannot be loaded.
    """
    if sections is None:
        return tuple(entry for entry in ANALYSES.all() if not entry.on_request)
    found = {slug: ANALYSES.find(slug) for slug in sections}
    return tuple(found[slug] for slug in ANALYSES.names() if slug in found)


def properties_for(sections: Collection[str] | None) -> frozenset[str]:
    """Return the keys of table ``op_args`` that the analyses of ``sections`` read."""
    return PROPERTIES.union(*(entry.properties for entry in entries(sections)))


def tables_for(sections: Collection[str] | None) -> frozenset[str]:
    """Return the tables that the analyses of ``sections`` can use."""
    return frozenset(table for entry in entries(sections) for table in entry.tables)


def columns_for(sections: Collection[str] | None) -> dict[str, frozenset[str]]:
    """Return the nullable columns that the analyses of ``sections`` need, by table."""
    users: dict[str, list[frozenset[str]]] = {}
    for entry in entries(sections):
        for table in entry.tables:
            columns = entry.columns[table] if table in entry.columns else _readable(table)
            users.setdefault(table, []).append(columns)
    return {table: frozenset[str]().union(*needed) for table, needed in users.items()}


@cache
def _readable(table: str) -> frozenset[str]:
    """Return the nullable columns of ``table`` that any analysis reads."""
    from traceviz.trace import schema  # noqa: PLC0415 (to list the sections needs no schema)

    nullable = frozenset(column.name for column in schema.table(table).columns if column.nullable)
    return nullable - UNREAD.get(table, frozenset())


def shared_by(chosen: Collection[Entry]) -> dict[str, Shared]:
    """Return the shared results that at least two of ``chosen`` need, and the results that those need in turn."""

    def all_of(keys: Collection[str]) -> set[str]:
        return set(keys).union(*(all_of(SHARED[key].waits_for) for key in keys))

    waited = Counter(key for entry in chosen for key in all_of(entry.waits_for))
    return {key: shared for key, shared in SHARED.items() if waited[key] > 1}


def analyses() -> tuple[Analysis[Any], ...]:
    """Load all analyses of traceviz."""
    return tuple(entry.load() for entry in ENTRIES)
