"""Modules that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from traceviz.later import Later


def test_a_module_is_imported_once_something_of_it_is_asked_for() -> None:
    assert Later("fractions").Fraction(1, 2) == 0.5


def test_what_the_module_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError, match="Fractions3"):
        _ = Later("fractions").Fractions3


@pytest.mark.process
def test_what_to_read_is_known_without_polars() -> None:
    code = (
        "import sys, traceviz.api, traceviz.parsers.nsys.sqlite, traceviz.spill\n"
        "from traceviz.analyses.needs import columns_for, tables_for\n"
        "assert len(columns_for(['cuda_api'])['cuda_api']) == 2, columns_for(['cuda_api'])\n"
        "assert 'kernels' in tables_for(['cuda_api'])\n"
        "sys.exit('polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
