"""Shared fixtures of the archive tests: the object store, and filled archives. Commands work in this process."""

import pytest

from tests.archive.conftest import filled, filled_once, in_process, own_spool

__all__ = ["filled", "filled_once", "in_process", "own_spool"]


@pytest.fixture(autouse=True)
def _in_process(in_process):
    pass
