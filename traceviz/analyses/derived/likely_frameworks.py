"""Frameworks that advice may address: those that the trace states or shows, else all or none.

CUDA profilers do not state the framework. Kernels that only one framework ships, and process names, show it.
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
    """Return the frameworks that the program may use, in lower case; all of them if there is no evidence.

    Return an empty set if device work or calls were recorded for named processes, and none of them runs Python.
    """
    stated = trace.tables.run_facts().get("framework")
    if stated:  # advice exists for some frameworks
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
