"""Programs that the end-to-end tests need, and their paths."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import command

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def nsys() -> str:
    """The real nsys; its absence is a failure if TRACEVIZ_REQUIRE_NSYS is set, as in CI."""
    program = shutil.which("nsys")
    if program is None:
        reason = "nsys is not on PATH (scripts/install-nsys.sh installs it on Debian 12)"
        if os.environ.get("TRACEVIZ_REQUIRE_NSYS"):
            pytest.fail(f"{reason}, and TRACEVIZ_REQUIRE_NSYS is set")
        pytest.skip(reason)
    return program


@pytest.fixture(scope="session")
def traceviz() -> Run:
    """Runs the command in this process; it must exit with ``code``."""

    def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        completed = command.run(*arguments)
        assert completed.returncode == code, completed.stderr
        return completed

    return run


@pytest.fixture(scope="session")
def report_of(traceviz: Run) -> Callable[..., dict[str, Any]]:
    """The JSON report of ``traceviz report`` with these arguments, made once however many tests read it."""

    @functools.cache
    def report(*arguments: str | Path) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(traceviz("report", *arguments, "--format", "json").stdout)
        return document

    return report


@pytest.fixture(scope="session")
def installed() -> Run:
    """Function that runs the installed program of this interpreter, which must succeed."""
    program = Path(sys.executable).with_name("traceviz")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        completed = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        return completed

    return run
