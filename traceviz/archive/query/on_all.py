"""The report on all traces with what their tables tell beyond the catalogue."""

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
"""Section before which that of the CUDA API stands."""
_FRAMEWORK, _TABLE = "framework", "cuda_api"


def report_on_all(store: Store, catalogue: pl.DataFrame, top: int = 10, per: str = "") -> Report:
    """The report on a catalogue, and shares of CUDA functions by framework.

    Args:
        store: Where the archive is.
        catalogue: Rows of its catalogue, possibly filtered.
        top: Traces listed as the worst by each figure.
        per: What tells groups of traces apart whose shares are compared: a tag, or a column such as ``framework``;
            empty for the framework, where the traces are not too many.

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
    """Size of the tables that would be read."""
    sizes = store.sizes(layout.TRACES)
    tables = (layout.table_parts(*trace, _TABLE) for trace in layout.traces_with_table(store, rows, _TABLE))
    return sum(sizes.get("/".join(parts[1:]), 0) for parts in tables)
