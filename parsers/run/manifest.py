"""What the manifest of a run folder says: how the run went, on which machine, and what each collector left behind.

``traceviz collect`` writes ``manifest.json`` when the run starts and again when it ends. Whoever is killed in between
leaves a manifest that says less: everything in it is optional here, and what has an unexpected shape is not there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceviz.errors import DamagedTraceError
from traceviz.units import format_ns, format_signal

if TYPE_CHECKING:
    from traceviz.parsers.shared.notes import Notes

MANIFEST = "manifest.json"
KIND = "traceviz.run"
VERSION = 1
"""The newest version of run folders that is read."""
TABLES = "tables"
"""Folder of the merged tables in a run folder."""
RAW = "raw"
"""Folder of what the collectors recorded, each in a folder of its own name."""
MOST_BYTES = 16 << 20
"""A longer manifest is none: that of a run of thousands of processes has a tenth of it."""
MOST_FILES = 10_000
"""Files of a run that are looked at before the search is given up: a run has few."""
_DEEPEST = 8
"""Settings that lie deeper in each other are left out."""
_PROBLEMS = "problems.jsonl"
"""What a collector notes while it records, beside its recordings."""

_COST = "stop_cost_ns"
"""Fact of a collector that says how long the program waited for it to stop and save."""


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
        of_run = {name: self.stated.get(name) for name in ("name", "status", "duration_ns", "exit")}
        if "command line" in _list(self.stated.get("left_out")):  # then it says no more than the program's name
            of_run["command"] = self.stated.get("command")
        groups = {
            "run": of_run,
            "window": self.stated.get("window"),
            "machine": self.stated.get("machine"),
            "env": self.stated.get("settings"),
            "version": self.stated.get("versions"),
            "tag": self.stated.get("tags"),
            "collector": {one.name: {"state": one.state or None, **one.facts} for one in self.recorders},
        }
        return {key: value for name, group in groups.items() for key, value in _flattened(name, group)}

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong with the run as a whole, and then with each collector; each sentence once."""
        own = (*_problems(self.stated.get("problems")), *(one for each in self.recorders for one in each.problems))
        return tuple(dict.fromkeys(text for _, text in own))

    def notes(self, notes: Notes) -> None:
        """Add what people should know of how the run went."""
        message = _ENDINGS.get(self.status, "")
        if message:
            notes.add(f"run-{self.status}", "warning", message.format(how=self._how_it_ended()))
        for code, text in _problems(self.stated.get("problems")):
            notes.add(code, "warning", text)
        said: dict[tuple[str, str], list[str]] = {}
        for recorder in self.recorders:
            for problem in recorder.problems:
                said.setdefault(problem, []).append(recorder.name)
        for (code, text), names in said.items():
            notes.add(code, "warning", f"Collector{'s' * (len(names) > 1)} {', '.join(names)}: {text}")
        for recorder in self.recorders:
            cost = recorder.facts.get(_COST)
            if isinstance(cost, int | float) and math.isfinite(cost) and cost > 0:
                words = f"Collector {recorder.name}: stopping and saving took {format_ns(cost)}."
                notes.add("collector-cost", "info", words)

    def _how_it_ended(self) -> str:
        exit_facts = self.stated.get("exit")
        stated = exit_facts if isinstance(exit_facts, dict) else {}
        number, code = _whole(stated.get("signal")), _whole(stated.get("code"))
        return format_signal(number) if number else f"exit code {'unknown' if code is None else code}"


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


def whole_run(path: Path) -> Path:
    """The run folder that ``path`` is a part of, where it is its manifest or all its recordings; else ``path``."""
    return path.parent if path.name in {MANIFEST, RAW} and is_run_folder(path.parent) else path


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
    return RunManifest(stated, tuple(_collected(one, folder) for one in _recorders(stated.get("collectors"))))


def _collected(recorder: Recorder, folder: Path) -> Recorder:
    """A recorder with what it noted, where nobody came to collect that: ``traceviz collect`` was killed."""
    if recorder.state != "recording":
        return recorder
    return replace(recorder, problems=recorder.problems + _noted(folder / RAW / recorder.name))


def _stated(folder: Path) -> dict[str, Any]:
    """What the manifest says; nothing where there is none that can be read."""
    path = folder / MANIFEST
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return {}
        found = decoded(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def decoded(text: bytes) -> Any:
    """JSON whose texts can be written again, and without numbers that are none.

    Raises:
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    found = json.loads(text, parse_constant=lambda _: None)
    return json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))  # half a character is none


def _noted(folder: Path) -> tuple[tuple[str, str], ...]:
    """Problems that a collector noted for its processes, one a line; a line that was cut off is left out."""
    found: dict[tuple[str, str], None] = {}
    for path in sorted((*folder.glob(_PROBLEMS), *folder.glob(f"*/{_PROBLEMS}")))[:MOST_FILES]:
        try:
            lines = path.read_bytes().splitlines() if path.is_file() and path.stat().st_size <= MOST_BYTES else []
        except OSError:
            continue
        for line in lines:
            try:
                found |= dict.fromkeys(_problems([decoded(line)]))
            except (ValueError, RecursionError):
                continue
    return tuple(found)


def _recorders(stated: Any) -> Iterator[Recorder]:
    for entry in stated if isinstance(stated, list) else ():
        name = _text(entry.get("name")) if isinstance(entry, dict) else ""
        if name and name == Path(name).name != "..":  # which is that of its folder, and leads nowhere else
            facts = entry.get("facts")
            yield Recorder(
                name,
                _text(entry.get("state")),
                tuple(source for source in _list(entry.get("sources"))[:MOST_FILES] if isinstance(source, str)),
                _problems(entry.get("problems")),
                facts if isinstance(facts, dict) else {},
            )


def _problems(stated: Any) -> tuple[tuple[str, str], ...]:
    return tuple(_problem(problem) for problem in _list(stated) if isinstance(problem, dict))


def _problem(stated: Mapping[str, Any]) -> tuple[str, str]:
    sentences = (_text(stated.get("message")), _text(stated.get("fix")))
    return _text(stated.get("code")) or "collector-problem", " ".join(filter(None, sentences))


def _flattened(key: str, value: Any, deepest: int = _DEEPEST) -> Iterator[tuple[str, str]]:
    """``value`` as pairs of a dotted key and a text; lists by position, and what is not known not at all."""
    if isinstance(value, dict | list):
        named = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in named if deepest else ():
            yield from _flattened(f"{key}.{name}", inner, deepest - 1)
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
