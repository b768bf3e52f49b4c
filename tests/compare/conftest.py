"""The generators of the synthetic traces are programs beside them, not part of the package."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import REPOSITORY
from tests.oracle.conftest import named_python

sys.path.insert(0, str(REPOSITORY / "sample_traces"))


@pytest.fixture(scope="session")
def torch_python() -> str:
    """A Python that has PyTorch."""
    return named_python("TRACEVIZ_TORCH", "TRACEVIZ_REQUIRE_TORCH", "PyTorch")
