"""Record a run of a program: ``traceviz collect``, for programs and notebooks.

>>> outcome = collect(CollectOptions(), ["python", "train.py"])
>>> print(traceviz.to_text(traceviz.report_on(outcome.folder)))
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import ClassVar

from traceviz.collectors import registry
from traceviz.collectors.base import Problem
from traceviz.collectors.program.processes import Watch, watched_signals
from traceviz.collectors.program.start import find_program
from traceviz.collectors.run.folder import drop_raw
from traceviz.collectors.run.manifest import Manifest
from traceviz.collectors.run.plan import RUNS, CollectOptions, file_name, make_plan, program_name
from traceviz.collectors.run.record import Prepared, Progress, Recording, Tell, no_progress, record, save
from traceviz.collectors.run.tables import Tables, make_tables
from traceviz.core.errors import UsageError
from traceviz.core.notebook_repr import Shown
from traceviz.version import __version__

__all__ = ["CollectOptions", "Outcome", "collect", "prepare", "run_folder"]


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Shown):
    """A run that was recorded.

    Args:
        folder: The run folder.
        exit_code: The program's exit code; 128 + n for signal n.
        status: ``finished``, ``failed``, ``killed``, ``interrupted`` or ``timed-out``.
        tables: Rows of each recorded table; empty if nothing was recorded or it could not be read.
        verdict: The first lines of the report, if one was requested and something was recorded.
        problems: Problems of the recording that the first lines do not mention.
    """

    shown_as: ClassVar[str] = "outcome"
    folder: Path
    exit_code: int
    status: str
    tables: Mapping[str, int] = field(default_factory=dict)
    verdict: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        return f"Outcome({str(self.folder)!r}, {self.status}, exit code {self.exit_code})"


def silent(line: str) -> None:
    """Drop the line: a :data:`~traceviz.collectors.run.record.Tell` that shows nothing."""


def prepare(options: CollectOptions, command: Sequence[str]) -> Prepared:
    """Return the plan of :func:`collect`. Nothing is created or started.

    Raises:
        TracevizError: as :func:`collect`, except for errors that only a start shows.
    """
    words = tuple(command)
    if not words:
        raise UsageError("There is no command to run.", fix="For example: traceviz collect -- python train.py")
    find_program(words[0], os.environ)
    states = {collector.name: registry.state_of(collector) for collector in registry.COLLECTORS.all()}
    plan = make_plan(options, words, run_folder(options, words), states)
    collectors = tuple(collector for collector in registry.COLLECTORS.all() if collector.name in plan.collectors)
    return Prepared(plan, options, collectors, states, dict(os.environ), {"traceviz": __version__})


def collect(
    options: CollectOptions,
    command: Sequence[str],
    *,
    verdict: bool = False,
    tell: Tell = silent,
    progress: Progress = no_progress,
) -> Outcome:
    """Run ``command`` and record it into a run folder, with this process's stdin, stdout and stderr.

    Signals that ask this process to end go to the program, so call it from the main thread.

    Args:
        options: What to record, and where to write it.
        command: The program and its arguments.
        verdict: True to analyse what was recorded.
        tell: Receives lines for the user as they occur.
        progress: Receives progress after the program has ended: a stage, how much is done, and of how much.

    Raises:
        UsageError: the options contradict each other, or there is no command.
        MissingToolError: a collector that the user named cannot record here.
        CommandNotFoundError, NotExecutableError: the command cannot be run; nothing was created.
        OutputExistsError, OutputError: there is no place for the run folder; nothing was started.
    """
    run = prepare(options, command)
    with watched_signals() as watch:
        recording = record(run, watch, tell, progress)
        return _with_tables(run, recording, watch, verdict=verdict, tell=tell, progress=progress)


def run_folder(options: CollectOptions, command: tuple[str, ...]) -> Path:
    """Return the absolute run folder: the user's, else a new one, named after the run and the time."""
    if options.output is not None:
        return Path(os.path.abspath(options.output))  # noqa: PTH100 (a link stays a link)
    label = file_name(options.name) if options.name else program_name(command)
    name = f"{label}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain((name,), (f"{name}-{number}" for number in count(2)))
    return next(folder for folder in (Path.cwd() / RUNS / name for name in names) if not folder.exists())


def _with_tables(
    run: Prepared, recording: Recording, watch: Watch, *, verdict: bool, tell: Tell, progress: Progress
) -> Outcome:
    """Make tables of the recordings; a failure here leaves the program's exit code and ``raw/`` as they are."""
    folder, options, manifest = run.plan.folder, run.options, recording.manifest
    lines: tuple[str, ...] = ()
    if recording.complete and any(entry.sources for entry in manifest.collectors):
        began = time.monotonic_ns()
        tables = make_tables(folder, options, watch, verdict=verdict, progress=progress)
        lines = _lines_to_show(tables, manifest)
        manifest = replace(
            manifest.with_problems(tables.problems),
            tables=tables.rows,
            verdict=tables.verdict,
            overhead={**manifest.overhead, "tables_ns": time.monotonic_ns() - began},
        )
        if manifest.tables and tables.whole and not options.keep_raw:  # what could not be read exists only there
            drop_raw(folder)
        save(folder, manifest, tell)
    problems = (*(problem for entry in manifest.collectors for problem in entry.problems), *manifest.problems)
    said = " ".join(lines)  # a verdict on a run without steps explains why there are none
    distinct = dict.fromkeys(problems)  # several collectors may report the same problem of one program
    left = tuple(problem for problem in distinct if problem.message.rstrip(".") not in said)
    return Outcome(folder, recording.exit_code, manifest.status, manifest.tables, lines, left)


def _lines_to_show(tables: Tables, manifest: Manifest) -> tuple[str, ...]:
    """Return the first lines of the report, without advice on missing steps if the run itself explains them."""
    if tables.judged or not tables.lines:
        return tables.lines
    if manifest.status == "finished":
        return () if any(entry.problems for entry in manifest.collectors) else tables.lines
    how = f"with signal {manifest.signal}" if manifest.signal else f"with code {manifest.code}"
    if manifest.status == "timed-out":
        how = "when its time was over"
    return (f"The program ended {how}, and no step of it was recorded that could be judged.",)
