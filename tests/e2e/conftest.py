"""Programs that the end-to-end tests need, and where they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def nsys() -> str:
    """The real nsys; its absence is a failure where TRACEVIZ_REQUIRE_NSYS is set, as in CI."""
    found = shutil.which("nsys")
    if found is None:
        reason = "nsys is not on PATH (scripts/install-nsys.sh installs it on Debian 12)"
        if os.environ.get("TRACEVIZ_REQUIRE_NSYS"):
            pytest.fail(f"{reason}, and TRACEVIZ_REQUIRE_NSYS is set")
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def traceviz() -> Run:
    """Runs the installed command beside this interpreter; it must succeed unless ``code`` says otherwise."""
    program = Path(sys.executable).with_name("traceviz")

    def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done

    return run
