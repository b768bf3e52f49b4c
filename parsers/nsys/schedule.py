"""Times in which threads ran on a core, from the events of the scheduler.

::

    SCHED_EVENTS    in      out   in  out          one row for each moment
    rows             |------|     |---|            between them, the thread runs on no core
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceviz.parsers.nsys.identity import Identity
from traceviz.parsers.nsys.mapping import SCHEDULE, SCHEDULE_COLUMNS
from traceviz.parsers.shared.arrays.arrow import pc
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.trace import schema


def read_schedule(raw: RawTables, identity: Identity, zero_ns: int, last_ns: int) -> pa.Table:
    """Return the table ``scheduling`` of threads that have other events, from ``zero_ns`` to ``last_ns``."""
    declared = schema.table("scheduling").arrow
    batches = [batch for batch in raw.stream(SCHEDULE, SCHEDULE_COLUMNS) if batch.num_rows]
    if not batches:
        return declared.empty_table()
    columns = {name: pc.fill_null(pa.chunked_array([b[name] for b in batches]), -1) for name in SCHEDULE_COLUMNS}
    found = pc.fill_null(pc.index_in(columns["globalTid"], value_set=identity.threads), -1)
    owner, moment, gets = (
        np.asarray(column.to_numpy(), np.int64) for column in (found, columns["start"], columns["isSchedIn"])
    )
    known = np.flatnonzero(owner >= 0)
    order = known[np.lexsort((moment[known], owner[known]))]
    owner, moment, gets = owner[order], moment[order], gets[order]
    # A moment without its counterpart shows nothing: events may be lost.
    runs = np.flatnonzero((gets[:-1] == 1) & (gets[1:] == 0) & (owner[:-1] == owner[1:]) & (moment[:-1] < moment[1:]))
    start, end = np.maximum(moment[runs], zero_ns), np.minimum(moment[runs + 1], last_ns)
    inside = np.flatnonzero(start < end)
    inside = inside[np.argsort(start[inside], kind="stable")]
    start, end, threads = start[inside], end[inside], pa.array(owner[runs[inside]], pa.int32())
    times = pa.array(start - zero_ns), pa.array(end - start)
    made = pa.table([*times, identity.process_of_thread.take(threads), threads], names=declared.names)
    return made.cast(declared)
