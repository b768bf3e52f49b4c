"""Recording one run: prepare, start, wait, harvest. The manifest says at every moment how far it is.

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
from traceviz.collectors.frameworks.injection import write_injection
from traceviz.collectors.program.processes import send_to
from traceviz.collectors.program.supervise import (
    STALLED_S,
    Ending,
    Started,
    Watch,
    Wrapper,
    ending_by_request,
    start,
    supervise,
)
from traceviz.collectors.run.folder import bytes_of, explained, new_run_folder, release, room
from traceviz.collectors.run.machine import read_machine, with_gpu_memory
from traceviz.collectors.run.manifest import (
    COMMAND_LINE,
    CollectorEntry,
    Manifest,
    Status,
    entries_before,
    entry_after,
    versions_after,
    write_manifest,
)
from traceviz.collectors.run.plan import (
    CollectOptions,
    added_environment,
    program_name,
    typed_command,
    wrapped_command,
)
from traceviz.collectors.run.redact import command_text, settings
from traceviz.errors import OutputError, TracevizError
from traceviz.units import format_value

INTERRUPTED = 130
"""Exit code where the user did not wait for the program, as shells have it for Ctrl-C."""
STARTS = 3
"""How often a program is to be started that what wraps it does not start."""
FULL_BYTES = 1 << 20
"""With less free space than this, what profilers write is cut: their buffers are larger."""
_OF_KILLS = "Where nobody did, the system may have needed the memory: dmesg | grep -i oom"

Tell = Callable[[str], None]
"""Receives a line for the user."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that is known before a run starts.

    Args:
        plan: What records it, and how.
        options: What the user asked for.
        collectors: The collectors of the plan, in its order.
        states: Whether each known collector can record here.
        environment: What the program inherits.
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
        """The command to start: the user's, and what wraps it."""
        return wrapped_command(self.plan, self.collectors)

    @property
    def typed(self) -> tuple[str, ...]:
        """That command as a person would type it."""
        return typed_command(self.plan, self.collectors)

    @property
    def added(self) -> dict[str, str]:
        """Variables that the program gets beside those that it inherits."""
        return added_environment(self.plan, self.collectors, self.environment)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run that has ended.

    Args:
        manifest: What is known of it.
        exit_code: What ``traceviz collect`` ends with.
        complete: Whether everything was harvested, or, before that, may be; not so where the user ended it at once.
    """

    manifest: Manifest
    exit_code: int
    complete: bool


def record(run: Prepared, watch: Watch, tell: Tell) -> Recording:
    """Run the program of ``run`` under its collectors; ``tell`` receives what the user should know at once.

    Raises:
        OutputExistsError, OutputError: there is no place for the run folder, or too little; nothing was started.
        CommandNotFoundError, NotExecutableError: the program cannot be run; no folder is left.
    """
    began = time.monotonic_ns()
    plan, manifest = run.plan, _manifest_before(run)
    with new_run_folder(plan.folder, plan.collectors, force=run.options.force) as folder:
        with explained(plan.folder):
            write_injection(plan)
            write_manifest(plan.folder, manifest)
        _check_room(run)
        tell(_announcement(run))
        manifest = replace(manifest, overhead={"before_ns": time.monotonic_ns() - began})
        manifest, companions, ending = _run_program(run, manifest, folder.keep, watch, tell)
    save(plan.folder, manifest, tell)
    ended = Recording(manifest, INTERRUPTED if ending.killed else ending.code, complete=not ending.killed)
    return _finish(run, companions, ended, watch, tell)


def _run_program(
    run: Prepared, manifest: Manifest, keep: Callable[[], None], watch: Watch, tell: Tell
) -> tuple[Manifest, tuple[tuple[str, Companion], ...], Ending]:
    """Start the program, and wait for its end; start it again where what wraps it has failed to.

    Args:
        run: What is known of the run.
        manifest: What was written of it.
        keep: Called once the program may have begun.
        watch: The signals that are held back.
        tell: Receives what the user should know at once.

    Returns:
        The manifest with the end, what runs beside the program by name, and how that ended.
    """
    command, environment = run.command, {**run.environment, **run.added}
    wrapper = _wrapper(run)
    for attempt in range(1, STARTS + 1):
        started = start(command, environment, watch, own_session=wrapper.own_session)
        keep()
        manifest = replace(manifest, pid=started.pid, started_unix_ns=started.unix_ns)
        save(run.plan.folder, manifest, tell)
        companions, problems = _start_companions(run, started)
        ending = supervise(started, watch, wrapper)
        if attempt == STARTS or not _may_start_again(run, ending):
            break
        tell(f"{_wrapping_names(run)} ended without starting the program; starting it again")
        _clear(run, companions)
    program = wrapper.program()
    manifest = replace(_manifest_after(manifest, ending), pid=program.pid if program else started.pid)
    return replace(manifest, problems=(*problems, *_of_wrapper(run, ending))), companions, ending


def _check_room(run: Prepared) -> None:
    """Refuse what would break the program."""
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
    """What records, and what could and does not."""
    recording = ", ".join(run.plan.collectors) or "nothing but the exit code and the times"
    missing = [f"{name} ({state.words})" for name, state in run.states.items() if not state.is_ready]
    without = f"; cannot record: {', '.join(missing)}" if missing and run.options.collectors is None else ""
    cautions = (f"; {caution}" for collector in run.collectors if (caution := collector.caution(run.plan)))
    return f"recording {recording}{without}{''.join(cautions)}"


def save(folder: Path, manifest: Manifest, tell: Tell) -> None:
    """Write the manifest of a run that has started; where that fails the run goes on, and the user is told."""
    try:
        write_manifest(folder, manifest)
    except OSError as error:
        tell(f"the manifest cannot be written to {folder}: {error.strerror}.")


def _manifest_before(run: Prepared) -> Manifest:
    plan, private = run.plan, run.options.keep_private
    return Manifest(
        name=run.options.name or program_name(plan.command),
        tags=dict(run.options.tags),
        command=command_text(plan.command, keep_private=private),
        left_out=("environment",) if private else (COMMAND_LINE, "host name", "environment"),
        window=plan.window,
        rate_hz=plan.rate_hz,
        collectors=entries_before(run.states, plan.collectors),
        machine=read_machine().facts(keep_private=private),
        versions=run.versions,
        settings=settings(run.environment, run.environment.get("HOME", ""), keep_private=private),
    )


def _wrapper(run: Prepared) -> Wrapper:
    """What the collectors tell of what they wrap the program in, if any does."""
    wrapping = _wrapping(run)

    def program() -> Wrapped | None:
        told = (collector.program(run.plan) for collector in run.collectors)
        return next((wrapped for wrapped in told if wrapped is not None), None)

    def written() -> int:
        return sum(bytes_of(path) for name in wrapping for path in run.plan.raw(name).rglob("*"))

    return Wrapper(program, written, own_session=bool(wrapping))


def _wrapping(run: Prepared) -> tuple[str, ...]:
    """Names of the collectors whose processes run around the program."""
    return tuple(collector.name for collector in run.collectors if collector.own_session)


def _wrapping_names(run: Prepared) -> str:
    return " and ".join(_wrapping(run))


def _may_start_again(run: Prepared, ending: Ending) -> bool:
    """Whether the program was never started, which nobody asked for, and might be."""
    if ending.status == 0 or ending.interrupted:
        return False
    return any(collector.may_start_again(run.plan) for collector in run.collectors)


def _clear(run: Prepared, companions: Sequence[tuple[str, Companion]]) -> None:
    """Leave nothing of a start that failed."""
    for pair in companions:
        _stopped(*pair)
    _end_helpers(run)
    for name in run.plan.collectors:
        shutil.rmtree(run.plan.raw(name), ignore_errors=True)
        run.plan.raw(name).mkdir(parents=True, exist_ok=True)


def _of_wrapper(run: Prepared, ending: Ending) -> tuple[Problem, ...]:
    names = _wrapping_names(run)
    if ending.lost is not None:
        message = f"Signal {ending.lost} ended {names} while the program went on: what it did from then on is missing."
        return (Problem("wrapper-killed", message, _OF_KILLS if ending.lost == signal.SIGKILL else ""),)
    if ending.stalled:
        message = f"Once the program had ended, {names} did nothing any more for {STALLED_S:g} s, and was ended."
        return (Problem("wrapper-stalled", message, "A full disk is one reason: df -h shows it."),)
    return ()


def _start_companions(run: Prepared, started: Started) -> tuple[tuple[tuple[str, Companion], ...], tuple[Problem, ...]]:
    """What runs beside the program; a companion that cannot be started is a problem, and no reason to stop it."""
    companions = []
    problems = []
    for collector in run.collectors:
        try:
            companion = collector.start(run.plan, started.pid)
        except (OSError, TracevizError) as error:
            problems.append(Problem("not-started", f"{collector.name} could not be started: {error}"))
        else:
            if companion is not None:
                companions.append((collector.name, companion))
    return tuple(companions), tuple(problems)


def _manifest_after(manifest: Manifest, ending: Ending) -> Manifest:
    return replace(
        manifest,
        status=_status(ending),
        started_unix_ns=ending.started_unix_ns,
        ended_unix_ns=ending.ended_unix_ns,
        duration_ns=ending.duration_ns,
        code=ending.code,
        signal=-ending.status if ending.status < 0 else None,
        usage=ending.usage,
    )


def _status(ending: Ending) -> Status:
    if ending.interrupted:
        return "interrupted"
    if ending.status < 0:
        return "killed"
    return "failed" if ending.status else "finished"


def _finish(
    run: Prepared, companions: Sequence[tuple[str, Companion]], ended: Recording, watch: Watch, tell: Tell
) -> Recording:
    """Stop the companions, and harvest unless the user does not wait for that."""
    folder, manifest, complete = run.plan.folder, ended.manifest, False
    try:
        with ending_by_request(watch):
            problems = tuple(problem for pair in companions for problem in _stopped(*pair))
            manifest = replace(manifest, problems=(*manifest.problems, *problems))
            if ended.complete:
                manifest = _harvested(run, manifest)
                complete = True
    except KeyboardInterrupt:
        tell("not waiting for what was recorded")
    _end_helpers(run)
    manifest = replace(manifest, problems=(*manifest.problems, *_of_room(folder)))
    if not complete:
        unread = Problem("not-harvested", "The recording was ended before what was recorded had been collected.")
        manifest = replace(manifest, problems=(*manifest.problems, unread))
    release(folder)
    save(folder, manifest, tell)
    return Recording(manifest, ended.exit_code, complete)


def _of_room(folder: Path) -> tuple[Problem, ...]:
    """What to say of a disk that is full when the program has ended."""
    free = room(folder)
    if free >= FULL_BYTES:
        return ()
    message = f"The disk is full: {format_value(free, 'bytes')} are free where the run is. Recordings may be cut."
    return (Problem("disk-full", message, "Make room, or choose another place with -o, and record again."),)


def _stopped(name: str, companion: Companion) -> tuple[Problem, ...]:
    try:
        companion.stop()
    except (OSError, TracevizError) as error:
        return (Problem("not-stopped", f"{name} did not end in order: {error}"),)
    return ()


def _end_helpers(run: Prepared) -> None:
    """See that nothing of ours outlives the recording."""
    for collector in run.collectors:
        for pid in collector.helpers(run.plan):
            send_to(pid, signal.SIGKILL)


def _harvested(run: Prepared, manifest: Manifest) -> Manifest:
    began = time.monotonic_ns()
    by_name = {collector.name: collector for collector in run.collectors}
    harvest = partial(_harvest, run.plan)
    entries = tuple(
        harvest(by_name[entry.name], entry) if entry.name in by_name else entry for entry in manifest.collectors
    )
    return replace(
        manifest,
        collectors=entries,
        problems=(*manifest.problems, *_unused(run, entries)),
        machine={**manifest.machine, "gpus": with_gpu_memory(read_machine()).facts()["gpus"]},
        versions=versions_after(manifest.versions, entries),
        overhead={**manifest.overhead, "harvest_ns": time.monotonic_ns() - began},
    )


def _unused(run: Prepared, entries: Sequence[CollectorEntry]) -> tuple[Problem, ...]:
    """What was asked for by name, and found nothing to record."""
    asked = run.options.collectors or ()
    names = [entry.name for entry in entries if entry.state == "unused" and entry.name in asked]
    if not names:
        return ()
    message = f"Nothing was recorded with {' and '.join(names)}: the program made no use of what that is for."
    return (Problem("unused", message, "Record with --with auto, which takes what there is."),)


def _harvest(plan: Plan, collector: Collector, entry: CollectorEntry) -> CollectorEntry:
    try:
        found = collector.harvest(plan)
    except (OSError, ValueError, TracevizError) as error:
        found = Harvest(problems=(Problem("not-harvested", f"What {entry.name} left cannot be collected: {error}"),))
    return entry_after(entry, found, plan.folder)
