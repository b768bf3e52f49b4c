"""Read the results of the hooks inside the program: one folder per process with status, problems and recordings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from traceviz.collectors.base import Harvest, Plan, Problem, Window
from traceviz.untrusted.json_documents import document_of, read_object

NOT_INJECTED = "not-injected"
"""Code of the problem that no process was reached, for any reason."""
STATUS, PROBLEMS, PROCESSES, VERSIONS = "status.json", "problems.jsonl", "processes.jsonl", "versions.jsonl"
XPLANE = "*.xplane.pb"

WAITING, RECORDING, NOT_STARTED = "waiting", "recording", "not-started"
"""States of a process without a recording: killed before its window, killed in its window, ended before its window."""

SHORTENED = (
    *("steps_recorded", "first_step", "source", "version", "pid", "state", "start_cost_ns", "stop_cost_ns"),
    *("trial_cost_ns", "events_per_step", "ended_by", "accelerators"),
)
"""The facts in the manifest about each process."""


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The results of one process.

    Args:
        folder: Its folder below the collector's.
        status: Its last status.
        problems: What went wrong in it.
    """

    folder: Path
    status: Mapping[str, Any]
    problems: tuple[Problem, ...]


def read_processes(folder: Path) -> tuple[ProcessRecord, ...]:
    """Return the results of each process below a collector's folder, in order of the folders' names."""
    files = sorted({path.parent for name in (STATUS, PROBLEMS) for path in folder.rglob(name)})
    return tuple(ProcessRecord(own, read_object(own / STATUS), read_problems(own / PROBLEMS)) for own in files)


def read_versions(raw: Path, pid: int | None) -> dict[str, str]:
    """Return versions of Python and of the frameworks in the program, as the hooks noted them below the folder ``raw``.

    Python's version is that of process ``pid``, else of the first process that had the hooks.
    """
    processes = list(read_documents(raw / PROCESSES))
    own = [stated for stated in processes if stated.get("pid") == pid] or processes
    python = {"python": own[0]["python"]} if own and isinstance(own[0].get("python"), str) else {}
    noted = [
        stated["versions"] for stated in read_documents(raw / VERSIONS) if isinstance(stated.get("versions"), dict)
    ]
    known = {str(name): version for versions in noted for name, version in versions.items() if isinstance(version, str)}
    return python | known


def read_documents(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file with one per line; truncated lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError):
            document = document_of(line)
            if isinstance(document, dict):
                yield document


def reached_pids(raw: Path) -> set[int]:
    """Return the processes that have loaded the hooks, as they noted below the folder ``raw``."""
    return {pid for stated in read_documents(raw / PROCESSES) if isinstance(pid := stated.get("pid"), int)}


def read_problems(path: Path) -> tuple[Problem, ...]:
    """Return the problems in a file with one per line; truncated lines are skipped."""
    return tuple(
        Problem(str(stated["code"]), str(stated["message"]), str(stated.get("fix", "")))
        for stated in read_documents(path)
        if {"code", "message"} <= stated.keys()
    )


def harvest_files(plan: Plan, name: str, patterns: Iterable[str]) -> Harvest:
    """Return the results of a collector's processes.

    Args:
        plan: The plan of the run.
        name: The collector.
        patterns: File names of its recordings, the best first. Of two recordings in one folder with the same stem, only
            the first counts.
    """
    folder = plan.raw(name)
    processes = read_processes(folder)
    files = [path for pattern in patterns for path in sorted(folder.rglob(pattern)) if path.stat().st_size]
    first: dict[tuple[Path, str], Path] = {}
    for path in files:
        first.setdefault((path.parent, path.name.partition(".")[0]), path)
    sources = tuple(first.values())
    problems = [problem for process in processes for problem in process.problems]
    # If one process trained, processes that only imported the framework are no loss: launchers, parents of forks.
    statuses = [(process, process.status) for process in processes]
    trained = [
        process for process, status in statuses if status.get("steps_seen") or status.get("state") != NOT_STARTED
    ] or processes
    lost = [
        process
        for process in trained
        if not process.problems and not any(process.folder in source.parents for source in sources)
    ]
    if sources:
        lost = [process for process in lost if process.status.get("state") != NOT_STARTED]
    problems += [_without_trace(process, name, plan.window, is_only=len(trained) == 1) for process in lost]
    if not processes and not (plan.folder / "raw" / PROCESSES).exists():
        problems.append(
            Problem(
                NOT_INJECTED,
                "No Python process of the program loaded the hooks: it is no Python program, runs with -I, -E or -S, "
                "or starts its Python with an environment of its own.",
                "Leave those flags out, and hand PYTHONPATH and TRACEVIZ_INJECT on (as env -i and sudo do not).",
            )
        )
    return Harvest(sources, tuple(dict.fromkeys(problems)), facts_of(processes))


def harvest_xplane(plan: Plan, name: str) -> Harvest:
    """Return the results of a collector's processes whose recordings are XPlane files.

    For a capture of more than 2 GiB, a profiler leaves an empty file without a message.
    """
    # The manifest lists the names of captures: they may not contain the name of this machine.
    ours = re.compile(r"host\d*\.xplane\.pb")
    for path in sorted(plan.raw(name).rglob(XPLANE)):
        names = (f"host{number or ''}.xplane.pb" for number in count())
        if not ours.fullmatch(path.name):
            path.rename(next(free for other in names if not (free := path.with_name(other)).exists()))
    recorded = harvest_files(plan, name, (XPLANE,))
    empty = [path for path in plan.raw(name).rglob(XPLANE) if not path.stat().st_size]
    if not empty:
        return recorded
    too_large = Problem(
        "capture-too-large",
        f"The profiler saved nothing in {len(empty)} of its files: a capture may hold 2 GiB at most.",
        "Record fewer steps, for example --steps 10:15.",
    )
    return Harvest(recorded.sources, (too_large, *(recorded.problems if recorded.sources else ())), recorded.facts)


def facts_of(processes: Sequence[ProcessRecord]) -> dict[str, Any]:
    """Return the facts about the processes for the manifest: totals, and a short form of each."""
    if not processes:
        return {"processes": []}
    statuses = [process.status for process in processes]
    first = {
        fact: next((status[fact] for status in statuses if status.get(fact)), None)
        for fact in ("threads", "framework", "version")
    }
    most = {
        fact: max(int(status.get(fact) or 0) for status in statuses)
        for fact in ("steps_recorded", "start_cost_ns", "trial_cost_ns", "stop_cost_ns")
    }
    return {
        **({"threads": first["threads"]} if first["threads"] else {}),
        "framework": first["framework"],
        "version": first["version"],
        "steps_recorded": most["steps_recorded"],
        "start_cost_ns": most["start_cost_ns"] + most["trial_cost_ns"],
        "stop_cost_ns": most["stop_cost_ns"],
        "processes": [{key: status[key] for key in SHORTENED if key in status} for status in statuses],
    }


def _without_trace(process: ProcessRecord, name: str, window: Window, *, is_only: bool) -> Problem:
    state = process.status.get("state")
    who = "The program" if is_only else f"Process {process.status.get('pid', '?')}"
    if state == RECORDING:
        return Problem(
            "killed-while-recording",
            f"{who} was killed while it was being recorded: what the profiler held in memory is lost.",
            "Record fewer steps (--steps), so that the trace is saved earlier.",
        )
    if state == WAITING:
        begins = f"at step {window.first_step}" if window.delay_s is None else f"after {window.delay_s} s"
        return Problem(
            "not-started",
            f"{who} ended at once, killed or by os._exit, before recording began {begins}.",
            "Record an earlier part with --steps.",
        )
    detail = process.status.get("detail") or "it left no trace and no reason"
    # This concerns only this profiler: others may have recorded the program.
    return Problem("not-started", f"The {name} profiler recorded nothing of {who[0].lower()}{who[1:]}: {detail}.")
