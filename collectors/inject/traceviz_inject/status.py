"""Reports of a process on its recording: lines on stderr, and ``status.json`` and ``problems.jsonl`` in its folder.

Nothing here ever raises: a full disk or a removed folder must not break the program.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # the module typing takes as long to load as all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PROCESSES = "processes.jsonl"
"""File in the raw folder with one line per Python process that was reached: proof that the hooks were installed."""

STATUS = "status.json"
"""File in the folder of a recording process with its state."""

PROBLEMS = "problems.jsonl"
"""File in the same folder with its problems."""

MOST_CHARACTERS = 2000
"""Maximum length of a message: frameworks quote whole graphs."""

_complained: set[str] = set()


def complain(message: str) -> None:
    """Write one line to stderr; the same line only once."""
    message = harmless(message)
    if message in _complained or sys.stderr is None:
        return
    _complained.add(message)
    try:
        sys.stderr.write(f"traceviz: {message}\n")
    except Exception:  # noqa: BLE001 closed, on a full disk, or replaced by the program
        return


def harmless(message: str) -> str:
    """Return a message on one line, without its middle if it is long, and without terminal control characters."""
    if len(message) > MOST_CHARACTERS:
        message = f"{message[: MOST_CHARACTERS // 2]} ... {message[-MOST_CHARACTERS // 2 :]}"
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in message
    )


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with its failures reported in one line instead of raised: the program has priority."""

    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception as error:  # noqa: BLE001 no error of ours may stop the program
            complain(f"a part of the recording is off: {explain(error)}")
            return None

    return call


GUARDED = guarded(len).__code__
"""The code of all guarded functions: what they call is our work, not that of the program."""


def explain(error: BaseException) -> str:
    """Return the first line of an error, with its type."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def note_process(run: str) -> None:
    """Write a line below the folder ``run`` that the hooks are installed in this process; without the module json."""
    python = "%d.%d.%d" % sys.version_info[:3]  # noqa: UP031
    line = f'{{"pid": {os.getpid()}, "ppid": {os.getppid()}, "python": "{python}"}}\n'
    append(os.path.join(run, "raw", PROCESSES), line)  # noqa: PTH118


class Status:
    """State of one collector in this process.

    Args:
        folder: Folder of the files: the one that this process owns below the collector's folder.
        framework: Name of the framework that is recorded.
    """

    __slots__ = ("_facts", "_folder")

    def __init__(self, folder: str, framework: str) -> None:
        self._folder = folder
        self._facts: dict[str, Any] = {
            "pid": os.getpid(),
            "state": "waiting",
            "first_step": None,
            "steps_recorded": 0,
            "stop_cost_ns": None,
            "framework": framework,
            "version": None,
        }

    def __getitem__(self, fact: str) -> Any:
        """Return the current value of ``fact``."""
        return self._facts.get(fact)

    def update(self, **facts: Any) -> None:
        """Note facts and write them all."""
        import json  # noqa: PLC0415 most Pythons below a training script report nothing
        import time  # noqa: PLC0415

        self._facts.update(facts, written_unix_ns=time.time_ns())
        path = os.path.join(self._folder, STATUS)  # noqa: PTH118
        temporary = f"{path}.{os.getpid()}"
        try:
            os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103
            with open(temporary, "w", encoding="utf-8") as file:  # noqa: PTH123
                json.dump(self._facts, file)
            os.replace(temporary, path)  # noqa: PTH105
        except OSError as error:
            complain(f"{path} cannot be written: {explain(error)}")

    def problem(self, code: str, message: str, fix: str = "", *, aloud: bool = True) -> None:
        """Note what went wrong; if ``aloud``, print it once, too: the user cannot wait for the end of the run."""
        note_problem(self._folder, code, message, fix, aloud=aloud)


def note_problem(folder: str, code: str, message: str, fix: str = "", *, aloud: bool = True) -> None:
    """Note what went wrong in the folder of a recording process; if ``aloud``, print it once, too."""
    import json  # noqa: PLC0415 most Pythons below a training script report nothing

    message = harmless(message)
    if aloud:
        complain(message)
    line = json.dumps({"code": code, "message": message, "fix": fix})
    append(os.path.join(folder, PROBLEMS), f"{line}\n")  # noqa: PTH118


def append(path: str, line: str) -> None:
    """Append one line; a single write, so that lines of several processes stay whole."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        with open(path, "ab", buffering=0) as file:  # noqa: PTH123
            file.write(line.encode())
    except OSError as error:
        complain(f"{path} cannot be written: {explain(error)}")
