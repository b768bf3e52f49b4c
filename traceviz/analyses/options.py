"""Options of the user about the program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from traceviz.core.errors import UsageError

OURS = "traceviz"
"""The basis with the classes of traceviz."""

BASES: tuple[str, ...] = (OURS, "tensorboard", "xprof", "kineto")
"""Values of the option ``--basis``: the tool whose classes break the steps down."""


StepTime = Literal["auto", "host", "device"]
"""Source of the length of a step if both are known: the host's marks, or the device work that the step launched."""


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """Options of the user about the program.

    Args:
        step_marker: Regular expression of the NVTX ranges or framework annotations that are steps.
        input_range: Regular expression of the NVTX ranges or framework annotations in which input is loaded.
        basis: The tool whose classes break the steps down, one of :data:`BASES`: traceviz, or another tool that users
            compare with.
        step_time: Source of the length of a step. With ``auto``, devices if the host launches work in advance. All
            sides of a comparison use the same source.
    """

    step_marker: str | None = None
    input_range: str | None = None
    basis: str = OURS
    step_time: StepTime = "auto"


def check_basis(name: str) -> None:
    """Check that a basis of that name exists.

    Raises:
        UsageError: it does not exist; the error lists those that do.
    """
    if name not in BASES:
        raise UsageError.unknown("basis", name, BASES)


def is_pattern(text: str) -> bool:
    """Return whether ``text`` is a regular expression that both Python and polars accept, and not empty."""
    import polars as pl  # noqa: PLC0415 (loaded only where somebody gives a pattern)

    try:
        re.compile(text)
        pl.Series([""]).str.contains(text)
    except (re.error, pl.exceptions.ComputeError):
        return False
    return bool(text)
