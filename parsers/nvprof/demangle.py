"""Demangling of kernel names, in a child process because names are untrusted.

Substitutions let each part of a mangled name repeat all parts before it. So the text can double with every few
characters, and the demangler does not survive that. A limit on the name's length does not help: it would have to be
below that of ordinary names. The child, :mod:`traceviz.parsers.nvprof.demangle_child`, has limits.
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
"""Maximum characters of a mangled name to demangle; the longest real ones have a few thousand."""
MOST_FAILURES = 3
"""Maximum number of names of one trace that may crash the child; the names that follow stay mangled."""
_PATIENCE_S = 60
"""Seconds to wait for the child, which has its own limits unless the machine is stalled."""


class Demangler:
    """Demangles the names of one trace, each once.

    Names that exceed a limit stay mangled; :meth:`note` reports their number.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._left: set[str] = set()
        self._failures = 0

    def demangled(self, names: Iterable[str]) -> list[str]:
        """Return each name as in the source; the name itself if it is not mangled, damaged or too long.

        Only names with the prefix of mangled names are demangled: a kernel named ``i`` is not the type ``int``.
        """
        all_names = list(names)
        self._learn(
            [
                name
                for name in dict.fromkeys(all_names)
                if name not in self._known and (name.startswith(("_Z", "_R")) and name.isprintable())
            ]
        )
        return [self._known.get(name, name) for name in all_names]

    def note(self, notes: Notes) -> None:
        """Note the number of names that stay mangled."""
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


def _answers(names: Sequence[str]) -> list[str]:
    """Return the child's answers for ``names``: fewer lines than names if one crashed it."""
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
