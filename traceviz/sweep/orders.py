"""The runs of a sweep: their order, their folders, and which of them exist already.

The run folders are the only state of a sweep::

    finished, failed, killed, timed out ----> a result, kept
    interrupted, or still "running" --------> no result: the run is made again
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from traceviz.collectors.run.plan import RUNS, file_name
from traceviz.core.errors import UsageError
from traceviz.core.units import counted
from traceviz.parsers.run.layout import manifest_document
from traceviz.sweep.file import MOST_REPEATS, SweepFile
from traceviz.sweep.settings import REPEAT, Setting, Task, label, settings_of, task_of

SWEEP = "sweep"
"""Member of a run's manifest with the sweep's description of the run."""
MOST_RUNS = 10_000
_MOST_CHARACTERS = 64 << 20
"""Characters of all commands of a sweep."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 120
_RESULTS = frozenset({"finished", "failed", "killed", "timed-out"})


class State(Enum):
    """State of a run in its folder."""

    MISSING = "missing"
    """No result, or the rest of an interrupted run."""
    FINISHED = "finished"
    FAILED = "failed"
    """It ended in another way, which is a result as well."""
    CHANGED = "changed"
    """It has another command, or was recorded in another way."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """A requested run.

    Args:
        task: The task that runs.
        folder: Its run folder, absolute.
        directory: The folder in which the command runs, absolute.
        sweep: Name of the sweep.
    """

    task: Task
    folder: Path
    directory: Path
    sweep: str

    @property
    def label(self) -> str:
        """The setting: ``batch=32, approach=prefetch``."""
        return label({tag: self.task.tags[tag] for tag in self.task.tags if tag not in _CONSTANT})

    @property
    def digest(self) -> str:
        """Hash of the command and how it is recorded; it shows whether a run in the folder matches."""
        task = self.task
        stated = json.dumps([task.command, dict(task.environment), task.collect])
        return hashlib.sha256(stated.encode(errors="surrogatepass")).hexdigest()[:16]


_CONSTANT: frozenset[str] = frozenset({REPEAT})


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that can be run.

    Args:
        name: Its name.
        folder: The folder of its runs, absolute.
        settings: Its settings.
        orders: All its runs, in rounds; each round contains every setting once.
        source: The file as it was written.
    """

    name: str
    folder: Path
    settings: tuple[Setting, ...]
    orders: tuple[Order, ...]
    source: SweepFile

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags that distinguish the settings."""
        return tuple(dict.fromkeys(tag for setting in self.settings for tag in setting.tags))


def plan(source: SweepFile, name: str, directory: Path, seed: int, repeats: int | None = None) -> Sweep:
    """Plan the runs of a sweep. Each round goes through all settings, in its own order.

    A machine that slows down then slows every setting equally.

    Args:
        source: The sweep file.
        name: Name of the sweep if the file states none.
        directory: The folder in which commands run; relative folders of runs are below it. Absolute.
        seed: Determines the orders of the rounds.
        repeats: Number of runs of each setting; ``None`` for the number in the file.

    Raises:
        UsageError: as :func:`.settings.settings_of` and :func:`.settings.task_of`; or there are too many runs.
    """
    called = source.name or name
    folder = directory / (source.runs or Path(RUNS) / file_name(called))
    settings = settings_of(source)
    repeats = repeats or source.repeats
    if repeats > MOST_REPEATS:
        raise UsageError(f"{repeats:,} repeats are more than the {MOST_REPEATS:,} that a sweep may have.")
    if (runs := len(settings) * repeats) > MOST_RUNS:
        raise UsageError(
            f"{counted(len(settings), 'setting')} × {counted(repeats, 'repeat')} = {runs:,} runs are more than the "
            f"{MOST_RUNS:,} that a sweep may have.",
            fix="Write fewer repeats or values, or several sweeps.",
        )
    orders: list[Order] = []
    characters = 0
    for repeat in range(1, repeats + 1):
        shuffled = list(settings)
        random.Random(f"{seed}:{repeat}").shuffle(shuffled)  # noqa: S311 (an order, no secret)
        for setting in shuffled:
            run = folder / folder_name(setting.tags, repeat)
            orders.append(Order(task_of(source, setting, repeat), run, directory, called))
            characters += sum(map(len, (*orders[-1].task.command, *orders[-1].task.environment.values())))
            if characters > _MOST_CHARACTERS:
                raise UsageError(
                    f"The commands of this sweep have more than {_MOST_CHARACTERS >> 20} million characters together.",
                    fix="Put long texts into files, or write several sweeps.",
                )
    _check_distinct(orders)
    return Sweep(called, folder, settings, tuple(orders), source)


def _check_distinct(orders: Sequence[Order]) -> None:
    """Refuse settings that run the same command.

    Their difference would be noise, and hide that a tag is missing in the command.
    """
    known: dict[tuple[str, str | None], Order] = {}
    for order in orders:
        key = (order.digest, order.task.tags.get(REPEAT))
        other = known.setdefault(key, order)
        if other is not order:
            raise UsageError(
                f"{other.label} and {order.label} run the same command: {shlex.join(order.task.command)}",
                "The command does not depend on a tag by which they differ.",
                f"Write {{{_difference(other.task.tags, order.task.tags)}}} where its value belongs.",
            )


def _difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    return next((tag for tag in (*one, *other) if one.get(tag) != other.get(tag)), "tag")


def folder_name(tags: Mapping[str, str], repeat: int) -> str:
    """Return the folder of a run: ``batch=32+approach=prefetch+1``; if that cannot be a name, add a digest of the tags.

    >>> folder_name({"batch": "32", "approach": "prefetch"}, 1), folder_name({"path": "a/b"}, 2)
    ('batch=32+approach=prefetch+1', 'path=a-b+8f1f9cf4+2')
    """
    parts = [f"{tag}={_UNFIT.sub('-', value)}" for tag, value in tags.items()]
    name = "+".join(parts) or "run"
    if len(name) > _LONGEST_NAME or any(_UNFIT.search(value) for value in tags.values()):
        digest = hashlib.sha256(json.dumps(dict(tags), sort_keys=True).encode(errors="surrogatepass")).hexdigest()
        name = f"{name[:_LONGEST_NAME]}+{digest[:8]}"
    return f"{name}+{repeat}"


def state_of(order: Order) -> State:
    """Return the state of a run from its folder."""
    return state_in(manifest_document(order.folder), order)


def state_in(manifest: Mapping[str, Any], order: Order) -> State:
    """Return the state of a run from the manifest in its folder; the manifest is empty if there is none."""
    status = manifest.get("status")
    if status not in _RESULTS:
        return State.MISSING
    stated = manifest.get(SWEEP)
    digest = stated.get("digest") if isinstance(stated, dict) else None
    if digest is not None and digest != order.digest:
        return State.CHANGED
    if status == "finished":
        return State.FINISHED
    # A run that outlived its sweep may have failed because no process read its output any more.
    return State.FAILED if digest is not None else State.MISSING
