"""Recording a run of a program: ``traceviz collect``, for programs and notebooks.

>>> outcome = collect(CollectOptions(), ["python", "train.py"])
>>> print(traceviz.to_text(traceviz.report_on(outcome.folder)))
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from traceviz.collectors import registry
from traceviz.collectors.base import Problem
from traceviz.collectors.program.supervise import Watch, ending_by_request, find_program, watched_signals
from traceviz.collectors.run.folder import RAW, drop_raw
from traceviz.collectors.run.manifest import Manifest
from traceviz.collectors.run.plan import (
    RUNS,
    CollectOptions,
    file_name,
    make_plan,
    program_name,
)
from traceviz.collectors.run.record import Prepared, Recording, Tell, record, save
from traceviz.errors import UsageError
from traceviz.version import __version__

__all__ = ["CollectOptions", "Outcome", "collect", "prepare"]

_LAST_WORDS = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was recorded.

    Args:
        folder: The run folder.
        exit_code: The program's exit code; 128 + n for signal n.
        status: ``finished``, ``failed``, ``killed`` or ``interrupted``.
        tables: Rows of each table that was recorded; empty where nothing was, or it could not be read.
        verdict: The first lines of the report on it, where they were asked for and there is something to report on.
        problems: What went wrong in the recording.
    """

    folder: Path
    exit_code: int
    status: str
    tables: Mapping[str, int] = field(default_factory=dict)
    verdict: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def silent(line: str) -> None:
    """A :data:`~traceviz.collectors.run.record.Tell` that tells nobody."""


def prepare(options: CollectOptions, command: Sequence[str]) -> Prepared:
    """What :func:`collect` would do. Nothing is created or started.

    Raises:
        TracevizError: as :func:`collect`, but for what only starting shows.
    """
    asked = tuple(command)
    if not asked:
        raise UsageError("There is no command to run.", fix="For example: traceviz collect -- python train.py")
    find_program(asked[0], os.environ)
    states = {collector.name: collector.availability() for collector in registry.COLLECTORS}
    plan = make_plan(options, asked, _folder(options, asked), states)
    collectors = tuple(collector for collector in registry.COLLECTORS if collector.name in plan.collectors)
    return Prepared(plan, options, collectors, states, dict(os.environ), {"traceviz": __version__})


def collect(options: CollectOptions, command: Sequence[str], *, verdict: bool = False, tell: Tell = silent) -> Outcome:
    """Run ``command`` and record it into a run folder, with this process's stdin, stdout and stderr.

    Signals that ask this process to end go to the program, so call it from the main thread.

    Args:
        options: What to record, and where to.
        command: The program and its arguments.
        verdict: Whether to analyse what was recorded.
        tell: Receives lines for the user as they come up.

    Raises:
        UsageError: the options contradict each other, or there is no command.
        MissingToolError: a collector that was asked for cannot record here.
        CommandNotFoundError, NotExecutableError: the command cannot be run; nothing was created.
        OutputExistsError, OutputError: there is no place for the run folder; nothing was started.
    """
    run = prepare(options, command)
    with watched_signals() as watch:
        recording = record(run, watch, tell)
        return _with_tables(run, recording, watch, verdict=verdict, tell=tell)


def _folder(options: CollectOptions, command: tuple[str, ...]) -> Path:
    """The run folder, absolute: as asked, else one that does not exist, named after the run and the time."""
    if options.output is not None:
        return Path(os.path.abspath(options.output))  # noqa: PTH100 (a link stays a link)
    label = file_name(options.name) if options.name else program_name(command)
    name = f"{label}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain((name,), (f"{name}-{number}" for number in count(2)))
    return next(folder for folder in (Path.cwd() / RUNS / name for name in names) if not folder.exists())


def _with_tables(run: Prepared, recording: Recording, watch: Watch, *, verdict: bool, tell: Tell) -> Outcome:
    """Read what was recorded into tables; whatever happens there, the program's exit code and ``raw/`` stay."""
    folder, options, manifest = run.plan.folder, run.options, recording.manifest
    lines: tuple[str, ...] = ()
    if recording.complete and any(entry.sources for entry in manifest.collectors):
        began = time.monotonic_ns()
        found = _read(folder, options, watch, verdict=verdict)
        lines = _worth_saying(found, manifest)
        manifest = replace(
            manifest,
            tables=found.tables,
            problems=(*manifest.problems, *found.problems),
            overhead={**manifest.overhead, "tables_ns": time.monotonic_ns() - began},
        )
        if manifest.tables and not options.keep_raw:
            drop_raw(folder)
        save(folder, manifest, tell)
    problems = (*(problem for entry in manifest.collectors for problem in entry.problems), *manifest.problems)
    once = tuple(dict.fromkeys(problems))  # several collectors may say the same of one program
    return Outcome(folder, recording.exit_code, manifest.status, manifest.tables, lines, once)


def _worth_saying(found: _Read, manifest: Manifest) -> tuple[str, ...]:
    """The first lines of the report; not its advice on what it could not judge where the run itself says why."""
    if found.judged or not found.lines:
        return found.lines
    if manifest.status == "finished":
        return () if any(entry.problems for entry in manifest.collectors) else found.lines
    how = f"signal {manifest.signal}" if manifest.signal else f"code {manifest.code}"
    return (f"The program ended with {how}, and no step of it was recorded that could be judged.",)


@dataclass(frozen=True, slots=True)
class _Read:
    tables: Mapping[str, int] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    judged: bool = True
    problems: tuple[Problem, ...] = ()


def _read(folder: Path, options: CollectOptions, watch: Watch, *, verdict: bool) -> _Read:
    """Have the tables made (:mod:`traceviz.run_tables`) and understand the answer."""
    flags = [flag for flag, given in (("--keep-private", options.keep_private), ("--verdict", verdict)) if given]
    # -P: a file `random.py` in the user's folder is none of ours.
    command = [sys.executable, "-P", "-m", "traceviz.run_tables", str(folder), *flags]
    try:
        with ending_by_request(watch):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except KeyboardInterrupt:
        return _Read(problems=(_unread("It was ended before it was complete."),))
    except OSError as error:
        return _Read(problems=(_unread(f"{error.strerror}."),))
    return understood(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


def understood(status: int, said: bytes, complained: str) -> _Read:
    """What became of the tables, from how the process that made them ended and what it said."""
    answers: dict[str, Any] = {}
    for line in said.splitlines():
        answers |= json.loads(line)
    tables, lines = answers.get("tables", {}), tuple(answers.get("lines", ()))
    if status == 0:
        return _Read(tables, lines, judged=answers.get("judged", True))
    last = complained.strip().rpartition("\n")[2][-_LAST_WORDS:]
    error = answers.get("error", {"message": last or _ended(status), "fix": ""})
    if tables:
        why = Problem("no-verdict", f"There is no verdict: {error['message']}", error["fix"])
        return _Read(tables, problems=(why,))
    return _Read(problems=(_unread(error["message"], error["fix"]),))


def _ended(status: int) -> str:
    return f"The process that reads it was killed by signal {-status}." if status < 0 else f"It ended with {status}."


def _unread(why: str, fix: str = "") -> Problem:
    message = f"What was recorded was not made into tables: {why} It is kept in {RAW}/ of the run."
    return Problem("no-tables", message, fix)
