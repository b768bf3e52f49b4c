"""Problems for Python processes that ran without the hooks, with fixes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from traceviz.collectors.base import Plan, Problem
from traceviz.collectors.frameworks.harvest import PROCESSES
from traceviz.collectors.frameworks.injection import FOLDER, INJECTED, STACKS_RATE, VARIABLE, settings_path
from traceviz.collectors.program.pythons import Hooks, Unhooked
from traceviz.core.units import format_ns
from traceviz.untrusted.json_documents import document_of

LOST = "hooks-lost"
"""Code of the problem; :mod:`traceviz.render.first_screen` shows it first."""
NOT_INJECTED = "not-injected"
"""Code of the problem that no process was reached, for any reason."""
_LEAST_S = 0.5
"""Smallest processor time of a process that matters, if others have the hooks."""
_MOST_NAMED = 3
_WHY = {"replaced": "PYTHONPATH was replaced", "emptied": "the environment was emptied"}
_FIX = {
    "replaced": "Add to PYTHONPATH instead of replacing it: PYTHONPATH=FOLDER:$PYTHONPATH.",
    "emptied": f"Hand PYTHONPATH, {VARIABLE} and {STACKS_RATE} on, as env -i and sudo do not.",
}


def hooks_of(plan: Plan) -> Hooks | None:
    """Return how processes of a run find the hooks; ``None`` if no collector needs them."""
    if not set(INJECTED).intersection(plan.collectors):
        return None
    return Hooks(str(FOLDER), VARIABLE, settings_path(plan))


def lost_hooks(plan: Plan, seen: Iterable[tuple[int, Unhooked]]) -> tuple[Problem, ...]:
    """Return the problem that Python processes ran without hooks; nothing if none of them matters.

    Args:
        plan: The plan of the run.
        seen: Python processes without hooks, by pid.
    """
    reached = _reached(plan.folder / "raw" / PROCESSES)
    lost = [process for pid, process in seen if pid not in reached and (not reached or process.cpu_s >= _LEAST_S)]
    if not lost:
        return ()
    groups: dict[tuple[str, str], list[float]] = {}
    for process in sorted(lost, key=lambda process: -process.cpu_s):
        groups.setdefault((process.name, process.why), []).append(process.cpu_s)
    named = [_in_words(*key, times) for key, times in groups.items()]
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    count, whose = ("A Python process", "its") if len(lost) == 1 else (f"{len(lost)} Python processes", "their")
    message = (
        f"{count} ran without hooks, so that {whose} steps and stacks were not recorded. "
        f"{'; '.join(named[:_MOST_NAMED])}{more}."
    )
    fixes = dict.fromkeys(_FIX.get(why, f"Run python without {why}.") for _, why in groups)
    return (Problem(LOST, message, " ".join(fixes)),)


def _in_words(name: str, why: str, times: Sequence[float]) -> str:
    """Return ``train.py (2 processes): PYTHONPATH was replaced, 12 s of processor time``."""
    count = f" ({len(times)} processes)" if len(times) > 1 else ""
    reason = _WHY.get(why, f"it runs with python {why}")
    return f"{name}{count}: {reason}, {format_ns(round(sum(times) * 1e9))} of processor time"


def _reached(path: Path) -> Collection[int]:
    """Return the processes that have loaded the hooks."""
    reached: set[int] = set()
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return reached
    for line in lines:
        try:
            reached.add(int(document_of(line)["pid"]))
        except (ValueError, TypeError, KeyError):  # cut off
            continue
    return reached
