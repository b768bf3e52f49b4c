"""The manifest of a run folder: result of the run, its machine, and the output of each collector.

``traceviz collect`` writes ``manifest.json`` when the run starts and again when it ends. If it is killed in between,
the manifest is incomplete: everything in it is optional here, and values of an unexpected shape are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from traceviz.core.errors import DamagedTraceError
from traceviz.core.units import format_ns, format_signal
from traceviz.parsers.run.layout import KIND, MANIFEST, MOST_FILES, RAW, manifest_document
from traceviz.parsers.shared.notes import Notes
from traceviz.trace.rows_to_table import rows_to_table
from traceviz.trace.schema import UNKNOWN_TEXT_NOTE
from traceviz.untrusted.json_documents import MOST_BYTES, document_of

Struct = TypeVar("Struct", bound=msgspec.Struct)


def convert_struct(stated: Any, kind: type[Struct]) -> Struct:
    """Return JSON, perhaps of a killed program, as a ``kind``.

    Fields of a wrong type get their default; elements of a wrong type are left out.

    Raises:
        msgspec.ValidationError: it is not an object, or lacks a field without a default.
    """
    if not isinstance(stated, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(stated).__name__}`")
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in stated:
            with suppress(msgspec.ValidationError):
                values[field.name] = _converted(stated[field.encode_name], field.type)
        if field.required and field.name not in values:
            raise msgspec.ValidationError(f"Object missing required field `{field.encode_name}`")
    return kind(**values)


def _converted(stated: Any, kind: Any) -> Any:
    if get_origin(kind) is tuple:
        elements = []
        for element in stated if isinstance(stated, list) else ():
            with suppress(msgspec.ValidationError):
                elements.append(_converted(element, get_args(kind)[0]))
        return tuple(elements)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return convert_struct(stated, kind)
    return msgspec.convert(stated, kind)


VERSION = 1
"""The newest version of run folders that can be read."""
_DEEPEST = 8
"""Maximum depth of nested settings; deeper ones are left out."""
_PROBLEMS = "problems.jsonl"
"""File of problems that a collector notes during recording, next to its recordings."""

_LONGEST_NS = 2**62
_LONGEST_SHOWN = 40
"""Maximum characters of a word that a note quotes."""
_COST, _START_COST = "stop_cost_ns", "start_cost_ns"
"""Facts of a collector: the program's waiting time for it to stop and save, and to start."""
_WORTH_A_NOTE_NS = 100_000_000
"""Minimum start time of a profiler that delays a program noticeably."""


class Problem(msgspec.Struct, frozen=True):
    """A problem, and advice."""

    code: str = ""
    message: str = ""
    fix: str = ""

    @property
    def sentences(self) -> str:
        """Message and fix."""
        return " ".join(filter(None, (self.message, self.fix)))

    @property
    def note_code(self) -> str:
        """The code, or a default for a problem without one."""
        return self.code or "collector-problem"


class Recorder(msgspec.Struct, frozen=True):
    """One collector of a run.

    Args:
        name: Its name, and that of its folder under ``raw/``.
        state: State of its recording, as one word.
        sources: Its files, relative to the run folder.
        problems: Its problems.
        facts: Further facts from it.
    """

    name: str
    state: str = ""
    sources: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: dict[str, Any] = {}


class Exit(msgspec.Struct, frozen=True):
    """End of the program: its exit code, or the signal that ended it."""

    code: int | None = None
    signal: int | None = None

    @property
    def in_words(self) -> str:
        """Text of the exit: ``exit code 3``, or the signal by number and name."""
        if self.signal:
            return format_signal(self.signal)
        return f"exit code {'unknown' if self.code is None else self.code}"


class Ending(msgspec.Struct, frozen=True):
    """End of the run, as its recorder states it.

    Args:
        outcome: ``finished``, ``failed``, ``killed``, ``interrupted`` or ``timed-out``; empty if not stated.
        reason: Reason, in a few words of traceviz: ``out of memory``, ``exit code 1: ValueError``, ``SIGKILL``,
            ``timed out after 60 s``.
        last_lines: The last lines that the program wrote, if they were kept.
    """

    outcome: str = ""
    reason: str = ""
    last_lines: tuple[str, ...] = ()

    @property
    def in_words(self) -> str:
        """Text for a cell of a table: ``crashed: out of memory``, ``timed out after 60 s``, ``killed (SIGKILL)``.

        If there are an exit code and an exception, only the exception: ``crashed: ValueError``.
        """
        if not self.reason or self.outcome not in _IN_WORDS:
            return self.outcome
        code, _, exception = self.reason.partition(": ")
        if self.outcome == "failed" and "exit code" in code and not exception:
            return f"crashed, {code}"
        return _IN_WORDS[self.outcome].format(exception if "exit code" in code else self.reason)


_IN_WORDS = {"failed": "crashed: {}", "killed": "killed ({})", "timed-out": "{}"}
"""Templates that combine an outcome and its reason."""


class Judgement(msgspec.Struct, frozen=True):
    """Verdict of the report at the end of the run: its code, and its sentence."""

    code: str = ""
    sentence: str = ""


class RunManifest(msgspec.Struct, frozen=True):
    """The manifest of a run folder.

    Args:
        name: Name of the run.
        status: ``running``, ``finished``, ``failed``, ``killed``, ``interrupted`` or ``timed-out``.
        command: The command line, or the part of it that was kept.
        left_out: Facts left out because they may be private.
        exit: End of the program.
        ending: The same as text.
        pid: Process id of the program that was started.
        started_unix_ns: Start time of the program.
        ended_unix_ns: End time; ``None`` while it runs.
        duration_ns: Time in between.
        recorders: Its collectors.
        run_problems: Problems of the run as a whole.
        verdict: Verdict of the report at its end.
        machine, window, settings, versions, tags: Become rows of table ``settings``, in any shape.
    """

    name: str | None = None
    status: str = ""
    command: str | None = None
    left_out: tuple[str, ...] = ()
    exit: Exit = Exit()
    ending: Ending = Ending()
    pid: int | None = None
    started_unix_ns: int | None = None
    ended_unix_ns: int | None = None
    duration_ns: int | None = None
    recorders: tuple[Recorder, ...] = msgspec.field(default=(), name="collectors")
    run_problems: tuple[Problem, ...] = msgspec.field(default=(), name="problems")
    verdict: Judgement = Judgement()
    machine: Any = None
    window: Any = None
    variables: Any = msgspec.field(default=None, name="settings")
    versions: Any = None
    tags: Any = None

    def settings(self) -> dict[str, str]:
        """Return rows of table ``settings`` by key: run, machine, variables, versions, tags, and collectors.

        Facts added to the manifest after the tables were written (their rows, the cost of writing them) are left out.
        """
        run: dict[str, Any] = {"name": self.name, "status": self.status or None, "duration_ns": self.duration_ns}
        run["exit"] = msgspec.structs.asdict(self.exit)
        run["ending"] = {"outcome": self.ending.outcome or None, "reason": self.ending.reason or None}
        if "command line" in self.left_out:  # then it holds plain options only
            run["command"] = self.command
        groups = {
            "run": run,
            "window": self.window,
            "machine": self.machine,
            "env": self.variables,
            "version": self.versions,
            "tag": self.tags,
            "collector": {
                recorder.name: {"state": recorder.state or None, **recorder.facts} for recorder in self.recorders
            },
        }
        return {key: value for name, group in groups.items() for key, value in _flatten(name, group)}

    @property
    def was_stopped(self) -> bool:
        """True if the program ended, but not normally."""
        return (self.ending.outcome or self.status) in STOPPED

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems of the run as a whole, and then of each collector; each sentence once."""
        of_recorders = (problem for recorder in self.recorders for problem in recorder.problems)
        return tuple(dict.fromkeys(problem.sentences for problem in (*self.run_problems, *of_recorders)))

    @property
    def ending_code(self) -> str:
        """Code of the note on the end of the program."""
        return f"run-{self.status}"

    @property
    def ending_in_sentences(self) -> str:
        """Sentences on the end of the program, for its note; empty if it finished."""
        reason = self.ending.reason
        exception = reason.partition(": ")[2] or (
            reason if self.status in {"failed", "killed"} and " " in reason else ""
        )
        why = f" ({exception})" if exception and "exit code" not in exception else ""
        said = _ENDINGS.get(self.status, "").format(how=f"{self.exit.in_words}{why}", ended=reason or "timed out")
        return f"{said} {_LAST_LINES}" if said and self.ending.last_lines else said

    def notes(self, notes: Notes) -> None:
        """Add notes on the run: its end, and its problems."""
        stated = [("status", self.status, STATUSES), ("ending.outcome", self.ending.outcome, STATUSES)]
        stated += [(f"collectors.{recorder.name}.state", recorder.state, STATES) for recorder in self.recorders]
        for field, word, known in stated:
            if not word or word in known:
                continue
            message = f"{MANIFEST}: {field} is {word[:_LONGEST_SHOWN]!r}, which traceviz does not know: not stated."
            notes.add(UNKNOWN_TEXT_NOTE, "warning", message)
        if self.ending_in_sentences:
            notes.add(self.ending_code, "warning", self.ending_in_sentences)
        for problem in self.run_problems:
            notes.add(problem.note_code, "warning", problem.sentences)
        recorders: dict[Problem, list[str]] = {}
        for recorder in self.recorders:
            for problem in recorder.problems:
                recorders.setdefault(problem, []).append(recorder.name)
        for problem, names in recorders.items():
            collectors = f"Collector{'s' * (len(names) > 1)} {', '.join(names)}"
            notes.add(problem.note_code, "warning", f"{collectors}: {problem.sentences}")
        for recorder in self.recorders:
            facts = (recorder.facts.get(key) for key in (_START_COST, _COST))
            # Implausible times count as 0.
            start, stop = (fact if isinstance(fact, int | float) and 0 < fact < _LONGEST_NS else 0.0 for fact in facts)
            if stop:
                starting = f"starting took {format_ns(start)}, " if start >= _WORTH_A_NOTE_NS else ""
                message = f"Collector {recorder.name}: {starting}stopping and saving took {format_ns(stop)}."
                notes.add("collector-cost", "info", message)


STATUSES = frozenset({"running", "finished", "failed", "killed", "interrupted", "timed-out"})
"""Words for the state of a run."""
STATES = frozenset(
    {
        *("recording", "recorded", "failed", "unused", "not-asked"),
        *("not-installed", "too-old", "not-permitted", "no-device", "unsupported"),
    }
)
"""Words for the state of a collector, or the reason why it could not record."""
STOPPED = frozenset({"failed", "killed", "interrupted", "timed-out"})
"""Outcomes of programs that did not end normally."""
_LAST_LINES = "What it wrote is in output.log of the run."
_ENDINGS = {
    "running": "The manifest says that the program is still running: it is, or traceviz collect was killed. "
    "What was recorded until then is shown.",
    "failed": "The program failed with {how}; what was recorded until then is shown.",
    "killed": "The program was killed by {how}; what was recorded until then is shown.",
    "interrupted": "The program was interrupted by {how}; what was recorded until then is shown.",
    "timed-out": "The program {ended}; what was recorded until then is shown.",
}
"""Sentences on a run that did not finish, by its status."""


def read_manifest(folder: Path) -> RunManifest:
    """Return the manifest of a run folder.

    Raises:
        DamagedTraceError: there is no manifest, or a newer traceviz wrote it.
    """
    document = manifest_document(folder)
    version = document.get("version")
    if document.get("kind") != KIND:
        raise DamagedTraceError(f"{folder} has no {MANIFEST} of a run.")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise DamagedTraceError(
            f"{folder} is a run folder of version {version}; this traceviz reads 1 to {VERSION}.",
            fix="Install a newer traceviz.",
        )
    manifest = convert_struct(document, RunManifest)
    recorders = []
    for recorder in manifest.recorders:
        if recorder.name == "" or recorder.name != Path(recorder.name).name or recorder.name == "..":
            continue  # it must be the name of a folder under raw/, and lead nowhere else
        problems = recorder.problems
        if recorder.state == "recording":  # traceviz collect was killed
            problems += _noted_problems(folder / RAW / recorder.name)
        recorders.append(replace(recorder, sources=recorder.sources[:MOST_FILES], problems=problems))
    return replace(manifest, recorders=tuple(recorders))


def _noted_problems(folder: Path) -> tuple[Problem, ...]:
    """Return problems that a collector noted for its processes, one per line; cut lines are left out."""
    problems: dict[Problem, None] = {}
    for path in sorted((*folder.glob(_PROBLEMS), *folder.glob(f"*/{_PROBLEMS}")))[:MOST_FILES]:
        try:
            lines = path.read_bytes().splitlines() if path.is_file() and path.stat().st_size <= MOST_BYTES else []
        except OSError:
            continue
        for line in lines:
            with suppress(ValueError):  # msgspec's errors are ValueErrors
                problems[convert_struct(document_of(line), Problem)] = None
    return tuple(problems)


def _flatten(key: str, value: Any, deepest: int = _DEEPEST) -> Iterator[tuple[str, str]]:
    """Yield ``value`` as pairs of a dotted key and a text; lists by position, and no pair for null."""
    if isinstance(value, dict | list):
        named = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in named if deepest else ():
            yield from _flatten(f"{key}.{name}", inner, deepest - 1)
    elif isinstance(value, bool):
        yield key, str(value).lower()
    elif value is not None:
        yield key, str(value)


_ENDING = "run.ending."
"""Prefix of the keys of these settings."""


def with_ending(tables: Iterable[tuple[str, pa.Table]], folder: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield the ``tables`` of a run folder, with the ending that its manifest states now.

    The tables may be older: the starter of a run may add the reason of its end later.

    Raises:
        DamagedTraceError: there is no manifest, or a newer traceviz wrote it.
    """
    manifest = read_manifest(folder)
    for name, table in tables:
        if name == "settings":
            stated = {key: text for key, text in manifest.settings().items() if key.startswith(_ENDING)}
            rows = table.to_pylist()
            if stated and not stated.items() <= {(r["key"], r["value"]) for r in rows if r["process_id"] is None}:
                rows = [row for row in rows if row["process_id"] is not None or row["key"] not in stated]
                yield name, rows_to_table("settings", [*rows, *({"key": key, "value": stated[key]} for key in stated)])
            else:
                yield name, table
        elif name == "notes" and manifest.ending.reason:
            rows = table.to_pylist()
            for row in rows:
                if row["code"] == manifest.ending_code:
                    row["message"] = manifest.ending_in_sentences
            yield name, rows_to_table("notes", rows)
        else:
            yield name, table
