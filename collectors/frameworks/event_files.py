"""Quality figures that the program wrote for TensorBoard, read from its event files after it has ended.

Only scalars are read, not images, graphs, texts or file names. They become recordings in the format of the stacks'
files, one per process that wrote, which :mod:`traceviz.parsers` reads in the same way.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traceviz.collectors.base import STACKS, Plan, Problem
from traceviz.collectors.frameworks.harvest import reached_pids
from traceviz.collectors.inject.traceviz_inject.facts.event_folders import FILE as FOLDERS
from traceviz.collectors.inject.traceviz_inject.stacks.metrics import Metrics
from traceviz.untrusted.event_files import DamagedEventsError, Scalar, scalars
from traceviz.untrusted.json_documents import JsonError, document_of

_EVENTS = re.compile(r"\.tfevents\.(?P<created>\d{9,11})\..*?(?:\.(?P<pid>\d{1,10})\.\d+(?:\.v2)?)?$")
"""Names of event files: when they were created, on which machine, by which process."""
_LEFT_OUT = frozenset({"traceviz-runs", "node_modules", "site-packages", "__pycache__"})
MOST_FOLDERS, MOST_DEPTH, MOST_SECONDS = 2_000, 6, 1.0
"""Limits of the search below the working folder: it may be a home folder, or on a slow disk."""
MOST_FILES, MOST_BYTES, MOST_SCALARS = 200, 256 << 20, 200_000
"""Limits of what is read."""
_EARLIER_S = 2.0
"""File systems and names record times in whole seconds."""
_EPOCH = "epoch_"
"""Prefix of the tags in which the callback of Keras counts epochs rather than steps."""


@dataclass(frozen=True, slots=True)
class EventFile:
    """A file with events of this run.

    Args:
        path: Its path.
        pid: The process that wrote it, if its name contains the pid.
        prefix: Prefix for its tags: its folder relative to the common folder of all files, such as ``validation/``.
    """

    path: Path
    pid: int | None
    prefix: str


def harvest_events(plan: Plan, folder: Path) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Write the scalars of the run's event files below ``folder``.

    Returns:
        The files that were written, and what could not be read.
    """
    files = event_files(plan)
    problems: list[Problem] = []
    by_process: dict[int | None, list[EventFile]] = {}
    for file in files:
        by_process.setdefault(file.pid, []).append(file)
    written = []
    left = MOST_SCALARS
    for number, (pid, of_process) in enumerate(
        sorted(by_process.items(), key=lambda item: (item[0] is None, item[0] or 0))
    ):
        found = sorted(_read(of_process, left, problems), key=lambda one: one[1].unix_ns)
        left -= len(found)
        if found:
            target = folder / f"events-{number}"
            try:
                target.mkdir(parents=True, exist_ok=True)
                (target / "stacks.jsonl").write_text("".join(_lines(pid, found)), encoding="utf-8")
            except OSError as error:  # a full disk loses these figures, but no stacks
                problems.append(Problem("events-unsaved", f"What TensorBoard shows cannot be kept: {error.strerror}."))
            else:
                written.append(target)
    return tuple(written), tuple(problems)


# Search for files -----------------------------------------------------------------------------------------------------


def event_files(plan: Plan) -> tuple[EventFile, ...]:
    """Return event files written since the run started, from known folders, else from below the working folder.

    Known folders come from the hooks and the user. Concurrent runs may write into one folder: if some files belong to
    processes of this run, all others are ignored.
    """
    try:  # the run started when the settings of the hooks were written
        started_s = (plan.folder / "inject.json").stat().st_mtime - _EARLIER_S
    except OSError:
        started_s = -_EARLIER_S
    told = _take_noted_folders(plan)
    if told or plan.events:
        candidates = [path for folder in told for path in _entries(folder)]
        candidates += [path for folder in plan.events for path in _below(folder.absolute())]
    else:
        candidates = list(_below(Path()))
    named = {path: match for path in candidates if (match := _EVENTS.search(path.name))}
    pids = {
        path: (int(match["pid"]) if match["pid"] and int(match["pid"]) < 1 << 31 else None)
        for path, match in named.items()
        if _is_since(path, match, started_s)
    }
    # Processes of the run: those that the hooks reached, and those that wrote stacks.
    numbers = (folder.name.partition("-")[0] for folder in plan.raw(STACKS).glob("*/"))
    processes = {int(number) for number in numbers if number.isdecimal()} | reached_pids(plan.folder / "raw")
    own = [path for path, pid in pids.items() if pid in processes]
    paths = sorted(own or pids)[:MOST_FILES]
    if not paths:
        return ()
    common = Path(os.path.commonpath([path.parent for path in paths]))
    # The prefix of a file in ``logs/validation`` is ``validation/``; it is empty if all files share one folder.
    return tuple(
        EventFile(path, pids[path], "".join(f"{part}/" for part in path.parent.relative_to(common).parts))
        for path in paths
    )


def _is_since(path: Path, match: re.Match[str], started_s: float) -> bool:
    """Return whether a file belongs to this run: it was created and written to since the run started."""
    try:
        stat = path.stat()
    except OSError:
        return False
    return path.is_file() and int(match["created"]) >= started_s and stat.st_mtime >= started_s


def _take_noted_folders(plan: Plan) -> tuple[Path, ...]:
    """Return the folders that the hooks found, and delete their list, because it names folders of the user."""
    path = plan.folder / "raw" / FOLDERS
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        path.unlink()
    except OSError:
        return ()
    folders = []
    for line in lines:
        with suppress(JsonError):
            folders.append(document_of(line))
    return tuple(dict.fromkeys(Path(folder) for folder in folders if isinstance(folder, str) and folder))


def _entries(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder) if ".tfevents." in name]  # noqa: PTH208 names alone
    except (OSError, ValueError):
        return []


def _below(top: Path) -> Iterator[Path]:
    """Yield possible event files at any depth, the nearest first, within limits."""
    ends = time.monotonic() + MOST_SECONDS
    pending = [(top, 0)]
    for looked_into, (folder, depth) in enumerate(pending):
        if looked_into == MOST_FOLDERS or time.monotonic() > ends:
            return
        try:
            with os.scandir(folder) as listed:
                entries = list(listed)
        except (OSError, ValueError):
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                continue
            if ".tfevents." in entry.name:
                yield folder / entry.name
            elif depth < MOST_DEPTH and entry.is_dir(follow_symlinks=False):
                pending.append((folder / entry.name, depth + 1))


# Contents of the files -----------------------------------------------------------------------------------------------

Found = tuple[str, Scalar]
"""The prefix of the tag, and the value."""


def _read(files: Iterable[EventFile], most: int, problems: list[Problem]) -> list[Found]:
    found: list[Found] = []
    for event_file in files:
        try:
            with event_file.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size > MOST_BYTES:
                    problems.append(_problem(event_file, f"it is larger than {MOST_BYTES >> 20} MB"))
                    continue
                for scalar in scalars(file):
                    if len(found) >= most:
                        problems.append(_problem(event_file, f"the run has more than {MOST_SCALARS:,} values"))
                        return found
                    found.append((event_file.prefix, scalar))
        except (OSError, DamagedEventsError) as error:
            problems.append(_problem(event_file, getattr(error, "strerror", None) or str(error)))
    return found


def _problem(event_file: EventFile, why: str) -> Problem:
    message = (
        f"An event file of TensorBoard ({event_file.prefix or 'in the folder of logs'}) is not read to its end: {why}."
    )
    return Problem("events-unreadable", message)


def _lines(pid: int | None, found: Iterable[Found]) -> Iterator[str]:
    """Yield the lines of a recording of only these figures; its clock is the time of day."""
    yield _line(["process", {"pid": pid, "role": "program", "name": "TensorBoard"}])
    yield _line(["clock", 0, 0])
    metrics, last = Metrics(), 0
    for prefix, scalar in found:
        last = scalar.unix_ns
        counts_epochs = scalar.tag.startswith(_EPOCH)
        step, epoch = (None, scalar.step) if counts_epochs else (scalar.step, None)
        value = scalar.value if math.isfinite(scalar.value) else None
        metric = (f"{prefix}{scalar.tag}"[:200], value, step, epoch, scalar.unix_ns, "tensorboard")
        yield from (_line(["metric", *kept]) for kept in metrics.take(metric))
    yield from (_line(["metric", *kept]) for kept in metrics.rest())
    yield _line(["end", last])


def _line(stated: list[object]) -> str:
    return json.dumps(stated) + "\n"
