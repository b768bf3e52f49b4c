"""Shared by all tests: the repository and its samples, the public traces, other Pythons, and how hypothesis behaves.

TRACEVIZ_ORACLE names a Python with TensorFlow, JAX and xprof, TRACEVIZ_TORCH one with PyTorch, TRACEVIZ_HTA one with
HolisticTraceAnalysis; ``make oracle`` installs them. TRACEVIZ_PADDLE names one with PaddlePaddle, TRACEVIZ_MXNET one
with Apache MXNet; ``make frameworks`` installs them.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("traceviz", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("traceviz")

os.environ["TRACEVIZ_CACHE"] = "0"  # nothing is written into the home of who runs the tests

# Twelve thousand collected tests are half a million objects that stay: to search them for garbage costs every worker
# a quarter of its collection.
gc.set_threshold(50_000)

REPOSITORY = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(REPOSITORY / "sample_traces"))  # the programs that make the samples are no part of the package


def pytest_collection_finish() -> None:
    """Exclude the collected tests from later searches for garbage."""
    gc.collect()
    gc.freeze()


def named_python(variable: str, required: str, holds: str, target: str = "oracle") -> str:
    """Return the Python that ``variable`` names; without one, the test is skipped, or fails if required."""
    python = os.environ.get(variable)
    if python:
        return python
    if os.environ.get(required):
        pytest.fail(f"{variable} is not set, and {required} says that it must be")
    pytest.skip(f"{variable} names no Python with {holds} (make {target} installs one)")


@pytest.fixture(scope="session")
def oracle_python() -> str:
    """A Python that has TensorFlow, Keras, JAX and xprof."""
    return named_python("TRACEVIZ_ORACLE", "TRACEVIZ_REQUIRE_ORACLE", "TensorFlow and xprof")


@pytest.fixture(scope="session")
def torch_python() -> str:
    """A Python that has PyTorch."""
    return named_python("TRACEVIZ_TORCH", "TRACEVIZ_REQUIRE_TORCH", "PyTorch")


@pytest.fixture(scope="session")
def hta_python() -> str:
    """A Python that has HolisticTraceAnalysis."""
    return named_python("TRACEVIZ_HTA", "TRACEVIZ_REQUIRE_TORCH", "HolisticTraceAnalysis")


@pytest.fixture(scope="session")
def paddle_python() -> str:
    """A Python that has PaddlePaddle."""
    return named_python("TRACEVIZ_PADDLE", "TRACEVIZ_REQUIRE_FRAMEWORKS", "PaddlePaddle", "frameworks")


@pytest.fixture(scope="session")
def mxnet_python() -> str:
    """A Python that has Apache MXNet."""
    return named_python("TRACEVIZ_MXNET", "TRACEVIZ_REQUIRE_FRAMEWORKS", "Apache MXNet", "frameworks")


def named_folder(variable: str) -> Path:
    """Return the folder of public traces that ``variable`` names; without one, the test is skipped."""
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} names no folder of public traces")
    return Path(folder)


@pytest.fixture(scope="session")
def public_traces() -> Path:
    """Folder of real public traces with results of independent tools, from TRACEVIZ_TRACES."""
    return named_folder("TRACEVIZ_TRACES")


@pytest.fixture(scope="session")
def public_cases() -> Path:
    """Folder of real public traces on which reports were wrong once, from TRACEVIZ_CASES."""
    return named_folder("TRACEVIZ_CASES")


@pytest.fixture(scope="session")
def public_cases2() -> Path:
    """Folder of further traces on which reports were wrong once, public and made ones, from TRACEVIZ_CASES2."""
    return named_folder("TRACEVIZ_CASES2")


@pytest.fixture(scope="session")
def samples() -> Path:
    """The shipped sample traces."""
    return REPOSITORY / "sample_traces"


@pytest.fixture(scope="session", autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Programs are started as from a terminal: shells ignore Ctrl-C for what they run in the background."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
