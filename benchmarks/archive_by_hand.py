"""Hand-written code, without traceviz, to query many traces: one pandas process, a folder of Parquet per trace.

It keeps two tables of each trace, kernels and CUDA API calls; traceviz keeps all, scrubs them, and judges every trace.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from xplane_messages import xspace_class

Tables = tuple[pd.DataFrame, pd.DataFrame]
"""Kernels and CUDA API calls: name, start_ns, dur_ns, process, correlation."""

COLUMNS = ["name", "start_ns", "dur_ns", "process", "correlation"]
_NSYS = """
    SELECT value AS name, start AS start_ns, end - start AS dur_ns, {} AS process, correlationId AS correlation
    FROM {} LEFT JOIN StringIds ON id = {}
"""
_PROCESS_BITS = ~0xFFFFFF
"""Bits of a thread id that name its process."""


def add(sources: Path, folder: Path) -> int:
    """Convert all traces of a folder; return their number."""
    count = 0
    for path in sorted(sources.iterdir()):
        ending = next(ending for ending in READERS if path.name.endswith(ending))
        target = folder / ending.lstrip(".") / path.name
        target.mkdir(parents=True)
        for name, table in zip(("kernels", "cuda_api"), READERS[ending](path), strict=True):
            table.to_parquet(target / f"{name}.parquet", compression="zstd")
        count += 1
    return count


def times(folder: Path) -> int:
    """Compute device time and CUDA API time of every trace, and over all; return the number of traces."""
    kernels, calls = (table(folder, name).groupby("trace")["dur_ns"].sum() for name in ("kernels", "cuda_api"))
    totals = pd.concat({"device": kernels, "cuda_api": calls}, axis=1)
    totals.describe()
    return len(totals)


def kernels_by_name(folder: Path) -> int:
    """Compute calls and time of every kernel over all traces; return the number of calls."""
    kernels = table(folder, "kernels").groupby("name")["dur_ns"].agg(["count", "sum"])
    return int(kernels.sort_values("sum", ascending=False)["count"].sum())


def api_share(folder: Path) -> int:
    """Compute the share of every function of CUDA's API, by format; return the number of rows."""
    calls = table(folder, "cuda_api").groupby(["format", "name"])["dur_ns"].sum().reset_index()
    calls["share"] = calls["dur_ns"] / calls.groupby("format")["dur_ns"].transform("sum")
    return len(calls)


def launch_delay(folder: Path) -> int:
    """Compute the mean time from a launch call to its kernel, by format; return the number of kernels with a call."""
    keys = ["trace", "process", "correlation"]
    calls = table(folder, "cuda_api")[[*keys, "start_ns"]].rename(columns={"start_ns": "called_ns"})
    launches = table(folder, "kernels").merge(calls, on=keys)
    launches["delay_ns"] = launches["start_ns"] - launches["called_ns"]
    return int(launches.groupby("format")["delay_ns"].agg(["count", "mean"])["count"].sum())


def table(folder: Path, name: str) -> pd.DataFrame:
    """Return one table of all traces, with the trace and its format."""
    paths = sorted(folder.glob(f"*/*/{name}.parquet"))
    parts = (pd.read_parquet(path).assign(trace=path.parent.name, format=path.parent.parent.name) for path in paths)
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _nsys(path: Path) -> Tables:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    kernels = pd.read_sql(_NSYS.format("globalPid", "CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"), connection)
    process = f"globalTid & {_PROCESS_BITS}"
    calls = pd.read_sql(_NSYS.format(process, "CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"), connection)
    connection.close()
    return kernels, calls


def _kineto(path: Path) -> Tables:
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]

    def of(*categories: str) -> pd.DataFrame:
        rows = (
            (event["name"], round(event["ts"] * 1e3), round(event["dur"] * 1e3), 0, event["args"].get("correlation"))
            for event in events
            if event.get("cat") in categories and event["ph"] == "X"
        )
        return pd.DataFrame(rows, columns=COLUMNS)

    return of("kernel"), of("cuda_runtime", "cuda_driver")


def _xplane(path: Path) -> Tables:
    space = xspace_class().FromString(path.read_bytes())
    on_device = [row for plane in space.planes if "GPU" in plane.name for row in _events(plane)]
    on_host = [row for plane in space.planes if "CPU" in plane.name for row in _events(plane)]
    kernels = [row for row in on_device if not row[0].startswith(("Memcpy", "Memset"))]
    calls = [row for row in on_host if row[0].startswith("cu")]
    return pd.DataFrame(kernels, columns=COLUMNS), pd.DataFrame(calls, columns=COLUMNS)


def _events(plane: Any) -> Iterator[tuple[str, int, int, int, int | None]]:
    correlation = next((key for key, stat in plane.stat_metadata.items() if stat.name == "correlation_id"), None)
    for line in plane.lines:
        for event in line.events:
            number = next((_value(stat) for stat in event.stats if stat.metadata_id == correlation), None)
            start_ns = line.timestamp_ns + event.offset_ps // 1000
            name = plane.event_metadata[event.metadata_id].name
            yield name, start_ns, event.duration_ps // 1000, 0, number


def _value(stat: Any) -> int:
    return int(getattr(stat, stat.WhichOneof("value")))


READERS: dict[str, Callable[[Path], Tables]] = {".sqlite": _nsys, ".pt.trace.json.gz": _kineto, ".xplane.pb": _xplane}
