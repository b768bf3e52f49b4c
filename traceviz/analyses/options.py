"""What the user tells the analyses about the program."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from traceviz.core.errors import UsageError

OURS = "traceviz"
"""The basis with the classes of this program."""

BASES: tuple[str, ...] = (OURS, "tensorboard", "xprof", "kineto")
"""Values of the option ``--basis``: whose classes break the steps down."""


StepTime = Literal["auto", "host", "device"]
"""Whose time a step is where both are known: as the host marked it, or the device work that it launched."""


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What the user tells the analyses about the program.

    Args:
        step_marker: Regular expression of the NVTX ranges or framework annotations that are steps.
        input_range: Regular expression of the NVTX ranges or framework annotations in which input is loaded.
        basis: Whose classes break the steps down, one of :data:`BASES`: ours, or those of another tool that users
            compare with.
        step_time: Whose time a step is. By itself, that of devices where the host runs ahead of them; sides of a
            comparison have the same.
    """

    step_marker: str | None = None
    input_range: str | None = None
    basis: str = OURS
    step_time: StepTime = "auto"


def check_basis(name: str) -> None:
    """Check that there is a basis of that name.

    Raises:
        UsageError: there is none; the error lists those that exist.
    """
    if name not in BASES:
        raise UsageError.unknown("basis", name, BASES)


def is_pattern(text: str) -> bool:
    """Whether ``text`` is a regular expression that both Python and polars accept, and not empty."""
    import polars as pl  # noqa: PLC0415 (loaded only where somebody gives a pattern)

    try:
        re.compile(text)
        pl.Series([""]).str.contains(text)
    except (re.error, pl.exceptions.ComputeError):
        return False
    return bool(text)
