"""The manifest of a run: program, machine, collectors, and how it ended. One JSON file, complete at any time.

It is written before the program starts, with the status ``running``, and again during the run. A killed recording
leaves the last version, whose status is still ``running``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from traceviz.collectors.base import Availability, Harvest, Problem, Window
from traceviz.collectors.run.outcome import RunEnding
from traceviz.core.plain_arguments import names_here, plain_command
from traceviz.core.process.temporary import drop, note
from traceviz.core.sanitize import visible_json
from traceviz.untrusted.json_documents import read_object

SETTINGS = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "XLA_FLAGS")
SETTING_PREFIXES = (
    *("CUDA_", "GOTO_", "JAX_", "KMP_", "MKL_", "NCCL_", "OMP_", "OPENBLAS_", "TORCH_"),
    *("TF_AUTO_", "TF_CPP_", "TF_CUDNN_", "TF_DETERMINISTIC_", "TF_DISABLE_", "TF_ENABLE_", "TF_FORCE_", "TF_GPU_"),
    *("TF_NUM_", "TF_USE_", "TF_XLA_"),  # not all of TF_: Terraform keeps secrets in TF_VAR_*
)
"""Variables that set how a framework uses the machine. Others may hold secrets, and are never stored."""

_SECRET = ("AUTH", "CREDENTIAL", "KEY", "PASS", "SECRET", "TOKEN")
_PATH = re.compile(r"~?(?:/[^/:;,=\s]+)*/(?=[^/:;,=\s])")
"""The folders of a path."""
_PATH_IN_PROSE = re.compile(r"(?<![\w.…~/:])~?/(?:[^/:;,=\s'\"]+/)+(?=[^/:;,=\s'\"])")
"""The same within prose, where a single slash is no path: *and/or*, *8/s*, an address."""
_LONGEST = 500


def command_text(command: tuple[str, ...], environment: Mapping[str, str], *, keep_private: bool) -> str:
    """Return the command for the manifest: complete, or with ``…`` in place of text that looks private.

    >>> command_text(("/home/ann/bin/python", "train.py", "--user=ann"), {}, keep_private=False)
    'python train.py --user=…'
    """
    return shlex.join(command) if keep_private else plain_command(command, names_here(environment))


def without_folders(text: str) -> str:
    """Return a sentence with only the last part of each path: folders may name people, customers and projects.

    >>> without_folders("cannot open '/home/ann/secret/data.bin': see https://a.org/b, 8/s or more")
    "cannot open '…/data.bin': see https://a.org/b, 8/s or more"
    """
    return _PATH_IN_PROSE.sub("…/", text)


def settings(environment: Mapping[str, str], home: str, *, keep_private: bool) -> dict[str, str]:
    """Return variables that set threads, devices or compilation; only the last part of paths in them is shown."""
    shown = {}
    for name, value in sorted(environment.items()):
        is_setting = name in SETTINGS or name.startswith(SETTING_PREFIXES)
        if is_setting and not any(word in name for word in _SECRET):
            text = value
            if not keep_private:
                text = _PATH.sub("…/", value if len(home) < 2 else value.replace(home, "~"))
            shown[name] = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return shown


KIND = "traceviz.run"
VERSION = 1
MANIFEST = "manifest.json"

COMMAND_LINE = "command line"
"""Facts that are left out unless the user keeps private facts; the environment is always left out."""

Status = Literal["running", "finished", "failed", "killed", "interrupted", "timed-out"]
"""``failed``: it ended with another code than 0. ``killed``: a signal ended it. ``interrupted``: a signal that was also
meant for the recording ended it (Ctrl-C, a closed terminal, ``kill``). ``timed-out``: its time was over."""


@dataclass(frozen=True, slots=True)
class CollectorEntry:
    """Facts in the manifest about one collector.

    Args:
        name: Its name.
        state: ``recording`` while the program runs. Then ``recorded``, ``unused`` (no results, as for the PyTorch
            collector in a program without PyTorch) or ``failed`` (no results, but problems). ``not-asked``, or the
            reason why it could not record (:data:`~traceviz.collectors.base.State`).
        detail: Details of its availability.
        fix: How to make it able to record.
        sources: Its results, relative to the run folder.
        problems: What went wrong.
        facts: Its facts: versions, steps, overhead.
    """

    name: str
    state: str
    detail: str = ""
    fix: str = ""
    sources: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The facts of a run. Times are nanoseconds, ``*_unix_ns`` since 1970; ``None`` if not known yet.

    Args:
        name: Name of the run.
        tags: The user's facts about it.
        command: The command, complete or with its plain options (:func:`~.redact.command_text`).
        left_out: Kinds of facts that were left out because they may be private.
        status: ``running``, or how it ended.
        pid: Process id of the program; while it runs, of its wrapper.
        started_unix_ns: When it was started.
        ended_unix_ns: When it ended.
        duration_ns: Time in between, on a clock that is never set.
        code: Exit code; 128 + n for signal n.
        signal: The signal that ended it.
        ending: How it ended, as text; ``None`` while it runs.
        window: The part of the run that the profilers were to record.
        rate_hz: Samples of resources per second.
        collectors: Every known collector.
        machine: See :mod:`.machine`.
        versions: Versions of programs and libraries.
        settings: Variables that set threads, devices or compilation.
        usage: ``user_ns``, ``system_ns``, ``max_rss_bytes`` of the program and the children that it waited for; without
            the last if nsys wraps the program.
        overhead: ``before_ns``, ``harvest_ns``, ``tables_ns``: time that recording took before and after the program.
        problems: What went wrong in the recording itself.
        tables: Rows of each table under ``tables/``; empty if they were not written.
        verdict: The verdict of the report after the run, by ``code``, ``sentence`` and ``cause``; empty if there was
            none.
    """

    name: str
    command: str
    window: Window
    rate_hz: float
    collectors: tuple[CollectorEntry, ...]
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    status: Status = "running"
    pid: int | None = None
    started_unix_ns: int | None = None
    ended_unix_ns: int | None = None
    duration_ns: int | None = None
    code: int | None = None
    signal: int | None = None
    ending: RunEnding | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    overhead: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    tables: Mapping[str, int] = field(default_factory=dict)
    verdict: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the manifest for JSON: identifying facts first, ``code`` and ``signal`` together as ``exit``."""
        manifest = self
        if COMMAND_LINE in self.left_out:  # problems hold error messages, which may name files
            entries = tuple(replace(entry, problems=_shortened(entry.problems)) for entry in self.collectors)
            manifest = replace(self, collectors=entries, problems=_shortened(self.problems))
        facts = asdict(manifest)
        end = {"code": facts.pop("code"), "signal": facts.pop("signal")}
        head = {name: facts.pop(name) for name in ("name", "tags", "command", "left_out", "status")}
        return {"kind": KIND, "version": VERSION, **head, "exit": end, **facts}

    def with_problems(self, problems: Iterable[Problem]) -> Manifest:
        """Return the manifest with further ``problems``."""
        return replace(self, problems=(*self.problems, *problems))


def _shortened(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(replace(problem, message=without_folders(problem.message)) for problem in problems)


def entries_before(states: Mapping[str, Availability], recording: tuple[str, ...]) -> tuple[CollectorEntry, ...]:
    """Return every known collector as of the program's start."""
    entries = []
    for name, availability in states.items():
        state = "not-asked" if availability.is_ready else availability.state
        state_before = "recording" if name in recording else state
        entries.append(CollectorEntry(name, state_before, availability.detail, availability.fix))
    return tuple(entries)


def entry_after(entry: CollectorEntry, harvest: Harvest, folder: Path) -> CollectorEntry:
    """Return ``entry`` with the collector's results in the run ``folder``."""
    # ranges have no file of their own: another collector recorded them
    left = harvest.sources or harvest.facts.get("arrived")
    state = "recorded" if left else "failed" if harvest.problems else "unused"
    sources = tuple(os.path.relpath(source, folder) for source in harvest.sources)
    return CollectorEntry(entry.name, state, entry.detail, entry.fix, sources, harvest.problems, dict(harvest.facts))


def versions_after(versions: Mapping[str, str], collectors: tuple[CollectorEntry, ...]) -> dict[str, str]:
    """Return ``versions`` and those that the collectors found in the program."""
    known = dict(versions)
    for entry in collectors:
        stated = entry.facts.get("versions")
        if isinstance(stated, Mapping):
            known |= {str(name): str(version) for name, version in stated.items()}
        framework, version = entry.facts.get("framework"), entry.facts.get("version")
        if framework and version:
            known[str(framework)] = str(version)
    return known


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest in ``folder``; see :func:`write_document`."""
    write_document(folder, manifest.document())


def write_document(folder: Path, document: Mapping[str, Any]) -> None:
    """Replace the manifest in ``folder``; readers see the old one or the new one.

    Raises:
        OSError: it cannot be written; the old one stays.
    """
    text = visible_json(json.dumps(document, indent=2, ensure_ascii=False, default=str)) + "\n"
    temporary = note(folder, f".{MANIFEST}.")
    try:
        with temporary.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
        temporary.replace(folder / MANIFEST)
    finally:
        drop(temporary)
    # Write the folder itself to the disk if its file system can: the new name then survives a power failure.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def is_run_folder(folder: Path) -> bool:
    """Return whether ``folder`` holds the manifest of a run."""
    return read_object(folder / MANIFEST).get("kind") == KIND
