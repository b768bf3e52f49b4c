"""Imports what adding a trace takes: workers are forked from a process that has imported this module.

Only imports: a query of polars would start its threads, which a fork leaves behind.
"""

from __future__ import annotations

import gc
from importlib import import_module

from traceviz.without_pandas import skip_pandas

MODULES = (
    "traceviz.archive.ingest.ingest",
    "traceviz.parsers.kineto.tables",
    "traceviz.parsers.nsys.sqlite",
    "traceviz.parsers.xplane.files",
    "traceviz.cli.main",
)
"""What the first trace of each common format would import, and what a worker imports of the program itself."""


def import_all() -> None:
    """Import :data:`MODULES`, and all analyses. No garbage is collected meanwhile: nothing of it is garbage."""
    skip_pandas()
    collects = gc.isenabled()
    gc.disable()
    try:
        for name in MODULES:
            import_module(name)
        import_module("traceviz.analyses.run").load_analyses(None)
        gc.freeze()  # a fork copies the memory of what it looks at
    finally:
        if collects:
            gc.enable()


import_all()
