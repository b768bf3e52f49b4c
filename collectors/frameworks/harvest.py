"""Read the results of the hooks inside the program: one folder per process with status, problems and recordings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from traceviz.collectors.base import Harvest, Plan, Problem, Window, read_facts
from traceviz.untrusted.json_documents import document_of

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
    return tuple(ProcessRecord(own, read_facts(own / STATUS), read_problems(own / PROBLEMS)) for own in files)


def read_versions(raw: Path, pid: int | None) -> dict[str, str]:
    """Return versions of Python and of the frameworks in the program, as the hooks noted them below the folder ``raw``.

    Python's version is that of process ``pid``, else of the first process that had the hooks.
    """
    processes = list(_documents(raw / PROCESSES))
    own = [stated for stated in processes if stated.get("pid") == pid] or processes
    python = {"python": own[0]["python"]} if own and isinstance(own[0].get("python"), str) else {}
    noted = [stated["versions"] for stated in _documents(raw / VERSIONS) if isinstance(stated.get("versions"), dict)]
    known = {str(name): version for versions in noted for name, version in versions.items() if isinstance(version, str)}
    return python | known


def _documents(path: Path) -> Iterator[dict[str, Any]]:
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


def read_problems(path: Path) -> tuple[Problem, ...]:
    """Return the problems in a file with one per line; truncated lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(problem for line in lines if (problem := _problem(line)) is not None)


def _problem(line: str) -> Problem | None:
    try:
        document = document_of(line)
        return Problem(str(document["code"]), str(document["message"]), str(document.get("fix", "")))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


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
    sources = _first_of_each_stem(files)
    problems = [problem for process in processes for problem in process.problems]
    # If one process trained, processes that only imported the framework are no loss: launchers, parents of forks.
    trained = [process for process in processes if _has_trained(process)] or processes
    lost = [process for process in trained if _is_lost(process, sources)]
    if sources:
        lost = [process for process in lost if process.status.get("state") != NOT_STARTED]
    problems += [_without_trace(process, name, plan.window, is_only=len(trained) == 1) for process in lost]
    if not processes:
        problems += _not_reached(plan)
    return Harvest(sources, tuple(dict.fromkeys(problems)), facts_of(processes))


def harvest_xplane(plan: Plan, name: str) -> Harvest:
    """Return the results of a collector's processes whose recordings are XPlane files.

    For a capture of more than 2 GiB, a profiler leaves an empty file without a message.
    """
    _without_host_names(plan.raw(name))
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


def _without_host_names(folder: Path) -> None:
    """Rename captures so that their names, which the manifest lists, do not contain the name of this machine."""
    ours = re.compile(r"host\d*\.xplane\.pb")
    for path in sorted(folder.rglob(XPLANE)):
        names = (f"host{number or ''}.xplane.pb" for number in count())
        if not ours.fullmatch(path.name):
            path.rename(next(free for name in names if not (free := path.with_name(name)).exists()))


def facts_of(processes: Sequence[ProcessRecord]) -> dict[str, Any]:
    """Return the facts about the processes for the manifest: totals, and a short form of each."""
    if not processes:
        return {"processes": []}
    statuses = [process.status for process in processes]
    threads = next((status["threads"] for status in statuses if status.get("threads")), None)
    return {
        **({"threads": threads} if threads else {}),
        "framework": next((status["framework"] for status in statuses if status.get("framework")), None),
        "version": next((status["version"] for status in statuses if status.get("version")), None),
        "steps_recorded": max(int(status.get("steps_recorded") or 0) for status in statuses),
        "start_cost_ns": _most(statuses, "start_cost_ns") + _most(statuses, "trial_cost_ns"),
        "stop_cost_ns": _most(statuses, "stop_cost_ns"),
        "processes": [{key: status[key] for key in SHORTENED if key in status} for status in statuses],
    }


def _most(statuses: Sequence[Mapping[str, Any]], fact: str) -> int:
    """Return the largest value of a time that processes may not have."""
    return max(int(status.get(fact) or 0) for status in statuses)


def _first_of_each_stem(paths: Iterable[Path]) -> tuple[Path, ...]:
    kept: dict[tuple[Path, str], Path] = {}
    for path in paths:
        kept.setdefault((path.parent, path.name.partition(".")[0]), path)
    return tuple(kept.values())


def _is_lost(process: ProcessRecord, sources: Sequence[Path]) -> bool:
    """Return whether it left neither a recording nor a problem that explains the lack."""
    return not process.problems and not any(process.folder in source.parents for source in sources)


def _has_trained(process: ProcessRecord) -> bool:
    """Return whether steps were seen in it, recorded or not."""
    return bool(process.status.get("steps_seen")) or process.status.get("state") != NOT_STARTED


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


def _not_reached(plan: Plan) -> list[Problem]:
    """Return the problem that no process loaded the hooks; nothing if at least one did."""
    if (plan.folder / "raw" / PROCESSES).exists():
        return []
    return [
        Problem(
            "not-injected",
            "No Python process of the program loaded the hooks: it is no Python program, runs with -I, -E or -S, or "
            "starts its Python with an environment of its own.",
            "Leave those flags out, and hand PYTHONPATH and TRACEVIZ_INJECT on (as env -i and sudo do not).",
        )
    ]
