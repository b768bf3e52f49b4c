"""Python processes of a program that cannot have loaded the hooks, by the environment and options that they run with.

The hooks are found through ``PYTHONPATH``, and do nothing without the path of their settings. The kernel shows the
environment and the command line that each process was executed with. A thread looks at the processes of the program
from time to time: what matters runs for longer than the time between two looks.
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
"""Time between two looks: it grows, so that looking costs a long run nothing."""
_PYTHON = re.compile(r"(python|pypy)[0-9.]*t?")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_WITH_VALUE = frozenset("WXQ")
"""Options of Python whose value may be the next word."""
_LAST = frozenset("cm")
"""Options of Python behind which the program's own words follow."""
_IGNORING = "IES"
"""Options of Python that ignore PYTHONPATH, or the module by which it loads hooks."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """How processes find the hooks.

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
        cpu_s: Processor time that it had used when it was last seen.
    """

    name: str
    why: str
    cpu_s: float


@dataclass(slots=True)
class Pythons:
    """What was seen so far.

    Args:
        hooks: How processes find the hooks.
        unhooked: Processes without them, by pid.
    """

    hooks: Hooks
    unhooked: dict[int, Unhooked] = field(default_factory=dict)

    def look(self, roots: Iterable[int]) -> None:
        """Look at processes and their descendants: the last look at a process counts, as it may execute others."""
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
    """Return why a Python does not load the hooks (see :class:`Unhooked`); empty if nothing keeps it from that.

    Args:
        words: Its command line.
        environment: Its environment.
        hooks: How it would find them.
    """
    if ignoring := _ignoring_option(words):
        return ignoring
    settings = environment.get(hooks.variable)
    if settings is None:
        return "emptied"
    if settings != hooks.settings:  # another recording, in it or around it
        return ""
    return "" if hooks.folder in environment.get("PYTHONPATH", "").split(os.pathsep) else "replaced"


def _ignoring_option(words: Sequence[str]) -> str:
    for letters in _options(words):
        for letter in letters:
            if letter in _IGNORING:
                return f"-{letter}"
            if letter in _WITH_VALUE or letter in _LAST:
                break
    return ""


def _options(words: Sequence[str]) -> Iterator[str]:
    """The letters of each word of options of Python; the last one may name what runs."""
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
    """What runs, without folders: ``train.py``, ``-m package.train``, ``-c``."""
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
    """Look at the Python processes of a program while a block lasts.

    Args:
        hooks: How processes find the hooks; ``None``: none are in place, and nothing is looked at.
        roots: Returns the processes whose descendants are looked at.
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
