"""Tables and reports of traces that no test changes, made once a process however many tests ask for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from traceviz import api
from traceviz.report import Report
from traceviz.trace.tables import TraceTables


@cache
def tables_of(path: Path) -> TraceTables:
    """Return the tables of a shipped sample or a public trace."""
    return api.open_trace(path)


@cache
def report_of(path: Path) -> Report:
    """Return the whole report of a shipped sample or a public trace."""
    return api.report_on(path)
