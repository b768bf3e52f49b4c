"""The nvtx collector: ranges around steps, epochs, input, forward, backward and optimizer, for nsys to record."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, ClassVar

from traceviz.collectors.base import NSYS, NVTX, Availability, Harvest, Plan, Problem
from traceviz.collectors.frameworks.harvest import ProcessRecord, read_processes
from traceviz.collectors.frameworks.injection import InjectedCollector
from traceviz.collectors.nsys.collector import NsysCollector
from traceviz.untrusted.sqlite import foreign_database

DOMAIN = "traceviz"
"""Domain of the ranges: the hooks inside the program use the same."""

_RANGES = "SELECT COUNT(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60) AND domainId IN ({domains})"
_DOMAINS = (
    "SELECT domainId FROM NVTX_EVENTS LEFT JOIN StringIds ON StringIds.id = NVTX_EVENTS.textId "
    "WHERE eventType = 75 AND COALESCE(text, value) = ?"
)


class NvtxCollector(InjectedCollector):
    """Puts ranges into the program. nsys records them; its report is checked for them afterwards."""

    name: ClassVar[str] = NVTX
    title: ClassVar[str] = "NVTX ranges"

    def availability(self) -> Availability:
        """Return ready if there is an nsys; the ranges need no package in the program."""
        nsys = NsysCollector().availability()
        if not nsys.is_ready:
            return Availability(nsys.state, f"nsys records the ranges. {nsys.detail}", nsys.fix)
        return Availability("ready", "ranges go to nsys through its own interface; no package is needed")

    def harvest(self, plan: Plan) -> Harvest:
        """Return the number of ranges made, and whether they arrived in the report of nsys."""
        processes = read_processes(plan.raw(self.name))
        emitted = sum(int(process.status.get("emitted") or 0) for process in processes)
        arrived = arrived_ranges(plan.raw(NSYS))
        problems = [problem for process in processes for problem in process.problems]
        # Ranges without a profiler that records them, and ranges that are not in the report.
        off = [process for process in processes if process.status.get("state") == "off"]
        if off and not emitted:
            why = f"No NVTX ranges were made: {off[0].status.get('detail')}."
            problems.append(Problem("nvtx-off", why, "Record with nsys as well, and let its --trace contain nvtx."))
        elif emitted and arrived == 0:
            why = f"{emitted} NVTX ranges were made, and none is in the report of nsys."
            problems.append(Problem("nvtx-lost", why, "Let the --trace of nsys contain nvtx, or use a newer nsys."))
        return Harvest((), tuple(problems), {"emitted": emitted, "arrived": arrived, **_counts(processes)})


def _counts(processes: tuple[ProcessRecord, ...]) -> dict[str, Any]:
    """Return ranges by the part that they mark, and whether the program's own NVTX package was fixed."""
    ranges: dict[str, int] = {}
    for process in processes:
        for part, count in (process.status.get("ranges") or {}).items():
            ranges[part] = ranges.get(part, 0) + int(count)
    packages = [process.status["program_nvtx"] for process in processes if process.status.get("program_nvtx")]
    mended = any(process.status.get("program_nvtx_mended") for process in processes)
    threads = next((process.status["threads"] for process in processes if process.status.get("threads")), None)
    return {
        "ranges": ranges,
        **({"threads": threads} if threads else {}),
        **({"program_nvtx": packages[0], "program_nvtx_mended": mended} if packages else {}),
    }


def arrived_ranges(folder: Path) -> int | None:
    """Return how many of our ranges are in the files of nsys below ``folder``; ``None`` if no file is readable.

    The count comes from an SQLite export or from a folder of Parquet files.
    """
    counts = [count for path in sorted(folder.rglob("*.sqlite")) if (count := _in_sqlite(path)) is not None]
    counts += [
        count for path in sorted(folder.rglob("NVTX_EVENTS.parquet")) if (count := _in_parquet(path)) is not None
    ]
    return sum(counts) if counts else None


def _in_sqlite(path: Path) -> int | None:
    try:
        with foreign_database(path) as database:
            named = [row[0] for row in database.execute(_DOMAINS, (DOMAIN,))]
            marks = ", ".join("?" * len(named))
            return int(database.execute(_RANGES.format(domains=marks), named).fetchone()[0])
    except sqlite3.OperationalError as error:
        # An export without the table has no ranges; other errors mean that it is no export.
        return 0 if "no such table: NVTX_EVENTS" in str(error) else None
    except (sqlite3.DatabaseError, OSError):
        return None


def _in_parquet(path: Path) -> int | None:
    import polars as pl  # noqa: PLC0415 loaded only once a run is over

    try:
        events, strings, text = pl.scan_parquet(path, glob=False), path.with_name("StringIds.parquet"), pl.col("text")
        if strings.exists():  # the text of an event is its own, else that of its number
            known = pl.read_parquet(strings, columns=["id", "value"], glob=False)
            text = pl.coalesce(text, pl.col("textId").replace_strict(known["id"], known["value"], default=None))
        domains = events.filter(pl.col("eventType") == 75).select("domainId", text=text)
        ours = domains.filter(pl.col("text") == DOMAIN).select("domainId").unique()
        ranges = events.filter(pl.col("eventType").is_in([59, 60])).join(ours, on="domainId", how="semi")
        return int(ranges.select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError):
        return None
