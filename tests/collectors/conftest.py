"""The Pythons whose programs are recorded; the same as those of the tests against other tools."""

from __future__ import annotations

import signal
from collections.abc import Iterator

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


@pytest.fixture(scope="session", autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Programs are started as from a terminal: shells ignore Ctrl-C for what they run in the background."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
