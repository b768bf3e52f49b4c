"""Ranges of unfinished steps: the hooks of ``traceviz collect`` start a step before they know that it will run.

::

    step 0    step 1    step 2 (the epoch is over: abandoned)    step 2    step 3 (the program ends)
    |-------| |-------| |-|                                      |-------| |---------------------->

An abandoned step starts again under the same number; the last one ends only with the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from traceviz.parsers.run.layout import MOST_FILES, RAW
from traceviz.parsers.run.sources import as_number, stated_in
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.events.columns import with_column

COLLECTOR = "nvtx"
DOMAIN = "traceviz"
"""NVTX domain of the hooks' ranges."""
UNFINISHED = "unfinished step"
"""Name of the range of an unfinished step: its children stay in it, and it does not count as a step."""

_STEP = r"^step (\d{1,18})$"


def complete_steps(folder: Path) -> dict[int, int]:
    """Return the number of completed steps of each process of a run, by pid, for processes that ended normally.

    A process that was killed may have counted only some of its steps.
    """
    completed = {}
    for path in sorted((folder / RAW / COLLECTOR).glob("**/status.json"))[:MOST_FILES]:
        stated = stated_in(path)
        pid, steps = as_number(stated.get("pid")), as_number(stated.get("steps_recorded"))
        if stated.get("state") == "saved" and pid is not None and steps is not None:
            completed[pid] = steps
    return completed


def name_unfinished(nvtx: pa.Table, processes: pa.Table, complete: Mapping[int, int]) -> tuple[pa.Table, int]:
    """Return table ``nvtx`` with unfinished steps renamed to :data:`UNFINISHED`, and the number of these.

    Args:
        nvtx: The table.
        processes: The processes that it refers to.
        complete: Number of steps that each completed, by pid, if known.
    """
    pids = dict(zip(processes["process_id"].to_pylist(), processes["pid"].to_pylist(), strict=True))
    ends = {process: complete.get(pid) for process, pid in pids.items() if pid is not None}
    frame = pl.DataFrame(pl.from_arrow(nvtx.select(["start_ns", "process_id", "name", "domain"])))
    numbered = frame.with_row_index("row").filter(pl.col("domain").cast(pl.String) == DOMAIN)
    steps = numbered.select(
        "row",
        "start_ns",
        "process_id",
        pl.col("name").cast(pl.String).str.extract(_STEP).cast(pl.Int64).alias("number"),
        pl.col("process_id").replace_strict(ends, default=None, return_dtype=pl.Int64).alias("end"),
    ).drop_nulls("number")
    begins_again = pl.col("number") == pl.col("number").shift(-1).over("process_id")
    rows = steps.sort("start_ns").filter(begins_again | (pl.col("number") >= pl.col("end")))["row"]
    if not len(rows):
        return nvtx, 0
    unfinished = np.zeros(nvtx.num_rows, np.bool_)
    unfinished[rows.to_numpy()] = True
    names = pc.if_else(pa.array(unfinished), UNFINISHED, nvtx["name"].cast(pa.string())).dictionary_encode()
    return with_column(nvtx, "name", names.cast(nvtx.schema.field("name").type)), len(rows)
