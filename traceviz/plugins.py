"""Stable names for plugins, in one place: see ``docs/plugins.md``.

>>> from traceviz.plugins import Match, Reader, ReadRequest, rows_to_table

Each is loaded on first use: a reader must not load its decoder only to recognise a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceviz.analyses.base import Analysis, finding
    from traceviz.analyses.derived.view import TraceView
    from traceviz.analyses.registry import ANALYSES
    from traceviz.analyses.registry import Entry as AnalysisEntry
    from traceviz.collectors.base import Availability, Collector, Harvest, Plan
    from traceviz.collectors.registry import COLLECTORS
    from traceviz.core.errors import DamagedTraceError, TracevizError
    from traceviz.parsers.base import Match, Reader, ReadRequest
    from traceviz.parsers.registry import READERS
    from traceviz.render.figures import values as figure_values
    from traceviz.render.figures.registry import FIGURES, FigureEntry
    from traceviz.render.options import RenderOptions
    from traceviz.render.registry import RENDERERS
    from traceviz.report import Column, Fact, Facts, Finding, Grid, Report, Section, Skipped
    from traceviz.report.findings.record import FindingRecord
    from traceviz.report.findings.registry import FINDINGS
    from traceviz.trace.rows_to_table import rows_to_table

_HOMES = {
    "traceviz.analyses.base": ("Analysis", "finding"),
    "traceviz.analyses.derived.view": ("TraceView",),
    "traceviz.analyses.registry": ("ANALYSES", "AnalysisEntry"),
    "traceviz.collectors.base": ("Availability", "Collector", "Harvest", "Plan"),
    "traceviz.collectors.registry": ("COLLECTORS",),
    "traceviz.core.errors": ("DamagedTraceError", "TracevizError"),
    "traceviz.trace.rows_to_table": ("rows_to_table",),
    "traceviz.parsers.base": ("Match", "ReadRequest", "Reader"),
    "traceviz.parsers.registry": ("READERS",),
    "traceviz.render.figures": ("figure_values",),
    "traceviz.render.figures.registry": ("FIGURES", "FigureEntry"),
    "traceviz.render.options": ("RenderOptions",),
    "traceviz.render.registry": ("RENDERERS",),
    "traceviz.report": ("Column", "Fact", "Facts", "Finding", "Grid", "Report", "Section", "Skipped"),
    "traceviz.report.findings.record": ("FindingRecord",),
    "traceviz.report.findings.registry": ("FINDINGS",),
}
_DEFINED_AS = {"AnalysisEntry": "Entry", "figure_values": "values"}

__all__ = [
    "ANALYSES",
    "COLLECTORS",
    "FIGURES",
    "FINDINGS",
    "READERS",
    "RENDERERS",
    "Analysis",
    "AnalysisEntry",
    "Availability",
    "Collector",
    "Column",
    "DamagedTraceError",
    "Fact",
    "Facts",
    "FigureEntry",
    "Finding",
    "FindingRecord",
    "Grid",
    "Harvest",
    "Match",
    "Plan",
    "ReadRequest",
    "Reader",
    "RenderOptions",
    "Report",
    "Section",
    "Skipped",
    "TraceView",
    "TracevizError",
    "figure_values",
    "finding",
    "rows_to_table",
]


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'traceviz.plugins' has no attribute {name!r}")
    defined = _DEFINED_AS.get(name, name)
    module = import_module(home)
    value = getattr(module, defined) if hasattr(module, defined) else import_module(f"{home}.{defined}")
    globals()[name] = value
    return value
