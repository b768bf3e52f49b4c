"""Tests against other tools, which live in Python environments of their own.

TRACEVIZ_ORACLE names a Python with TensorFlow, JAX and xprof, TRACEVIZ_TORCH one with PyTorch, TRACEVIZ_HTA one with
HolisticTraceAnalysis; ``make oracle`` installs them.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("xprof_oracle.py")

Ask = Callable[..., Any]
"""``ask(command, file, ...)``: the answer of xprof_oracle.py, decoded."""


def named_python(variable: str, required: str, holds: str) -> str:
    """The Python that ``variable`` names; the test is skipped where it names none, and fails where it must."""
    python = os.environ.get(variable)
    if python:
        return python
    if os.environ.get(required):
        pytest.fail(f"{variable} is not set, and {required} says that it must be")
    pytest.skip(f"{variable} names no Python with {holds} (make oracle installs one)")


@pytest.fixture(scope="session")
def oracle_python() -> str:
    """A Python that has TensorFlow, JAX and xprof."""
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
def ask_xprof(oracle_python: str) -> Ask:
    """Asks xprof about one capture, or about the hosts of one run. Equal questions are asked once."""
    answers: dict[tuple[str, ...], Any] = {}

    def ask(command: str, *files: Path) -> Any:
        question = (command, *map(str, files))
        if question not in answers:
            done = subprocess.run([oracle_python, SCRIPT, *question], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"xprof failed on {question}: {done.stderr[-2000:]}"
            answers[question] = json.loads(done.stdout)
        return answers[question]

    return ask
