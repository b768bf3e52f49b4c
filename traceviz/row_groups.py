"""Which parts of our Parquet files hold the events of a time window.

Each row group states from when to when its events last, in the metadata of the file. Arrow's own statistics do not say
when events end, and asking for those of a damaged file may end the process.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from traceviz.foreign.json_documents import value_of

_TIMES = "traceviz.times"

Window = tuple[int | None, int | None]
"""Begin and end in nanoseconds on the trace's clock; ``None`` for those of the capture."""
Times = tuple[int, int]
"""When the first event of a row group begins, and the last one ends, in nanoseconds."""


def times_of(rows: pa.Table) -> Times | None:
    """The times of one row group with at least one row; ``None`` where its table has none."""
    if "start_ns" not in rows.column_names:
        return None
    starts = rows["start_ns"].to_numpy()
    if "dur_ns" not in rows.column_names:
        return int(starts.min()), int(starts.max())
    lengths: Any = rows["dur_ns"]
    return int(starts.min()), int((starts + lengths.fill_null(0).to_numpy()).max())


def stated(times: list[Times]) -> dict[str, str]:
    """The metadata of a file whose row groups have these ``times``."""
    return {_TIMES: json.dumps(times)}


def groups_in(metadata: pq.FileMetaData, window: Window | None) -> list[int]:
    """Row groups that may hold events of ``window``; all of them where there is none, or the file does not say."""
    everything = list(range(metadata.num_row_groups))
    times = None if window is None else _times(metadata)
    if times is None or window is None:
        return everything
    begin, end = window
    return [
        group
        for group, (first, last) in zip(everything, times, strict=True)
        if (begin is None or last >= begin) and (end is None or first < end)
    ]


def _times(metadata: pq.FileMetaData) -> list[Times] | None:
    """The times of all row groups; ``None`` where the file does not state them, or not those of each."""
    written: Any = None
    try:
        written = value_of((metadata.metadata or {}).get(_TIMES.encode(), b"null").decode())
        times = [(int(first), int(last)) for first, last in written]
    except (ValueError, TypeError, OverflowError):
        return None
    return times if len(times) == metadata.num_row_groups else None
