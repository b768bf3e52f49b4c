"""Tests against other tools, which live in Python environments of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("xprof_oracle.py")

Ask = Callable[..., Any]
"""``ask(command, file, ...)``: the answer of xprof_oracle.py, decoded."""


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
