"""Modules that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from traceviz.core.lazy_module import Later


def test_a_module_is_imported_once_something_of_it_is_asked_for() -> None:
    assert Later("fractions").Fraction(1, 2) == 0.5


def test_what_the_module_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError, match="Fractions3"):
        _ = Later("fractions").Fractions3


@pytest.mark.process
def test_what_to_read_is_known_without_polars() -> None:
    code = (
        "import sys, traceviz.api, traceviz.parsers.nsys.sqlite, traceviz.trace.spill\n"
        "from traceviz.analyses.needs import columns_for, tables_for\n"
        "assert len(columns_for(['cuda_api'])['cuda_api']) == 2, columns_for(['cuda_api'])\n"
        "assert 'kernels' in tables_for(['cuda_api'])\n"
        "sys.exit('polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


_THREADS = """
import os
from pathlib import Path
from traceviz.analyses.run import load_analyses
load_analyses(None)
print(sorted({Path("/proc/self/task", task, "comm").read_text().strip() for task in os.listdir("/proc/self/task")}))
"""


@pytest.mark.process
def test_importing_the_analyses_starts_no_pool_of_polars_which_a_fork_would_leave_behind():
    done = subprocess.run([sys.executable, "-c", _THREADS], check=True, capture_output=True, text=True)
    assert "python" in done.stdout
    assert "polars-0" not in done.stdout
