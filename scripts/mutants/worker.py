"""Run tests against a mutant, in a child of a process that has imported slow modules, but nothing of traceviz.

No file is changed. The child compiles the changed text when Python would read the file.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import resource
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

IMPORTED = (
    *("pytest", "_pytest.assertion.rewrite", "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy"),
    *("numpy", "polars", "pyarrow", "pyarrow.compute", "pyarrow.parquet", "pandas", "duckdb", "msgspec", "click"),
    *("rich.console", "rich.table", "google.protobuf.message", "isal", "zstandard", "fsspec", "sqlite3"),
)
"""Imports of the tests besides traceviz. None of them starts a thread before it is used."""

_BYTES = 6 * 2**30
OUT_OF_TIME = 124
"""Exit code of a child that took too long."""


@dataclass(frozen=True, slots=True)
class Job:
    """Tests to run against one mutant.

    Args:
        root: The repository.
        file: The changed file; ``None`` for none.
        code: Its text.
        tests: Tests, in this order.
        seconds: Limit of CPU time; several times as much may pass on the clock.
        log: File for the output of pytest.
    """

    root: Path
    file: Path | None
    code: str
    tests: tuple[str, ...]
    seconds: float
    log: Path


def warm_up() -> None:
    """Import slow modules, before any fork."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    for name in IMPORTED:
        try:
            __import__(name)
        except ImportError:
            continue


def start(job: Job) -> int:
    """Start a child for ``job``; return its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        code = _run(job)
    except BaseException:  # noqa: BLE001 (a child must end here, whatever happens)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def outcome(status: int) -> int:
    """Return the exit code of a child, from its wait status."""
    if os.WIFSIGNALED(status):
        return OUT_OF_TIME if os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL} else 1
    return os.WEXITSTATUS(status)


def _run(job: Job) -> int:
    os.setpgid(0, 0)
    limit = max(1, int(time.process_time() + job.seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))  # with RLIMIT_AS, commands work in a child of theirs
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(int(job.seconds * 8) + 30)
    output = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(job.root)
    if job.file:
        # Python compiles ``job.code`` when it would import ``job.file``.
        read = importlib.machinery.SourceFileLoader.get_code

        def get_code(self: Any, fullname: str) -> CodeType | None:
            if Path(self.path) == job.file:
                compiled: CodeType = compile(job.code, str(job.file), "exec", dont_inherit=True)
                return compiled
            return read(self, fullname)

        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    import pytest  # noqa: PLC0415 (with what it reads from its environment now)

    files = list(dict.fromkeys(test.partition("::")[0] for test in job.tests))
    options = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=line", "--no-header", "-rN")
    options = (*options, "-W", "ignore::pytest.PytestAssertRewriteWarning")
    return int(pytest.main([*options, *files], plugins=[_Only(job.tests)]))


class _Only:
    """Plugin of pytest that runs these tests only, in this order."""

    def __init__(self, tests: tuple[str, ...]) -> None:
        self._places = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._places), key=lambda item: self._places[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            print("FAILED", json.dumps(report.nodeid))
