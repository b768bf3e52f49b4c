"""The compiled functions and their NumPy twins have one interface, and give one report."""

import inspect
import json
import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from traceviz.core.arrays import portable
from traceviz.core.arrays.library import library

pytestmark = pytest.mark.skipif(library is portable, reason="the package was built without a C compiler")


def test_each_of_the_25_compiled_functions_has_a_twin():
    compiled = {name for name in dir(library) if not name.startswith("_")}
    twins = {name for name, function in inspect.getmembers(portable, inspect.isfunction) if not name.startswith("_")}
    assert compiled == twins
    assert len(compiled) == 25


@pytest.mark.process
@pytest.mark.parametrize(
    "name", ["input_bound.sqlite", "torch_input_bound_workers.pt.trace.json.gz", "gpu_keras_input_bound.xplane.pb"]
)
def test_reports_of_3_formats_are_the_same_without_compiled_functions(name):
    command = [sys.executable, "-m", "traceviz", "report", f"sample_traces/synthetic/{name}", "--format", "json"]
    reports = []
    for sweeps in ("", "numpy"):
        environment = os.environ | {"TRACEVIZ_SWEEPS": sweeps}
        text = subprocess.check_output([*command, "--all"], env=environment, cwd=REPOSITORY)
        # Sums of squares are rounded by the order of their terms.
        reports.append(json.loads(text, parse_float=lambda number: f"{float(number):.12g}"))
    assert len(text) > 10_000
    assert reports[0] == reports[1]
