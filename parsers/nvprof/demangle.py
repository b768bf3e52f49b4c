"""Names of kernels as they stand in the source, from mangled ones: in a child process, as names come from anywhere.

Substitutions let each part of a mangled name repeat all that came before, so the text that it stands for can double
with every few characters, and the demangler neither stops nor survives that. No bound on the name's length helps: it
would have to be below that of ordinary names. The child, :mod:`traceviz.parsers.nvprof.demangle_child`, has limits.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from traceviz.parsers.nvprof import demangle_child
from traceviz.parsers.shared.notes import Notes

LONGEST_NAME = 10_000
"""Characters of a mangled name that is demangled; the longest real ones have a few thousand."""
MOST_FAILURES = 3
"""Names of one trace that may cost a process; the names that follow stay as they are."""
_PATIENCE_S = 60
"""Seconds to wait for the child: it has limits of its own, unless the machine stands still."""


class Demangler:
    """Demangles the names of one trace; each name once.

    Names that it leaves as they are, since what they stand for passes a limit, are counted, and :meth:`note` says so.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._left: set[str] = set()
        self._failures = 0

    def demangled(self, names: Iterable[str]) -> list[str]:
        """Each name as it stands in the source; the name itself where it is not mangled, damaged or too long.

        Only what begins as a mangled name is one: a kernel named ``i`` is not the type ``int``.
        """
        all_names = list(names)
        self._learn([name for name in dict.fromkeys(all_names) if name not in self._known and _is_mangled(name)])
        return [self._known.get(name, name) for name in all_names]

    def note(self, notes: Notes) -> None:
        """Say how many names are shown mangled."""
        message = "Mangled names that stand for too much text, or are too long themselves: shown as they are."
        notes.add("name-left-mangled", "warning", message, len(self._left))

    def _learn(self, names: Sequence[str]) -> None:
        self._known.update((name, name) for name in names)
        self._left.update(name for name in names if len(name) > LONGEST_NAME)
        waiting = [name for name in names if len(name) <= LONGEST_NAME]
        while waiting and self._failures < MOST_FAILURES:
            answers = _answers(waiting)
            for name, answer in zip(waiting, answers, strict=False):
                if answer.startswith("+"):
                    self._known[name] = answer[1:]
                elif answer == "!":
                    self._left.add(name)
            waiting = waiting[len(answers) :]
            if waiting:  # the child ended at the first of these
                self._failures += 1
                self._left.add(waiting.pop(0))
        self._left.update(waiting)


def _is_mangled(name: str) -> bool:
    return name.startswith(("_Z", "_R")) and name.isprintable()


def _answers(names: Sequence[str]) -> list[str]:
    """What a child answers for ``names``: fewer lines than names where one was too much for it."""
    found = find_spec("pycxxfilt")
    if not sys.executable or not found or not found.origin:
        return []
    command = [sys.executable, "-I", "-S", demangle_child.__file__, str(Path(found.origin).parent.parent)]
    asked = "".join(f"{name}\n" for name in names).encode()
    try:
        done = subprocess.run(
            command, input=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    whole, _, _ = done.stdout.rpartition(b"\n")
    return whole.decode("utf-8", "replace").split("\n") if whole else []
