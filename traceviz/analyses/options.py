"""What the user tells the analyses about the program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What the user tells the analyses about the program.

    Args:
        step_marker: Regular expression of the NVTX ranges or framework annotations that are steps.
        input_range: Regular expression of the NVTX ranges or framework annotations in which input is loaded.
        basis: Whose classes break the steps down: ``traceviz``, or those of another tool that users compare with.
    """

    step_marker: str | None = None
    input_range: str | None = None
    basis: str = "traceviz"
