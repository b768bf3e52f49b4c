"""Makes a case smaller: leaves out the steps that its fault does not need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.fuzz.cases import Case, Depth
from tests.fuzz.runner import run_case


def small(case: Case, samples: Sequence[Path], folder: Path) -> Case:
    """Return the case without each step that can go; itself if it shows no fault."""
    wanted = _shown(case, samples, folder)
    if wanted is None:
        return case
    for step in range(len(case.steps(samples))):
        less = replace(case, without=case.without | {step})
        if step not in case.without and _shown(less, samples, folder) == wanted:
            case = less
    return case


def _shown(case: Case, samples: Sequence[Path], folder: Path) -> tuple[str, str, str] | None:
    _, fault = run_case(case, samples, folder, Depth(random=case.random("depth")))
    return None if fault is None else (fault.kind, fault.what, fault.place)
