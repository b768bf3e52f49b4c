"""The end of a run as text: an outcome, and a reason.

The reason repeats no output of the program except the name of an exception's class: ``exit code 1: ValueError``.
"""

from __future__ import annotations

import re
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traceviz.core.units import format_limit

OUT_OF_MEMORY = "out of memory"
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""Exit codes of shells, and of ``traceviz collect``, for a command that they cannot run."""

_SHORT_OF_MEMORY = re.compile(
    r"\b(?:MemoryError|\w*OutOfMemory\w*|ResourceExhaustedError|RESOURCE_EXHAUSTED|bad_alloc|std::bad_alloc)\b"
    r"|\bOOM when allocating|\bout of memory\b|Cannot allocate memory|can't allocate memory|not enough memory"
    r"|CUDNN_STATUS_ALLOC_FAILED|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation|oom-kill",
    re.IGNORECASE,
)
"""Messages of frameworks, compiled libraries and the system when memory runs out."""
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w{0,79})(?::|$)")
"""The last line of a traceback: the class of the exception with its modules, then its message."""
_SEARCHED = 200
"""Lines of output, from the end, that are searched for a reason."""


@dataclass(frozen=True, slots=True)
class RunEnding:
    """The end of a run.

    Args:
        outcome: ``finished``, ``failed``, ``killed``, ``interrupted`` or ``timed-out``.
        reason: Why, in a few words; empty if it finished.
        last_lines: The last lines that the program wrote, if they were kept; as private as its command line.
    """

    outcome: str
    reason: str = ""
    last_lines: tuple[str, ...] = ()


def ending_of(
    outcome: str,
    *,
    code: int | None,
    number: int | None,
    limit_s: float | None = None,
    starved: bool = False,
    output: str = "",
) -> RunEnding:
    """Return the ending of a run.

    Args:
        outcome: The status in its manifest.
        code: Exit code of the program.
        number: The signal that ended it.
        limit_s: Its time limit.
        starved: True if the system killed processes to get memory while it ran.
        output: The last output of the program; empty if none was kept.
    """
    if outcome == "timed-out":
        return RunEnding(outcome, f"timed out after {format_limit(limit_s)}" if limit_s else "timed out")
    if outcome not in {"failed", "killed"}:
        return RunEnding(outcome)
    exception, last_words = _last_words(output.splitlines()[-_SEARCHED:])
    was_killed = number == signal.SIGKILL or code == 128 + signal.SIGKILL
    if (starved and was_killed) or any(map(_SHORT_OF_MEMORY.search, last_words)):
        reason = OUT_OF_MEMORY
    elif number is not None:
        known = {int(name) for name in signal.Signals}
        reason = signal.Signals(number).name if number in known else f"signal {number}"
    elif code in {NOT_FOUND, NOT_EXECUTABLE}:
        reason = "command not found" if code == NOT_FOUND else "command cannot be executed"
    else:
        reason = "unknown exit code" if code is None else f"exit code {code}"
        reason = f"{reason}: {exception}" if exception else reason
    return RunEnding(outcome, reason)


def _last_words(lines: list[str]) -> tuple[str, list[str]]:
    """Return the class of the exception that ended a Python program, and its message; else all lines.

    Indented lines quote source code, or belong to a list. A program may report a lack of memory and keep running.
    """
    starts = [place for place, line in enumerate(lines) if line == _TRACEBACK]
    last = lines[starts[-1] + 1 :] if starts else []
    said = [line for line in last if line[:1] not in {" ", "\t", ""}]
    if match := _EXCEPTION.match(said[0]) if said else None:
        return match["name"], said
    return "", [line for line in lines if line[:1] not in {" ", "\t"}]


def oom_kills() -> int:
    """Return the number of processes that the system has killed to get memory, in our control group or on this machine.

    0 if the system does not report it.
    """
    group = Path("/sys/fs/cgroup")  # of version 2
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
        group /= next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    for path in (group / "memory.events", Path("/proc/vmstat")):
        with suppress(OSError, ValueError):
            facts = dict(line.split() for line in path.read_text(encoding="ascii").splitlines())
            return int(facts.get("oom_kill", 0))
    return 0
