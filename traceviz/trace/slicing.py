"""Cut a trace to a part of it: a time window, one device, one rank."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from traceviz.core.errors import UsageError
from traceviz.trace import schema
from traceviz.trace.rows_to_table import rows_to_table
from traceviz.trace.selection import Selection
from traceviz.trace.tables import WINDOW_NOTE, TraceTables

_THROUGHOUT = ("stacks", "phases", "metrics")
"""Tables that cover the run from its start to its end, before and after the capture."""
_ON_DEVICES = (*schema.DEVICE_WORK, "device_ops", "memory_events")
"""Tables that show which process used which device."""


def select(tables: TraceTables, selection: Selection) -> TraceTables:
    """Return the selected part of a trace.

    Events that cross an edge of the window are cut there, so that times add up to the window. Of samples in a row, the
    part
    inside the window counts. The clock is shifted so that the window starts at 0.

    Raises:
        UsageError: the window is empty, or the trace has no such device or rank.
    """
    if selection.is_everything:
        return tables
    span = int(tables.run_facts().get("span_ns") or 0)
    start = selection.start_ns or 0
    end = span if selection.end_ns is None else min(selection.end_ns, span)
    lasts = f"The capture lasts {span / 1e9:g} s."
    if start >= span:
        raise UsageError(f"The window begins at {start / 1e9:g} s, after the capture ends.", lasts)
    if end <= start:
        raise UsageError(f"The window from {start / 1e9:g} s to {end / 1e9:g} s is empty.", lasts)
    window = (start, end)
    is_cut = selection.start_ns is not None or selection.end_ns is not None
    devices = None if selection.device is None else _device_ids(tables, selection.device)
    processes = None if selection.rank is None else _with_workers(tables, _process_ids(tables, selection.rank))
    kept = {
        name: _keep(tables, name, window if is_cut or name not in _THROUGHOUT else None, devices, processes)
        for name in tables
        if name not in schema.REQUIRED
    }
    run = tables.scan("run").with_columns(
        pl.lit(window[1] - window[0], pl.Int64).alias("span_ns"),
        (pl.col("t0_unix_ns") + window[0]).alias("t0_unix_ns"),
    )
    owners = {
        name: tables.scan(name).filter(pl.col("process_id").is_in(processes)).collect().to_arrow()
        for name in ("processes", "threads")
        if processes is not None
    }
    owners["devices"] = _devices_left(tables, devices, processes)
    return tables.replace({**kept, **owners, "run": run.collect().to_arrow(), "notes": _noted(tables, selection)})


def _device_ids(tables: TraceTables, ordinal: int) -> list[int]:
    devices = tables.arrow("devices").to_pylist()
    ids = [d["device_id"] for d in devices if d["ordinal"] == ordinal]
    if not ids:
        known = [str(d["ordinal"]) for d in devices if d["ordinal"] is not None]
        if not known:
            why = "The trace holds no work of a device, or does not number its devices."
            raise UsageError(f"There is no device {ordinal}.", why, "Leave out --device.")
        raise UsageError.unknown("device", str(ordinal), known)
    return ids


def _process_ids(tables: TraceTables, rank: int) -> list[int]:
    """Return the processes that state a rank; if none does, the process with that number."""
    rows = tables.scan("processes").select("process_id", "rank").collect()
    stated = rows.drop_nulls()
    of_rank = stated.filter(pl.col("rank") == rank) if stated.height else rows.filter(pl.col("process_id") == rank)
    ids = of_rank["process_id"].to_list()
    if not ids:
        known = stated["rank"].to_list() or _working(tables)
        raise UsageError.unknown("rank", str(rank), map(str, known))
    return ids


def _with_workers(tables: TraceTables, ids: list[int]) -> list[int]:
    """Return these processes and the workers that they started, such as loader workers, which work for them."""
    if "phases" not in tables or "settings" not in tables:
        return ids
    whole = tables.scan("phases").select("process_id", pl.col("kind", "name").cast(pl.String))
    workers = whole.filter((pl.col("kind") == "program") & (pl.col("name") == "worker")).collect()["process_id"]
    stated = tables.scan("settings").filter(pl.col("key") == "process.parent_pid").select("process_id", "value")
    parents = {process: value for process, value in stated.collect().iter_rows() if process in set(workers)}
    pids = dict(tables.scan("processes").select("process_id", pl.col("pid").cast(pl.String)).collect().iter_rows())
    kept = list(ids)
    for process in kept:  # the list grows: a worker may be started by another one
        if list(pids.values()).count(pids[process]) == 1:
            kept += [worker for worker, parent in parents.items() if parent == pids[process] and worker not in kept]
    return sorted(kept)


def _working(tables: TraceTables) -> list[int]:
    """Return the processes with device work; if there are none, those with threads, else all."""
    work = [tables.scan(name).select("process_id") for name in schema.DEVICE_WORK if name in tables]
    sources = (
        *([pl.concat(work)] if work else []),
        tables.scan("threads"),
        tables.scan("processes"),
    )
    owners = (rows.select(pl.col("process_id").unique().sort()).collect()["process_id"].to_list() for rows in sources)
    return next(filter(None, owners), [])


def _devices_left(tables: TraceTables, devices: list[int] | None, processes: list[int] | None) -> pa.Table:
    """Return the devices of the selection, without those that only excluded processes used."""
    frame = tables.scan("devices")
    if devices is not None:
        frame = frame.filter(pl.col("device_id").is_in(devices))
    if processes is not None:
        used = [tables.scan(name).select("device_id", "process_id") for name in _ON_DEVICES if name in tables]
        users = pl.concat(used).unique().collect() if used else pl.DataFrame(schema={"device_id": pl.Int16})
        own = pl.col("process_id").is_in(processes) if used else pl.lit(value=False)
        others = set(users["device_id"].drop_nulls()) - set(users.filter(own)["device_id"])
        frame = frame.filter(~pl.col("device_id").is_in(sorted(others)))
    return frame.collect().to_arrow()


def _keep(
    tables: TraceTables,
    name: str,
    window: tuple[int, int] | None,
    devices: list[int] | None,
    processes: list[int] | None,
) -> pa.Table:
    columns = {column.name for column in schema.table(name).columns}
    frame = tables.scan(name)
    if devices is not None and "device_id" in columns:
        # Rows without a device, such as steps that the host marked, concern all devices.
        frame = frame.filter(pl.col("device_id").is_in(devices) | pl.col("device_id").is_null())
    if processes is not None and "process_id" in columns:
        # Rows without a process, such as settings of the capture, concern all processes.
        of_all = pl.col("process_id").is_null() & pl.lit("start_ns" not in columns)
        frame = frame.filter(pl.col("process_id").is_in(processes) | of_all)
    if window is None:
        return frame.collect().to_arrow()
    if "dur_ns" in columns:
        start, end = pl.col("start_ns"), pl.col("start_ns") + pl.col("dur_ns").fill_null(0)
        inside = (start < window[1]) & ((end > window[0]) | ((end == start) & (start >= window[0])))
        first, last = start.clip(*window), end.clip(*window)
        cut = pl.when(pl.col("dur_ns").is_not_null()).then(last - first).alias("dur_ns")
        frame = frame.filter(inside)
        if name == "stacks":
            share = pl.when(pl.col("dur_ns") > 0).then((last - first) / pl.col("dur_ns")).otherwise(1.0)
            parts = (pl.col("samples", "cpu_ns") * share).round().cast(pl.Int64)
            frame = frame.with_columns(parts)
        frame = frame.with_columns((first - window[0]).alias("start_ns"), cut)
    elif "start_ns" in columns:
        frame = frame.filter(pl.col("start_ns").is_between(*window, closed="left"))
        frame = frame.with_columns(pl.col("start_ns") - window[0])
    return frame.collect().to_arrow()


def _noted(tables: TraceTables, selection: Selection) -> pa.Table:
    """Return the notes and one on the selection; the note of a time window has its own code, for analyses."""
    edges = {"from": selection.start_ns, "to": selection.end_ns}
    window = [f"{word} {time / 1e9:g} s" for word, time in edges.items() if time is not None]
    owners = {"device": selection.device, "rank": selection.rank}
    named = [f"{word} {number}" for word, number in owners.items() if number is not None]
    messages = {}
    if window:
        cut = "events that reach over an edge were cut, and steps at the edges are not counted"
        messages[WINDOW_NOTE] = f"Only a part was analysed: {' '.join(window)}; {cut}."
    if named:
        messages["selection"] = f"Only a part was analysed: {', '.join(named)}."
    rows = [{"code": code, "severity": "info", "message": message} for code, message in messages.items()]
    return pa.concat_tables([tables.arrow("notes"), rows_to_table("notes", rows)])
