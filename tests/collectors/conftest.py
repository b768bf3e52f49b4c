"""The Pythons whose programs are recorded; the same as those of the tests against other tools."""

from __future__ import annotations

import pytest

from tests.oracle.conftest import named_python


@pytest.fixture(scope="session")
def oracle_python() -> str:
    """A Python that has TensorFlow, Keras and JAX."""
    return named_python("TRACEVIZ_ORACLE", "TRACEVIZ_REQUIRE_ORACLE", "TensorFlow and xprof")


@pytest.fixture(scope="session")
def torch_python() -> str:
    """A Python that has PyTorch."""
    return named_python("TRACEVIZ_TORCH", "TRACEVIZ_REQUIRE_TORCH", "PyTorch")
