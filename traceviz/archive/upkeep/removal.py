"""Removal of traces from an archive."""

from __future__ import annotations

import time
from collections.abc import Collection

import polars as pl

from traceviz.archive.catalogue import packs
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.rows import with_times
from traceviz.archive.storage.layout import trace_parts
from traceviz.archive.storage.store import LAST, Store
from traceviz.archive.upkeep.verify import tombstones


def remove(store: Store, trace_ids: Collection[str]) -> int:
    """Remove traces, and return their number.

    First the catalogue marks them as removed, then their folders are removed. An interruption in between leaves folders
    that are ignored, and that ``verify`` reports. Packs with copies of their tables are removed, too. Finally the
    segments are merged, as older ones still hold the names of the traces.

    Raises:
        OutputError: the archive cannot be written.
    """
    rows = catalogue.read(store).filter(pl.col("trace_id").is_in(list(trace_ids)) & (pl.col("state") != "removed"))
    if rows.is_empty():
        return 0
    write_off(store, rows)
    ready = catalogue.ready(rows).select("format", "trace_id").unique(maintain_order=True)
    for format_name, trace_id in ready.iter_rows():
        store.remove(*trace_parts(format_name, trace_id))
    packs.drop(store, set(ready["trace_id"]))  # after the folders, as an add that packs checks whether they still exist
    gone = [trace_id for format_name, trace_id in ready.iter_rows() if is_gone(store, format_name, trace_id)]
    # An add may have listed a folder while it was being removed. If it lists the trace later, it checks again itself.
    again = catalogue.ready(catalogue.read(store)).filter(pl.col("trace_id").is_in(gone))
    if again.height:
        write_off(store, again)
    catalogue.merge(store, most=1)
    return rows["trace_id"].n_unique()


def write_off(store: Store, rows: pl.DataFrame) -> None:
    """Mark traces as removed in the catalogue, with a time later than that of their rows, even if clocks differ."""
    newest = rows["changed_ns"].max()
    assert isinstance(newest, int)
    catalogue.append(store, with_times(tombstones(rows, None), max(time.time_ns(), newest + 1)))


def is_gone(store: Store, format_name: str, trace_id: str) -> bool:
    """Return whether the folder of a trace is gone."""
    return not store.exists(*trace_parts(format_name, trace_id), LAST)
