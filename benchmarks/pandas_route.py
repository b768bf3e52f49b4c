"""Hand-written code, without traceviz: pandas reads each table with its names joined, and writes Parquet.

python benchmarks/pandas_route.py TRACE.sqlite OUTPUT_FOLDER
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pandas as pd

QUERIES = {
    "cuda_api": """
        SELECT start AS start_ns, end - start AS dur_ns, globalTid AS thread, correlationId AS correlation_id,
               value AS name, eventClass AS domain, returnValue AS status
        FROM CUPTI_ACTIVITY_KIND_RUNTIME LEFT JOIN StringIds ON id = nameId
    """,
    "kernels": """
        SELECT start AS start_ns, end - start AS dur_ns, deviceId AS device, globalPid AS process, streamId AS stream,
               contextId AS context_id, correlationId AS correlation_id, graphNodeId AS graph_node_id, value AS name,
               gridX AS grid_x, gridY AS grid_y, gridZ AS grid_z, blockX AS block_x, blockY AS block_y,
               blockZ AS block_z, registersPerThread AS registers_per_thread,
               staticSharedMemory AS static_shared_bytes, dynamicSharedMemory AS dynamic_shared_bytes
        FROM CUPTI_ACTIVITY_KIND_KERNEL LEFT JOIN StringIds ON id = demangledName
    """,
}


def main() -> None:
    """Convert the trace named on the command line, one table after the other."""
    trace, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True)
    connection = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
    for name, query in QUERIES.items():
        pd.read_sql(query, connection).to_parquet(folder / f"{name}.parquet", compression="zstd")
    connection.close()


if __name__ == "__main__":
    main()
