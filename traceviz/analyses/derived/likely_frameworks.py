"""Which frameworks advice may address: those that the trace states or shows, all where any may be, none where none is.

Profilers of CUDA state no framework; kernels that only one ships, and the names of processes, tell of it.
"""

from __future__ import annotations

import polars as pl

from traceviz.analyses.derived.recorded.frameworks import FRAMEWORKS, frameworks_in
from traceviz.analyses.derived.view import TraceView, once_per_trace
from traceviz.trace.names.framework_signs import ALL_SIGNS, identify

_PYTHON = r"(?i)python|jupyter|ipykernel|pytest|torchrun|accelerate|deepspeed|ray::"
"""Names of processes that run Python, and may use a framework."""


@once_per_trace
def likely_frameworks(trace: TraceView) -> frozenset[str]:
    """Frameworks that the program may use, in lower case: all of them where nothing tells.

    None where device work or calls were recorded, of named processes, none of which runs Python.
    """
    stated = trace.tables.run_facts().get("framework")
    if stated:  # advice knows how to address some
        return trace.frameworks or frozenset(part.split()[0].lower() for part in str(stated).split(" + "))
    kernels = pl.Series(list(trace.kernel_classes), dtype=pl.String)
    counts = {sign: int(kernels.str.contains(sign.pattern).sum()) for sign in ALL_SIGNS if sign.kind == "names"}
    shown = frameworks_in(identify(counts).framework)
    if shown:
        return shown
    every = frozenset(name.lower() for name in FRAMEWORKS)
    processes = trace.frame("processes", "name")["name"].cast(pl.String)
    if "host_ops" in trace.tables or not processes.len() or processes.null_count():
        return every
    return every if processes.str.contains(_PYTHON).any() else frozenset()
