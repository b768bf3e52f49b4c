"""Results of HolisticTraceAnalysis for PyTorch captures, as JSON: runs in the oracle's own Python.

    python hta_oracle.py FILE...       one file per rank, in the order of the ranks

Per rank: from the first to the last work of the device, the time in which it computes, in which it only copies or
communicates, and in which it is idle, in microseconds; and the share of communication during which it computes, in
percent, ``null`` without communication. A capture without a rank is taken for rank 0.
"""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any

# Otherwise it cuts both ends of every event to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis


def main() -> None:
    """Run the command line."""
    traces = TraceAnalysis(trace_files=dict(enumerate(sys.argv[1:])), trace_dir="/", include_last_profiler_step=True)
    times = traces.get_temporal_breakdown(visualize=False)
    overlap = traces.get_comm_comp_overlap(visualize=False)
    merged = times.merge(overlap, on="rank").sort_values("rank")
    json.dump([rank_of(row) for row in merged.to_dict("records")], sys.stdout)


def rank_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one rank."""
    share = row["comp_comm_overlap_pctg"]
    return {
        "rank": row["rank"],
        "compute_us": row["compute_time(us)"],
        "other_us": row["non_compute_time(us)"],
        "idle_us": row["idle_time(us)"],
        "overlap_percent": None if math.isnan(share) else share,
    }


if __name__ == "__main__":
    main()
