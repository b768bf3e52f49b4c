"""Which parts of a Parquet file hold the events of a time window.

The events themselves say so: statistics do not tell when events end, those of a damaged file may end the process, and
what else a file may state of its parts is no longer true where somebody wrote it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceviz.untrusted.parquet import read_group

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Window = tuple[int | None, int | None]
"""Begin and end in nanoseconds on the trace's clock; ``None`` for those of the capture."""


def groups_in(file: pq.ParquetFile, window: Window | None) -> list[int]:
    """Row groups with events that reach into ``window``, or touch its edges; all, where there is none or no event.

    Raises:
        OSError, ValueError, OverflowError, pyarrow.ArrowException: as :func:`traceviz.untrusted.parquet.read_group`.
    """
    everything = list(range(file.metadata.num_row_groups))
    times = [name for name in file.schema_arrow.names if name in {"start_ns", "dur_ns"}]
    if window is None or "start_ns" not in times:
        return everything
    return [group for group in everything if _reach_into(file, group, times, window)]


def _reach_into(file: pq.ParquetFile, group: int, times: list[str], window: Window) -> bool:
    rows = read_group(file, group, times)
    starts = rows["start_ns"].to_numpy()
    durations: Any = rows["dur_ns"] if "dur_ns" in times else None
    lengths = 0 if durations is None else durations.fill_null(0).to_numpy()
    begin, end = window
    inside = np.ones(starts.size, np.bool_) if end is None else starts < end
    return bool(inside.any() if begin is None else (inside & (starts + lengths >= begin)).any())
