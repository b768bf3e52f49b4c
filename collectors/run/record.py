"""Recording one run: prepare, start, wait, harvest. The manifest always holds the current state.

::

    folder, raw/NAME, inject.json -> manifest "running" -> the program and its companions
        -> it ends -> manifest with its exit -> harvest of each collector -> manifest with sources
"""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from traceviz.collectors.base import Availability, Collector, Companion, Harvest, Plan, Problem, Wrapped
from traceviz.collectors.frameworks.harvest import NOT_INJECTED, read_versions
from traceviz.collectors.frameworks.injection import (
    INJECTED,
    LOST,
    hooks_of,
    lost_hooks,
    through_env,
    write_injection,
)
from traceviz.collectors.program.processes import Watch, ending_by_request, send_to
from traceviz.collectors.program.pythons import watching
from traceviz.collectors.program.start import start
from traceviz.collectors.program.supervise import STALLED_S, Ending, Wrapper, supervise
from traceviz.collectors.run.folder import RAW, bytes_below, new_run_folder, release, room
from traceviz.collectors.run.machine import read_machine, with_gpu_memory
from traceviz.collectors.run.manifest import (
    COMMAND_LINE,
    CollectorEntry,
    Manifest,
    Status,
    command_text,
    entries_before,
    entry_after,
    settings,
    versions_after,
    write_manifest,
)
from traceviz.collectors.run.outcome import ending_of, oom_kills
from traceviz.collectors.run.plan import CollectOptions, added_environment, program_name, typed_command, wrapped_command
from traceviz.core.errors import OutputError, TracevizError
from traceviz.core.files import explained
from traceviz.core.units import format_value
from traceviz.untrusted.errors import foreign_errors_in_words


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can be started.

    Args:
        plan: The plan of the run.
        options: The user's options.
        collectors: The collectors of the plan, in its order.
        states: The availability of each known collector.
        environment: The environment that the program inherits.
        versions: Versions that are known already: our own.
    """

    plan: Plan
    options: CollectOptions
    collectors: tuple[Collector, ...]
    states: Mapping[str, Availability]
    environment: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def command(self) -> tuple[str, ...]:
        """The command to start: the user's, with its wrapper."""
        command = through_env(self.plan.command, self.added, self.environment)
        return wrapped_command(replace(self.plan, command=command), self.collectors)

    @property
    def typed(self) -> tuple[str, ...]:
        """That command as a user would type it."""
        return typed_command(self.plan, self.collectors)

    @property
    def added(self) -> dict[str, str]:
        """Variables for the program in addition to those that it inherits."""
        return added_environment(self.plan, self.collectors, self.environment)

    @property
    def wrapping(self) -> tuple[str, ...]:
        """Names of the collectors whose processes run around the program."""
        return tuple(collector.name for collector in self.collectors if collector.own_session)

    @property
    def wrapper(self) -> Wrapper:
        """The wrapper that the collectors put around the program, if any."""
        return Wrapper(self._find_program, self._bytes_written, own_session=bool(self.wrapping))

    def _find_program(self) -> Wrapped | None:
        programs = (collector.program(self.plan) for collector in self.collectors)
        return next((program for program in programs if program is not None), None)

    def _bytes_written(self) -> int:
        return sum(bytes_below(self.plan.raw(name)) for name in self.wrapping)

    def may_start_again(self, ending: Ending) -> bool:
        """Return whether the wrapper failed to start the program, and another try may succeed."""
        if ending.status == 0 or ending.interrupted or ending.timed_out:
            return False
        return any(collector.may_start_again(self.plan) for collector in self.collectors)


TIMED_OUT = 124
"""Exit code if the program's time was over, as of ``timeout``."""
INTERRUPTED = 130
"""Exit code if the user did not wait for the program, as of shells for Ctrl-C."""
STARTS = 3
"""Number of attempts to start if the wrapper does not start the program."""
FULL_BYTES = 1 << 20
"""With less free space than this, recordings are truncated: the buffers of profilers are larger."""
NOT_HARVESTED = Problem(
    "not-harvested",
    "The recording was ended before what was recorded had been collected.",
    "What is in raw/ of the run stays: traceviz report reads it.",
)
_MEMORY_HINT = "Where nobody did, the system may have needed the memory: dmesg | grep -i oom"

Tell = Callable[[str], None]
"""Receives a line for the user."""
Progress = Callable[[str, int, int | None], None]
"""Receives progress after the program has ended: a stage, how much of it is done, and of how much."""


def no_progress(stage: str, done: int, total: int | None) -> None:
    """Drop the progress."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A run that has ended.

    Args:
        manifest: Its manifest.
        exit_code: The exit code of ``traceviz collect``.
        complete: True if everything was harvested; before the harvest, true unless the user ended the run at once.
    """

    manifest: Manifest
    exit_code: int
    complete: bool


def record(run: Prepared, watch: Watch, tell: Tell, progress: Progress = no_progress) -> Recording:
    """Run the program of ``run`` under its collectors.

    Args:
        run: The run.
        watch: The signals that are blocked.
        tell: Receives lines for the user as they occur.
        progress: Receives progress after the program has ended.

    Raises:
        OutputExistsError, OutputError: there is no place or too little space for the run folder; nothing was started.
        CommandNotFoundError, NotExecutableError: the program cannot be run; no folder is left.
    """
    began = time.monotonic_ns()
    plan, manifest = run.plan, manifest_before(run)
    with new_run_folder(plan.folder, plan.collectors, force=run.options.force) as folder:
        with explained(plan.folder):
            write_injection(plan)
            write_manifest(plan.folder, manifest)
        check_room(run)
        tell(_announcement(run))
        manifest = replace(manifest, overhead={"before_ns": time.monotonic_ns() - began})
        manifest, companions, ending = _run_program(run, manifest, folder.keep, watch, tell, progress=progress)
    save(plan.folder, manifest, tell)
    exit_code = TIMED_OUT if ending.timed_out else ending.code
    ended = Recording(manifest, INTERRUPTED if ending.killed else exit_code, complete=not ending.hurried)
    progress("collecting what was recorded", 0, None)
    return _finish(run, companions, ended, watch, tell)


def _run_program(
    run: Prepared, manifest: Manifest, keep: Callable[[], None], watch: Watch, tell: Tell, *, progress: Progress
) -> tuple[Manifest, tuple[tuple[str, Companion], ...], Ending]:
    """Start the program and wait for its end; start it again if its wrapper failed to.

    Args:
        run: The run.
        manifest: Its manifest as it was last written.
        keep: Called once the program may have started.
        watch: The signals that are blocked.
        tell: Receives lines for the user as they occur.
        progress: Receives progress after the program has ended.

    Returns:
        The manifest with the end, the companions by name, and how the program ended.
    """
    command, environment = run.command, {**run.environment, **run.added}
    wrapper, kills = run.wrapper, oom_kills()
    for attempt in range(1, STARTS + 1):
        started = start(command, environment, watch, own_session=wrapper.own_session)
        keep()
        manifest = replace(manifest, pid=started.pid, started_unix_ns=started.unix_ns)
        save(run.plan.folder, manifest, tell)
        companions, problems = start_companions(run, started.pid)
        with watching(hooks_of(run.plan), partial(_roots, started.pid, wrapper)) as pythons:
            ending = supervise(
                started,
                watch,
                wrapper,
                run.options.limit_s,
                lambda: progress(f"waiting for {' and '.join(run.wrapping)}", 0, None),
            )
        if attempt == STARTS or not run.may_start_again(ending):
            break
        tell(f"{' and '.join(run.wrapping)} ended without starting the program; starting it again")
        # Remove everything of the failed start.
        stop_companions(companions)
        _end_helpers(run)
        for name in run.plan.collectors:
            shutil.rmtree(run.plan.raw(name), ignore_errors=True)
            run.plan.raw(name).mkdir(parents=True, exist_ok=True)
    program = wrapper.program()
    starved = oom_kills() > kills
    manifest = replace(
        _manifest_after(manifest, ending, run.options.limit_s, starved=starved),
        pid=program.pid if program else started.pid,
    )
    lost = lost_hooks(run.plan, pythons.unhooked.items())
    return replace(manifest, problems=(*lost, *problems, *_problems_of_wrapper(run, ending))), companions, ending


def _roots(pid: int, wrapper: Wrapper) -> tuple[int, ...]:
    """Return the process that was started, and the program that it wraps, which need not descend from it."""
    program = wrapper.program()
    return (pid,) if program is None else (pid, program.pid)


def check_room(run: Prepared) -> None:
    """Refuse to run if too little space would crash the program."""
    free = room(run.plan.folder)
    for collector in run.collectors:
        if free < collector.room_bytes:
            raise OutputError(
                f"{run.plan.folder} has too little room for {collector.name}: {format_value(free, 'bytes')} are free, "
                f"and {format_value(collector.room_bytes, 'bytes')} are needed.",
                f"The program itself would crash once {collector.name} finds no room.",
                f"Choose another place with -o, or leave {collector.name} out with --with.",
            )


def _announcement(run: Prepared) -> str:
    """Return the line that names the collectors that record, and those that cannot."""
    recording = ", ".join(run.plan.collectors) or "nothing but the exit code and the times"
    missing = [f"{name} ({state.words})" for name, state in run.states.items() if not state.is_ready]
    without = f"; cannot record: {', '.join(missing)}" if missing and run.options.collectors is None else ""
    cautions = (f"; {caution}" for collector in run.collectors if (caution := collector.caution(run.plan)))
    return f"recording {recording}{without}{''.join(cautions)}"


def save(folder: Path, manifest: Manifest, tell: Tell) -> None:
    """Write the manifest of a started run; if that fails, the run continues and ``tell`` gets a line."""
    try:
        write_manifest(folder, manifest)
    except OSError as error:
        tell(f"the manifest cannot be written to {folder}: {error.strerror}.")


def manifest_before(run: Prepared) -> Manifest:
    """Return the manifest of a run that has not started."""
    plan, private = run.plan, run.options.keep_private
    return Manifest(
        name=run.options.name or program_name(plan.command),
        tags=dict(run.options.tags),
        command=command_text(plan.command, run.environment, keep_private=private),
        left_out=("environment",) if private else (COMMAND_LINE, "host name", "environment"),
        window=plan.window,
        rate_hz=plan.rate_hz,
        collectors=entries_before(run.states, plan.collectors),
        machine=read_machine().facts(keep_private=private),
        versions=run.versions,
        settings=settings(run.environment, run.environment.get("HOME", ""), keep_private=private),
    )


def _problems_of_wrapper(run: Prepared, ending: Ending) -> tuple[Problem, ...]:
    names = " and ".join(run.wrapping)
    if ending.lost is not None:
        message = f"Signal {ending.lost} ended {names} while the program went on: what it did from then on is missing."
        return (Problem("wrapper-killed", message, _MEMORY_HINT if ending.lost == signal.SIGKILL else ""),)
    if ending.stalled:
        return (_stalled(run, names, ending.stalled),)
    return ()


def _stalled(run: Prepared, names: str, left: tuple[str, ...]) -> Problem:
    """Return the problem of a stalled wrapper, with the reason: a full disk, else idle processes and the last line."""
    free = room(run.plan.folder)
    processes = ", ".join(dict.fromkeys(left))
    why = f"The disk is full: {format_value(free, 'bytes')} are free."
    fix = "Make room, or choose another place with -o."
    if free >= FULL_BYTES:
        said = filter(None, (collector.last_words(run.plan) for collector in run.collectors))
        why = " ".join((f"These processes waited, and computed and wrote nothing: {processes}.", *said))
        fix = f"To record without it, leave {names} out of --with."
    message = f"{names} did not end within {STALLED_S:g} s of the program's end, and was given up. {why}"
    return Problem("wrapper-stalled", message, fix)


def start_companions(run: Prepared, pid: int) -> tuple[tuple[tuple[str, Companion], ...], tuple[Problem, ...]]:
    """Start the companions of the program; a failed start is a problem, but does not stop the program."""
    companions = []
    problems = []
    for collector in run.collectors:
        try:
            companion = collector.start(run.plan, pid)
        except (OSError, TracevizError) as error:
            problems.append(Problem("not-started", f"{collector.name} could not be started: {error}"))
        else:
            if companion is not None:
                companions.append((collector.name, companion))
    return tuple(companions), tuple(problems)


def _manifest_after(manifest: Manifest, ending: Ending, limit_s: float | None, *, starved: bool) -> Manifest:
    number = -ending.status if ending.status < 0 else None
    status: Status = "failed" if ending.status else "finished"
    if ending.interrupted:
        status = "interrupted"
    elif ending.timed_out:
        status = "timed-out"
    elif number is not None:
        status = "killed"
    return replace(
        manifest,
        status=status,
        ending=ending_of(status, code=ending.code, number=number, limit_s=limit_s, starved=starved),
        started_unix_ns=ending.started_unix_ns,
        ended_unix_ns=ending.ended_unix_ns,
        duration_ns=ending.duration_ns,
        code=ending.code,
        signal=number,
        usage=ending.usage,
    )


def _finish(
    run: Prepared, companions: Sequence[tuple[str, Companion]], ended: Recording, watch: Watch, tell: Tell
) -> Recording:
    """Stop the companions, and harvest unless the user does not wait for that."""
    folder, manifest, complete = run.plan.folder, ended.manifest, False
    try:
        with ending_by_request(watch):
            manifest = manifest.with_problems(stop_companions(companions))
            if ended.complete:
                manifest = harvest_all(run, manifest)
                complete = True
    except KeyboardInterrupt:
        tell("not waiting for what was recorded")
    _end_helpers(run)
    free = room(folder)
    if free < FULL_BYTES:
        message = f"The disk is full: {format_value(free, 'bytes')} are free where the run is. Recordings may be cut."
        fix = "Make room, or choose another place with -o, and record again."
        manifest = manifest.with_problems((Problem("disk-full", message, fix),))
    if not complete:
        manifest = manifest.with_problems((NOT_HARVESTED,))
    release(folder)
    save(folder, manifest, tell)
    return Recording(manifest, ended.exit_code, complete)


def stop_companions(companions: Sequence[tuple[str, Companion]]) -> tuple[Problem, ...]:
    """Stop the companions of the program; one that fails is a problem, and the others are stopped too."""
    problems = []
    for name, companion in companions:
        try:
            companion.stop()
        except (OSError, TracevizError) as error:
            problems.append(Problem("not-stopped", f"{name} did not end in order: {error}"))
    return tuple(problems)


def _end_helpers(run: Prepared) -> None:
    """End helper processes, so that none of ours outlives the recording."""
    for collector in run.collectors:
        for pid in collector.helpers(run.plan):
            send_to(pid, signal.SIGKILL)


def harvest_all(run: Prepared, manifest: Manifest) -> Manifest:
    """Return the manifest with the results of each collector."""
    began = time.monotonic_ns()
    by_name = {collector.name: collector for collector in run.collectors}
    entries = tuple(
        _harvest(run.plan, by_name[entry.name], entry) if entry.name in by_name else entry
        for entry in manifest.collectors
    )
    if any(problem.code == LOST for problem in manifest.problems):  # this problem includes that no process was reached
        entries = tuple(
            replace(entry, problems=tuple(problem for problem in entry.problems if problem.code != NOT_INJECTED))
            for entry in entries
        )
    return replace(
        manifest.with_problems(_unused(run, entries, manifest.problems)),
        collectors=entries,
        machine={**manifest.machine, "gpus": with_gpu_memory(read_machine()).facts()["gpus"]},
        versions=versions_after({**manifest.versions, **read_versions(run.plan.folder / RAW, manifest.pid)}, entries),
        overhead={**manifest.overhead, "harvest_ns": time.monotonic_ns() - began},
    )


def _unused(run: Prepared, entries: Sequence[CollectorEntry], problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problem of collectors that the user named and that had nothing to record."""
    named = run.options.collectors or ()
    lost = INJECTED if any(problem.code == LOST for problem in problems) else ()  # this explains why these have nothing
    names = [entry.name for entry in entries if entry.state == "unused" and entry.name in named]
    names = [name for name in names if name not in lost]
    if not names:
        return ()
    message = f"Nothing was recorded with {' and '.join(names)}: the program made no use of what that is for."
    return (Problem("unused", message, "Record with --with auto, which takes what there is."),)


def _harvest(plan: Plan, collector: Collector, entry: CollectorEntry) -> CollectorEntry:
    try:
        with foreign_errors_in_words("A file cannot be read."):
            harvest = collector.harvest(plan)
    except (OSError, ValueError, TracevizError) as error:
        harvest = Harvest(problems=(Problem("not-harvested", f"What {entry.name} left cannot be collected: {error}"),))
    return entry_after(entry, harvest, plan.folder)
