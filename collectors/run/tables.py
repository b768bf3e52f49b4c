"""Makes the tables of a run in a separate process, so that no libraries for them are loaded while programs run."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceviz.collectors.base import Problem
from traceviz.collectors.program.processes import Watch, ending_by_request
from traceviz.collectors.run.folder import RAW
from traceviz.collectors.run.plan import CollectOptions
from traceviz.collectors.run.record import Progress, no_progress
from traceviz.report.verdicts import Cause, VerdictCode
from traceviz.untrusted.json_documents import object_of

_PROCESS = "import gc; gc.set_threshold(50_000); from traceviz.runs.run_tables import run; run()"
"""Imports make hundreds of thousands of objects that stay: each collection would inspect them."""
_GRACE_S = 5.0
"""Time that the process may take to remove its unfinished files."""
_LAST_WORDS = 500
"""Length of the last line of a failure that is shown."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The result of reading a run into tables.

    Args:
        rows: Rows of each table.
        lines: The first lines of the report, if one was requested.
        verdict: Its ``code``, ``sentence`` and ``cause``.
        problems: Why there are no tables, or no verdict.
        whole: True if all recordings were read.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    verdict: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    whole: bool = False

    @property
    def judged(self) -> bool:
        """True if the report could judge the input, or names another cause of the time."""
        names_nothing = self.verdict.get("cause", "") in {Cause.UNKNOWN, Cause.UNEXPLAINED}
        return self.verdict.get("code") != VerdictCode.CANNOT_JUDGE or not names_nothing


def make_tables(
    folder: Path, options: CollectOptions, watch: Watch, *, verdict: bool, progress: Progress = no_progress
) -> Tables:
    """Run :mod:`traceviz.runs.run_tables` on a run folder; with ``verdict``, analyse the run as well."""
    flags = [flag for flag, given in (("--keep-private", options.keep_private), ("--verdict", verdict)) if given]
    # -P: a file `random.py` in the user's folder must not shadow a module.
    command = [sys.executable, "-P", "-c", _PROCESS, str(folder), *flags]
    try:
        with ending_by_request(watch):
            status, output, errors = _run(command, progress)
    except KeyboardInterrupt:
        return Tables(problems=(_unread("It was ended before it was complete."),))
    except OSError as error:
        return Tables(problems=(_unread(f"{error.strerror}."),))
    return parse_answer(status, output, errors.decode("utf-8", "replace"))


def _run(command: list[str], progress: Progress) -> tuple[int, bytes, bytes]:
    """Return exit code, stdout and stderr of a process, which may clean up if we are asked to end."""
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said) as process,
    ):
        assert process.stdout is not None
        output = []
        try:
            for line in process.stdout:
                stage = object_of(line).get("progress")
                if stage:
                    progress(*stage)
                else:
                    output.append(line)
            process.wait()
        except BaseException:
            process.terminate()
            try:
                process.wait(timeout=_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        said.seek(0)
        return process.returncode, b"".join(output), said.read()


def parse_answer(status: int, output: bytes, errors: str) -> Tables:
    """Return the tables, from the exit code and the output of the process that made them."""
    answers: dict[str, Any] = {}
    for line in output.splitlines():
        answers |= object_of(line)
    rows, lines = answers.get("tables", {}), tuple(answers.get("lines", ()))
    problems = (_unread(answers["unread"]),) if answers.get("unread") else ()
    if status == 0:
        whole = bool(answers.get("whole"))
        return Tables(rows, lines, verdict=answers.get("verdict", {}), problems=problems, whole=whole)
    last = errors.strip().rpartition("\n")[2][-_LAST_WORDS:]
    ended = f"The process that reads it was killed by signal {-status}." if status < 0 else f"It ended with {status}."
    error = answers.get("error", {"message": last or ended, "fix": ""})
    if rows:
        reason = Problem("no-verdict", f"There is no verdict: {error['message']}", error["fix"])
        return Tables(rows, problems=(reason,), whole=bool(answers.get("whole")))
    return Tables(problems=(_unread(error["message"], error["fix"]),))


def _unread(reason: str, fix: str = "") -> Problem:
    message = f"What was recorded was not made into tables: {reason} It is kept in {RAW}/ of the run."
    return Problem("no-tables", message, fix)
