"""Reports from profiler traces that show where the time went: verdict, CUDA time share, input-pipeline bottlenecks.

>>> import traceviz
>>> report = traceviz.analyze("trace.nsys-rep")  # Report: .verdict, .findings, .sections, .fact(), .to_pandas(slug)
>>> print(traceviz.to_text(report))  # in a notebook, `report` alone shows it
>>> tables = traceviz.open("trace.nsys-rep")  # TraceTables: .kernels, .cuda_api, .nvtx ... as polars LazyFrames
>>> report = traceviz.analyze(tables)  # tables can be analysed again without reading
>>> comparison = traceviz.compare_runs("slow.pt.trace.json.gz", "repaired.pt.trace.json.gz")  # for to_text, too
>>> traceviz.plot(report, "steps").save("steps.svg")  # one figure; a notebook shows it
>>> archive = traceviz.Archive("traces")  # many traces: .add(), .catalogue, .scan("kernels"), .query(sql), .report()
>>> outcome = traceviz.collect(traceviz.CollectOptions(), ["python", "train.py"])  # a run folder: outcome.folder

In a notebook, ``%load_ext traceviz`` adds ``%%traceviz``, which records its cell and shows the report.

The names below are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from traceviz.core.notebook_repr import draw_with
from traceviz.version import __version__

if TYPE_CHECKING:
    from traceviz.annotate import metric, record, step, step_range
    from traceviz.api import (
        AnalysisOptions,
        ReadOptions,
        RenderOptions,
        Selection,
        analyze,
        convert,
        report_on,
        to_text,
    )
    from traceviz.api import compare as compare_runs
    from traceviz.api import open_trace as open  # noqa: A004 (traceviz.open, as in gzip.open)
    from traceviz.archive.archive import Archive
    from traceviz.collectors.collect import CollectOptions, collect
    from traceviz.core.errors import TracevizError
    from traceviz.notebook.plots import Plot, plot
    from traceviz.report import Report
    from traceviz.trace.tables import TraceTables

_HOMES = {
    "AnalysisOptions": "traceviz.api",
    "Archive": "traceviz.archive.archive",
    "CollectOptions": "traceviz.collectors.collect",
    "Plot": "traceviz.notebook.plots",
    "ReadOptions": "traceviz.api",
    "RenderOptions": "traceviz.api",
    "Report": "traceviz.report",
    "Selection": "traceviz.api",
    "TraceTables": "traceviz.trace.tables",
    "TracevizError": "traceviz.core.errors",
    "analyze": "traceviz.api",
    "collect": "traceviz.collectors.collect",
    "compare_runs": "traceviz.api",
    "convert": "traceviz.api",
    "metric": "traceviz.annotate",
    "open": "traceviz.api",
    "plot": "traceviz.notebook.plots",
    "record": "traceviz.annotate",
    "report_on": "traceviz.api",
    "step": "traceviz.annotate",
    "step_range": "traceviz.annotate",
    "to_text": "traceviz.api",
}

_DEFINED_AS = {"open": "open_trace", "compare_runs": "compare"}
"""Names that differ in their home module: ``traceviz.compare`` is a package."""

__all__ = [
    "AnalysisOptions",
    "Archive",
    "CollectOptions",
    "Plot",
    "ReadOptions",
    "RenderOptions",
    "Report",
    "Selection",
    "TraceTables",
    "TracevizError",
    "__version__",
    "analyze",
    "collect",
    "compare_runs",
    "convert",
    "metric",
    "open",
    "plot",
    "record",
    "report_on",
    "step",
    "step_range",
    "to_text",
]


# Reports and tables do not import the module that draws them in notebooks, so it is passed to them here.
draw_with(lambda: import_module("traceviz.notebook.display"))


def load_ipython_extension(shell: Any) -> None:
    """Add the magic ``%%traceviz``, for ``%load_ext traceviz``."""
    import_module("traceviz.notebook.magics").load(shell)


def __dir__() -> list[str]:
    """Return the public names, also those that are not loaded yet, for completion."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'traceviz' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), _DEFINED_AS.get(name, name))
    globals()[name] = value
    return value
