"""The compiled functions and their NumPy twins have one interface, and give one report."""

import inspect
import json
import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.support.reports import report_of
from traceviz.api import to_text
from traceviz.core.arrays import portable
from traceviz.core.arrays.library import library

pytestmark = pytest.mark.skipif(library is portable, reason="the package was built without a C compiler")


def test_each_of_the_25_compiled_functions_has_a_twin():
    compiled = {name for name in dir(library) if not name.startswith("_")}
    twins = {name for name, function in inspect.getmembers(portable, inspect.isfunction) if not name.startswith("_")}
    assert compiled == twins
    assert len(compiled) == 25


REPORTS = """
import sys
from traceviz.api import report_on, to_text

for path in sys.argv[1:]:
    print(to_text(report_on(path), "json").replace(chr(10), " "))
"""


@pytest.mark.process
def test_reports_of_3_formats_are_the_same_without_compiled_functions():
    names = ("input_bound.sqlite", "torch_input_bound_workers.pt.trace.json.gz", "gpu_keras_input_bound.xplane.pb")
    paths = [REPOSITORY / "sample_traces" / "synthetic" / name for name in names]
    environment = os.environ | {"TRACEVIZ_SWEEPS": "numpy"}
    texts = subprocess.check_output([sys.executable, "-c", REPORTS, *map(str, paths)], env=environment, text=True)
    for path, text in zip(paths, texts.splitlines(), strict=True):
        assert len(text) > 10_000
        assert rounded(text) == rounded(to_text(report_of(path), "json")), path


def rounded(text):
    """Return a document whose floats have 12 digits: sums of squares are rounded by the order of their terms."""
    return json.loads(text, parse_float=lambda number: f"{float(number):.12g}")
