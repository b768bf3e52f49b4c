"""Recording of one run of a sweep and of how it ended. It always leaves a run folder with a manifest."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from traceviz.collectors.run.manifest import KIND, VERSION, command_text, write_document
from traceviz.collectors.run.outcome import OUT_OF_MEMORY, RunEnding, ending_of
from traceviz.collectors.run.plan import program_name
from traceviz.core.errors import OutputError
from traceviz.core.files import check_folder_free, explained
from traceviz.parsers.run.layout import is_run_folder, manifest_document
from traceviz.parsers.run.manifest import Ending
from traceviz.sweep.child import Child, collect_command, end_run, last_lines, program_lines, wait_for
from traceviz.sweep.orders import SWEEP, Order

LOG = "output.log"
"""File in the run folder with the run's stdout and stderr."""
_OWN_FAILURE = 125
_POLL_S = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A run for another process or machine.

    Args:
        order: The run.
        stop: A file. Once it exists, the run is interrupted, or does not start.
    """

    order: Order
    stop: Path


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of a run.

    Args:
        outcome: ``finished``, ``failed``, ``killed``, ``interrupted`` or ``timed-out``.
        ended: The same as text: ``crashed: out of memory``.
        duration_s: Time that the program ran; if it did not start, the time until that failed.
        elapsed_s: Time of the whole run, including the recording's time before and after.
        last_line: The last line of the program, if it did not finish.
    """

    outcome: str
    ended: str
    duration_s: float
    elapsed_s: float
    last_line: str = ""

    @property
    def is_kept(self) -> bool:
        """True if this is a result; an interrupted run is none."""
        return self.outcome != "interrupted"


def record_run(job: Job) -> Result:
    """Record one run from start to end, in any process; see :meth:`traceviz.archive.runners.base.Runner.map`.

    Raises:
        OutputError: the run folder cannot be written.
    """
    order = job.order
    if job.stop.exists():
        return Result("interrupted", "interrupted", 0.0, 0.0)
    child = start_run(order)
    while (code := child.ended()) is None:
        wait_for((child,), _POLL_S)
        if not child.asked_to_end and job.stop.exists():
            child.ask_to_end()
    return finish_run(order, child, code)


def start_run(order: Order) -> Child:
    """Start a run; first end the processes of an earlier, interrupted one.

    Raises:
        OutputExistsError: there is a folder of that name that is not a run.
        OutputError: the folder of the runs cannot be made, or the system starts no further process.
    """
    task = order.task
    end_run(order.folder)
    check_folder_free(order.folder, force=True, replaceable=is_run_folder)
    with explained(order.folder):
        order.folder.parent.mkdir(parents=True, exist_ok=True)
    command = collect_command(collect_options(order), order.folder, task.command)
    try:
        return Child(command, {**os.environ, **task.environment}, order.directory, order.folder, task.limit_s)
    except OSError as error:  # command too long, folder missing, or too many processes
        raise OutputError(f"{order.label} cannot be started.", f"{error.strerror}.") from error


def collect_options(order: Order) -> tuple[str, ...]:
    """Return the options of ``traceviz collect`` for a run; those of the sweep file take precedence."""
    task = order.task
    limit = () if task.limit_s is None else ("--time-limit", f"{task.limit_s:g}s")
    tags = (word for tag, value in task.tags.items() for word in ("--tag", f"{tag}={value}"))
    return ("--no-report", *limit, *tags, *task.collect)


def finish_run(order: Order, child: Child, code: int) -> Result:
    """Record how a run ended, and its output.

    Args:
        order: The run.
        child: Its process, which has ended.
        code: The result of :meth:`.child.Child.ended`.

    Raises:
        OutputError: the run folder cannot be written.
    """
    end_run(order.folder)
    text = child.output.text()
    with explained(order.folder):
        order.folder.mkdir(parents=True, exist_ok=True)
        document = manifest_document(order.folder) or _manifest_of_nothing(order, child)
        _settle(document, child, code)
        ending = _ending(document, order, code, text)
        document["ending"] = asdict(ending)
        document[SWEEP] = {"name": order.sweep, "digest": order.digest, "elapsed_ns": round(child.elapsed_s * 1e9)}
        (order.folder / LOG).write_text(text, encoding="utf-8", errors="replace")
        write_document(order.folder, document)
    words = Ending(ending.outcome, ending.reason).in_words
    duration_s = (document.get("duration_ns") or 0) / 1e9
    return Result(ending.outcome, words, duration_s, child.elapsed_s, "".join(ending.last_lines[-1:]))


def _settle(document: dict[str, Any], child: Child, code: int) -> None:
    """Complete the manifest of a run whose ``traceviz collect`` ended before it could do so."""
    if document.get("status") not in {"running", None}:
        return
    now = time.time_ns()
    document["status"] = "interrupted" if child.asked_to_end else "killed" if code < 0 else "failed"
    document["exit"] = {"code": 128 - code if code < 0 else code, "signal": -code if code < 0 else None}
    document["ended_unix_ns"] = now
    document["duration_ns"] = round(child.elapsed_s * 1e9)


def _ending(document: Mapping[str, Any], order: Order, code: int, text: str) -> RunEnding:
    """Return how a run ended, from its manifest and its output.

    Only ``traceviz collect`` can report that the system lacked memory, and only the output names an exception.
    """
    status, known, end = str(document.get("status")), _member(document, "ending"), _member(document, "exit")
    if code == _OWN_FAILURE and not known:
        return RunEnding(status, "recording failed", last_lines(text.splitlines()))
    lines = program_lines(text)
    kept = () if status == "finished" else last_lines(lines)
    if known.get("reason") == OUT_OF_MEMORY:
        return RunEnding(status, OUT_OF_MEMORY, kept)
    ending = ending_of(
        status, code=end.get("code"), number=end.get("signal"), limit_s=order.task.limit_s, output="\n".join(lines)
    )
    return replace(ending, last_lines=kept)


def _member(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    member = document.get(name)
    return member if isinstance(member, dict) else {}


def _manifest_of_nothing(order: Order, child: Child) -> dict[str, Any]:
    """Return the manifest of a run that was not recorded: the command or ``traceviz collect`` could not start."""
    task = order.task
    return {
        "kind": KIND,
        "version": VERSION,
        "name": program_name(task.command),
        "tags": dict(task.tags),
        "command": command_text(task.command, {**os.environ, **task.environment}, keep_private=False),
        "left_out": ["command line", "host name", "environment"],
        "started_unix_ns": time.time_ns() - round(child.elapsed_s * 1e9),
    }
