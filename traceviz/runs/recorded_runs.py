"""Runs below a folder, as ``traceviz collect`` leaves them there: all of them, the newest, and a list.

Only their manifests are read: the list shows what was recorded when the run ended.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traceviz.collectors.run.plan import RUNS
from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.core.process.temporary import temporary_folder
from traceviz.core.units import counted
from traceviz.parsers.run.layout import MANIFEST, is_run_folder
from traceviz.parsers.run.manifest import Judgement, RunManifest, read_manifest
from traceviz.report import LISTING, Column, Fact, Grid, Note, Prose, Report, Section, Severity, Verdict
from traceviz.report.verdicts import VerdictCode
from traceviz.trace.folder_cache import kept_folders
from traceviz.untrusted.json_documents import read_object

_KIND, _FILE = "verdicts", "verdict.json"
"""Names in the cache."""


def save_verdict(run: Path, verdict: Judgement) -> None:
    """Store the verdict of a report on a run; it replaces an earlier one."""
    kept = kept_folders(_KIND, frozenset({_FILE}))
    with suppress(OSError):
        if kept is None or _read_verdict(run) == verdict or saved_verdict(run) == verdict:
            return
        key = _key(run)
        with temporary_folder() as work:
            folder = work / "verdict"
            folder.mkdir()
            document = {"code": verdict.code, "sentence": verdict.sentence}
            (folder / _FILE).write_text(json.dumps(document), encoding="utf-8")
            kept.evict(key)
            kept.keep(key, folder)


def saved_verdict(run: Path) -> Judgement | None:
    """Return the verdict of the last report on a run; ``None`` if only the verdict in its manifest is known."""
    kept = kept_folders(_KIND, frozenset({_FILE}))
    try:
        folder = None if kept is None else kept.find(_key(run))
    except OSError:
        return None
    return None if folder is None else _judgement(read_object(folder / _FILE))


def _read_verdict(run: Path) -> Judgement:
    """Return the verdict in the manifest of a run."""
    stated = read_object(run / MANIFEST).get("verdict")
    return _judgement(stated if isinstance(stated, dict) else {})


def _judgement(document: dict[str, object]) -> Judgement:
    return Judgement(str(document.get("code") or ""), str(document.get("sentence") or ""))


def _key(run: Path) -> str:
    return hashlib.sha256((run / MANIFEST).read_bytes()).hexdigest()


__all__ = ["RUNS", "RecordedRun", "listing", "newest_run", "recorded_runs"]

_COLUMNS = (
    Column("run", "Run", importance=0),
    Column("started", "Started", importance=9),
    Column("duration_ns", "Ran", "ns", importance=0),
    Column("ended", "Ended", importance=2),
    Column("tags", "Tags", importance=1),
    Column("arguments", "Arguments", importance=0),
    Column("command", "Command", importance=9),
    Column("name", "Name", importance=9),
    Column("exit_code", "Exit code", "id", importance=9),
    Column("started_unix_ns", "Started (ns since 1970)", "id", importance=9),
    Column("verdict", "Verdict", importance=9, shorten=False),
    Column("sentence", "Verdict in words", importance=9),
    Column("path", "Folder", importance=9),
)
_MOST_RUNS = 100_000


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run folder.

    Args:
        folder: Its path.
        manifest: Its manifest.
        begun_ns: Start of the run, in nanoseconds since 1970; if not stated, the time of its last write.
    """

    folder: Path
    manifest: RunManifest
    begun_ns: int

    @property
    def verdict(self) -> Judgement:
        """Verdict of the last report on it, else the verdict from the end of the run."""
        return saved_verdict(self.folder) or self.manifest.verdict


def recorded_runs(folder: Path) -> tuple[tuple[RecordedRun, ...], tuple[str, ...]]:
    """Return the runs right below ``folder``, the newest first, and the names of those with an unreadable manifest.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(
            f"There are no runs: there is no folder {folder}.",
            "traceviz collect makes it where it runs.",
            "Record a run (traceviz collect -- python train.py), or name the folder that holds them.",
        )
    runs, unreadable = [], []
    for path in sorted(folder.iterdir())[:_MOST_RUNS]:
        if not path.name.startswith(".") and is_run_folder(path):
            try:
                manifest = read_manifest(path)
                runs.append(RecordedRun(path, manifest, manifest.started_unix_ns or _written_ns(path)))
            except DamagedTraceError:
                unreadable.append(path.name)
    newest_first = sorted(runs, key=lambda run: (run.begun_ns, run.folder.name), reverse=True)
    return tuple(newest_first), tuple(unreadable)


def newest_run(folder: Path) -> Path:
    """Return the run right below ``folder`` that was started last.

    Raises:
        UsageError: there is none.
    """
    runs, unreadable = recorded_runs(folder) if folder.is_dir() else ((), ())
    if runs:
        return runs[0].folder
    why = f"{counted(len(unreadable), 'run')} there cannot be read." if unreadable else f"{folder} holds no run."
    raise UsageError(
        "No trace is named, and there is no run to report on.",
        why if folder.is_dir() else f"There is no folder {folder}, where traceviz collect leaves runs.",
        "Name a trace (traceviz report TRACE), or record a run: traceviz collect -- python train.py",
    )


def listing(
    folder: Path, *, tags: Mapping[str, str] | None = None, limit: int | None = None, verdicts: int | None = None
) -> Report:
    """Return a table of the runs below ``folder``, the newest first, and their verdicts.

    Args:
        folder: The folder.
        tags: Tags that a run must have to be listed.
        limit: Most runs to list.
        verdicts: Number of runs whose command and verdict are also given as text; ``None`` for all.

    Raises:
        UsageError: there is no such folder.
    """
    found, unreadable = recorded_runs(folder)
    wanted = [run for run in found if (tags or {}).items() <= _tags(run.manifest).items()]
    shown = wanted if limit is None else wanted[:limit]
    sections = [Section("runs", "Runs", (Grid(_COLUMNS, tuple(map(_row, shown)), complete=True),))] if shown else []
    if shown:
        sections.append(Section("verdicts", "What ran, and its verdict", tuple(map(_in_words, shown[:verdicts]))))
    message = f"The manifest of {counted(len(unreadable), 'run')} cannot be read: {', '.join(unreadable[:3])}."
    return Report(
        run=(Fact("source", "folder", str(folder)), Fact("runs", "runs", len(wanted), "count")),
        verdict=Verdict(VerdictCode.RUNS, _sentence(wanted, len(shown), len(found))),
        sections=tuple(sections),
        notes=(Note("runs-unreadable", Severity.WARNING, message, len(unreadable)),) if unreadable else (),
        schema=LISTING,
    )


def _sentence(wanted: Sequence[RecordedRun], shown: int, found: int) -> str:
    if not wanted:
        return "No run has these tags." if found else "There is no run here. To record one: traceviz collect -- COMMAND"
    newest = wanted[0]
    listed = "" if shown == len(wanted) else f", the newest {shown:,} listed"
    return (
        f"{counted(len(wanted), 'run')}{listed}; traceviz report {newest.folder} says where the newest one's time went."
    )


def _row(run: RecordedRun) -> tuple[str | int | None, ...]:
    manifest = run.manifest
    # The part after the script or module, which the run's name has; else after the program.
    words = (manifest.command or "").split(" ")
    scripts = (place for place, word in enumerate(words) if word.endswith(".py") or words[place - 1 : place] == ["-m"])
    arguments = " ".join(words[next(scripts, 0) + 1 :]) or None
    return (
        run.folder.name,
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.begun_ns / 1e9)),
        manifest.duration_ns,
        _ending(manifest),
        ", ".join(f"{key}={value}" for key, value in _tags(manifest).items()) or None,
        arguments,
        manifest.command,
        manifest.name,
        manifest.exit.code,
        manifest.started_unix_ns,
        run.verdict.code or None,
        run.verdict.sentence or None,
        str(run.folder),
    )


def _ending(manifest: RunManifest) -> str:
    """Return ``finished``, ``failed: out of memory``, ``failed (3)`` (exit code), or ``killed (9)`` (signal).

    A program that was killed with its recording leaves a run that seems to be running: ``running?``.
    """
    number = manifest.exit.signal or manifest.exit.code
    if manifest.status == "running" or not manifest.status:
        return f"{manifest.status}?"
    if manifest.ending.reason:
        return manifest.ending.in_words
    return f"{manifest.status} ({number})" if number else manifest.status


def _tags(manifest: RunManifest) -> dict[str, str]:
    stated = manifest.tags if isinstance(manifest.tags, dict) else {}
    return {str(key): str(value) for key, value in stated.items()}


def _in_words(run: RecordedRun) -> Prose:
    ran = run.manifest.command or run.manifest.name or "a command that was not kept"
    return Prose(f"{run.folder.name} · {ran} · {run.verdict.sentence or 'No verdict was made.'}")


def _written_ns(folder: Path) -> int:
    with suppress(OSError):
        return (folder / MANIFEST).stat().st_mtime_ns
    return 0
