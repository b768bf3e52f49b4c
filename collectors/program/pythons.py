"""Detection of Python processes that cannot have loaded the hooks, by their environment and options.

The hooks are found through ``PYTHONPATH``, and do nothing without the path of their settings. The kernel shows the
environment and the command line of each process. A thread inspects the processes of the program periodically. Processes
that matter run for longer than one period.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from traceviz.collectors.program.processes import descendants

_FIRST_S, _LONGEST_S = 0.1, 2.0
"""Time between two inspections: it grows, so that their cost in a long run is negligible."""
_PYTHON = re.compile(r"(python|pypy)[0-9.]*t?")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_WITH_VALUE = frozenset("WXQ")
"""Options of Python whose value may be the next word."""
_LAST = frozenset("cm")
"""Options of Python after which the program's own words follow."""
_IGNORING = "IES"
"""Options of Python that ignore PYTHONPATH or the module that loads the hooks."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The way in which processes find the hooks.

    Args:
        folder: The folder on ``PYTHONPATH``.
        variable: Variable with the path of the settings.
        settings: That path.
    """

    folder: str
    variable: str
    settings: str


@dataclass(frozen=True, slots=True)
class Unhooked:
    """A Python process without hooks.

    Args:
        name: Its script or module, without folders.
        why: ``replaced``: its ``PYTHONPATH`` lacks the folder; ``emptied``: the variable is not in its environment; or
            the option of Python that ignores them: ``-I``.
        cpu_s: Processor time that it had used when it was last inspected.
    """

    name: str
    why: str
    cpu_s: float


@dataclass(slots=True)
class Pythons:
    """The Python processes inspected so far.

    Args:
        hooks: How processes find the hooks.
        unhooked: Processes without them, by pid.
    """

    hooks: Hooks
    unhooked: dict[int, Unhooked] = field(default_factory=dict)

    def look(self, roots: Iterable[int]) -> None:
        """Inspect processes and their descendants. The last inspection of a process counts: it may execute others."""
        roots = tuple(roots)
        for pid in (*roots, *descendants(*roots)):
            with suppress(OSError, ValueError, IndexError):  # it has just ended, or belongs to another user
                self._look_at(pid)

    def _look_at(self, pid: int) -> None:
        folder = Path(f"/proc/{pid}")
        if _PYTHON.fullmatch((folder / "exe").readlink().name) is None:
            self.unhooked.pop(pid, None)
            return
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        pairs = (folder / "environ").read_bytes().decode("utf-8", "replace").split("\0")
        environment = dict(pair.partition("=")[::2] for pair in pairs if pair)
        why = why_unhooked(words, environment, self.hooks)
        if why and words:
            ticks = (folder / "stat").read_bytes().rpartition(b") ")[2].split()
            cpu_s = (int(ticks[11]) + int(ticks[12])) * _TICK_S
            self.unhooked[pid] = Unhooked(_script(words), why, cpu_s)
        else:
            self.unhooked.pop(pid, None)


def why_unhooked(words: Sequence[str], environment: Mapping[str, str], hooks: Hooks) -> str:
    """Return why a Python does not load the hooks (see :class:`Unhooked`); empty if it can load them.

    Args:
        words: Its command line.
        environment: Its environment.
        hooks: How it would find them.
    """
    for letters in _options(words):
        for letter in letters:
            if letter in _IGNORING:
                return f"-{letter}"
            if letter in _WITH_VALUE or letter in _LAST:
                break
    settings = environment.get(hooks.variable)
    if settings is None:
        return "emptied"
    if settings != hooks.settings:  # another recording, inside or around this one
        return ""
    return "" if hooks.folder in environment.get("PYTHONPATH", "").split(os.pathsep) else "replaced"


def _options(words: Sequence[str]) -> Iterator[str]:
    """Yield the letters of each word of Python options; the last one may name the code to run."""
    rest = iter(words[1:])
    for word in rest:
        if word.startswith("--"):
            continue
        if not word.startswith("-") or word == "-":
            return
        yield word[1:]
        ending = next((letter for letter in word[1:] if letter in _LAST or letter in _WITH_VALUE), "")
        if ending in _LAST and ending:
            return
        if ending and word.endswith(ending):
            next(rest, None)


def _script(words: Sequence[str]) -> str:
    """Return the code that runs, without folders: ``train.py``, ``-m package.train``, ``-c``."""
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            return Path(word).name or word
        if word.startswith("--"):
            continue
        for place, letter in enumerate(word[1:], 1):
            if letter == "c":
                return "python -c"
            if letter == "m":
                return f"python -m {word[place + 1 :] or (rest[0] if rest else '')}"
            if letter in _WITH_VALUE:
                if place == len(word) - 1 and rest:
                    rest.pop(0)
                break
    return "python"


@contextmanager
def watching(hooks: Hooks | None, roots: Callable[[], Iterable[int]]) -> Iterator[Pythons]:
    """Inspect the Python processes of a program during a block.

    Args:
        hooks: How processes find the hooks; ``None``: there are no hooks, and nothing is inspected.
        roots: Returns the processes whose descendants are inspected.
    """
    seen = Pythons(hooks or Hooks("", "", ""))
    if hooks is None:
        yield seen
        return
    ended = threading.Event()

    def look() -> None:
        pause_s = _FIRST_S
        while not ended.wait(pause_s):
            seen.look(roots())
            pause_s = min(1.3 * pause_s, _LONGEST_S)

    thread = threading.Thread(target=look, name="traceviz-pythons", daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
