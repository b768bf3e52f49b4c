"""Report on all traces, extended by figures that only their tables hold."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from traceviz.archive.catalogue.segments import ready
from traceviz.archive.population.cuda_shares import MOST_BYTES, MOST_TRACES, cuda_shares, recorded_calls, unread_section
from traceviz.archive.population.population import population
from traceviz.archive.query.scanning import scan
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.report import Report, Section

_BEFORE = "outliers"
"""Section that follows the CUDA API section."""
_FRAMEWORK, _TABLE = "framework", "cuda_api"


def report_on_all(store: Store, catalogue: pl.DataFrame, top: int = 10, per: str = "") -> Report:
    """Return the report on a catalogue, with shares of CUDA functions by framework.

    Args:
        store: The archive.
        catalogue: Rows of its catalogue, possibly filtered.
        top: Number of worst traces listed for each figure.
        per: Tag or column (such as ``framework``) that defines the compared groups. If empty, the framework is used,
            unless there are too many traces.

    Raises:
        UsageError: no row has such a tag.
    """
    report, rows = population(catalogue, top), ready(catalogue)
    section = _cuda_api(store, rows, per)
    if section is None:
        return report
    place = next((at for at, one in enumerate(report.sections) if one.slug == _BEFORE), len(report.sections))
    return replace(report, sections=(*report.sections[:place], section, *report.sections[place:]))


def _cuda_api(store: Store, rows: pl.DataFrame, per: str) -> Section | None:
    count = recorded_calls(rows)
    if not count:
        return None
    if not per and (count > MOST_TRACES or _bytes(store, rows) > MOST_BYTES):
        return unread_section(count)
    duration = pl.col("dur_ns").sum().cast(pl.Int64).alias("total_ns")
    calls = scan(store, rows, _TABLE).group_by("trace_id", pl.col("name").cast(pl.String))
    sums = calls.agg(pl.len().cast(pl.Int64).alias("calls"), duration).collect(engine="streaming")
    return cuda_shares(rows, sums, per or _FRAMEWORK) if sums.height else None


def _bytes(store: Store, rows: pl.DataFrame) -> int:
    """Return the size in bytes of the tables to read."""
    sizes = store.sizes(layout.TRACES)
    tables = (layout.table_parts(*trace, _TABLE) for trace in layout.traces_with_table(store, rows, _TABLE))
    return sum(sizes.get("/".join(parts[1:]), 0) for parts in tables)
