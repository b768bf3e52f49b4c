"""What the manifest of a run folder says: how the run went, on which machine, and what each collector left behind.

``traceviz collect`` writes ``manifest.json`` when the run starts and again when it ends. Whoever is killed in between
leaves a manifest that says less: everything in it is optional here, and what has an unexpected shape is not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceviz.errors import DamagedTraceError
from traceviz.parsers.nsys_notes import Notes
from traceviz.units import format_ns

MANIFEST = "manifest.json"
KIND = "traceviz.run"
VERSION = 1
"""The newest version of run folders that is read."""

_OVERHEADS = {
    "stop_cost_ns": "stopping and saving took",
    "overhead_ns": "recording took",
}
"""Facts of collectors that say what recording cost, in words."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """One collector of a run.

    Args:
        name: Its name, and that of its folder under ``raw/``.
        state: How it went, in a word.
        sources: What it left behind, relative to the run folder.
        problems: What went wrong: a code, and what happened with what to do.
        facts: What else it says.
    """

    name: str
    state: str = ""
    sources: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunManifest:
    """The manifest of a run folder.

    Args:
        stated: Everything that it says.
        recorders: Its collectors.
    """

    stated: Mapping[str, Any]
    recorders: tuple[Recorder, ...]

    @property
    def status(self) -> str:
        """``running``, ``finished``, ``failed``, ``killed`` or ``interrupted``."""
        return _text(self.stated.get("status"))

    @property
    def pid(self) -> int | None:
        """Process id of the program that was started."""
        return _whole(self.stated.get("pid"))

    @property
    def started_unix_ns(self) -> int | None:
        """When the program was started."""
        return _whole(self.stated.get("started_unix_ns"))

    @property
    def ended_unix_ns(self) -> int | None:
        """When it ended; ``None`` while it runs."""
        return _whole(self.stated.get("ended_unix_ns"))

    @property
    def command(self) -> str | None:
        """The command line, as far as it was kept."""
        return _text(self.stated.get("command")) or None

    def settings(self) -> dict[str, str]:
        """Rows of table ``settings`` by key: the run, the machine, variables, versions, tags, and the collectors.

        What the manifest is told only after the tables were written (their rows, the cost of writing them) is no part.
        """
        of_run = {
            "name": self.stated.get("name"),
            "status": self.stated.get("status"),
            "duration_ns": self.stated.get("duration_ns"),
            "exit": self.stated.get("exit"),
        }
        groups = {
            "run": of_run,
            "window": self.stated.get("window"),
            "machine": self.stated.get("machine"),
            "env": self.stated.get("settings"),
            "version": self.stated.get("versions"),
            "tag": self.stated.get("tags"),
            "collector": {recorder.name: dict(recorder.facts) for recorder in self.recorders},
        }
        return {key: value for name, group in groups.items() for key, value in _flattened(name, group)}

    def notes(self, notes: Notes) -> None:
        """Add what people should know of how the run went."""
        message = _ENDINGS.get(self.status, "")
        if message:
            notes.add(f"run-{self.status}", "warning", message.format(how=self._how_it_ended()))
        for code, text in _problems(self.stated.get("problems")):
            notes.add(code, "warning", text)
        for recorder in self.recorders:
            for code, text in recorder.problems:
                notes.add(code, "warning", f"Collector {recorder.name}: {text}")
            for fact, words in _OVERHEADS.items():
                cost = recorder.facts.get(fact)
                if isinstance(cost, int | float) and cost > 0:
                    notes.add("collector-cost", "info", f"Collector {recorder.name}: {words} {format_ns(cost)}.")

    def _how_it_ended(self) -> str:
        exit_facts = self.stated.get("exit")
        stated = exit_facts if isinstance(exit_facts, dict) else {}
        signal, code = stated.get("signal"), stated.get("code")
        return f"signal {signal}" if signal else f"exit code {code}" if code is not None else "an unknown exit code"


_ENDINGS = {
    "running": "The manifest says that the program is still running: it is, or traceviz collect was killed. "
    "What was recorded until then is shown.",
    "failed": "The program failed with {how}; what was recorded until then is shown.",
    "killed": "The program was killed by {how}; what was recorded until then is shown.",
    "interrupted": "The program was interrupted by {how}; what was recorded until then is shown.",
}
"""What to say of a run that did not simply finish, by its status."""


def is_run_folder(folder: Path) -> bool:
    """Whether ``folder`` holds the manifest of a run."""
    return _stated(folder).get("kind") == KIND


def read_manifest(folder: Path) -> RunManifest:
    """The manifest of a run folder.

    Raises:
        DamagedTraceError: there is none, or a newer traceviz wrote it.
    """
    stated = _stated(folder)
    version = stated.get("version")
    if stated.get("kind") != KIND:
        raise DamagedTraceError(f"{folder} has no {MANIFEST} of a run.")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise DamagedTraceError(
            f"{folder} is a run folder of version {version}; this traceviz reads 1 to {VERSION}.",
            fix="Install a newer traceviz.",
        )
    return RunManifest(stated, tuple(_recorders(stated.get("collectors"))))


def _stated(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _recorders(stated: Any) -> Iterator[Recorder]:
    for entry in stated if isinstance(stated, list) else ():
        if isinstance(entry, dict) and _text(entry.get("name")):
            facts = entry.get("facts")
            yield Recorder(
                entry["name"],
                _text(entry.get("state")),
                tuple(source for source in _list(entry.get("sources")) if isinstance(source, str)),
                _problems(entry.get("problems")),
                facts if isinstance(facts, dict) else {},
            )


def _problems(stated: Any) -> tuple[tuple[str, str], ...]:
    return tuple(_problem(problem) for problem in _list(stated) if isinstance(problem, dict))


def _problem(stated: Mapping[str, Any]) -> tuple[str, str]:
    sentences = (_text(stated.get("message")), _text(stated.get("fix")))
    return _text(stated.get("code")) or "collector-problem", " ".join(filter(None, sentences))


def _flattened(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """``value`` as pairs of a dotted key and a text; lists by position, and what is not known not at all."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flattened(f"{key}.{name}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _flattened(f"{key}.{number}", inner)
    elif isinstance(value, bool):
        yield key, str(value).lower()
    elif value is not None:
        yield key, str(value)


def _list(stated: Any) -> list[Any]:
    return stated if isinstance(stated, list) else []


def _text(stated: Any) -> str:
    return stated if isinstance(stated, str) else ""


def _whole(stated: Any) -> int | None:
    return stated if isinstance(stated, int) and not isinstance(stated, bool) else None
