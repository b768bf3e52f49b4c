"""Verdicts as values: the code of a report's verdict, the verdict on the input, and causes other than findings.

The strings are those of the JSON report. Code compares members, so that mypy finds a misspelt one.
"""

from __future__ import annotations

from enum import Enum, StrEnum


class VerdictCode(StrEnum):
    """The code of the verdict of a report, for programs."""

    HIGHLY_INPUT_BOUND = "highly-input-bound"
    MODERATELY_INPUT_BOUND = "moderately-input-bound"
    POSSIBLY_INPUT_BOUND = "possibly-input-bound"
    NOT_INPUT_BOUND = "not-input-bound"
    SERVING = "serving"
    CANNOT_JUDGE = "cannot-judge"
    PARTIAL = "partial"

    # Comparisons
    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE = "no-change"

    # Archives, trends, run folders, sweeps
    ARCHIVE = "archive"
    POPULATION = "population"
    EMPTY = "empty"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGE = "change"
    RUNS = "runs"
    SWEEP = "sweep"
    NONE = ""

    @classmethod
    def _missing_(cls, value: object) -> VerdictCode | None:
        """Keep the code of a report that another version of traceviz saved."""
        if not isinstance(value, str):
            return None
        code = str.__new__(cls, value)
        code._name_, code._value_ = value, value
        return code

    @property
    def text(self) -> str:
        """The code with spaces, as in the catalogue of an archive: ``highly input-bound``."""
        return self.value.replace("-", " ", 1)

    @property
    def is_blind(self) -> bool:
        """True if the report could not judge the input, or was not asked to."""
        return self in {VerdictCode.CANNOT_JUDGE, VerdictCode.PARTIAL}


class InputVerdict(Enum):
    """The verdict of section ``input_pipeline``; a program without training is *not judged*.

    No ``StrEnum``: mypy refuses to compare a member with a string.
    """

    HIGHLY_BOUND = "highly input-bound"
    MODERATELY_BOUND = "moderately input-bound"
    POSSIBLY_BOUND = "possibly input-bound"
    NOT_BOUND = "not input-bound"
    CANNOT_JUDGE = "cannot judge"
    NOT_JUDGED = "not judged"

    @classmethod
    def read(cls, value: object) -> InputVerdict | None:
        """Return the verdict with this string, from the facts of a report; ``None`` for any other value."""
        return next((verdict for verdict in cls if verdict.value == value), None)

    @property
    def code(self) -> VerdictCode:
        """The code of a report with this verdict."""
        if self is InputVerdict.NOT_JUDGED:
            return VerdictCode.SERVING
        return VerdictCode(self.value.replace(" ", "-"))

    @property
    def title(self) -> str:
        """The verdict at the start of a sentence."""
        return self.value.capitalize()

    @property
    def is_judged(self) -> bool:
        """True if there was an input that could be judged."""
        return self not in {InputVerdict.CANNOT_JUDGE, InputVerdict.NOT_JUDGED}

    @property
    def is_measured(self) -> bool:
        """True if the wait for input was measured; a suspicion is inferred from the absence of other host activity."""
        return self.is_judged and self is not InputVerdict.POSSIBLY_BOUND

    @property
    def is_bound(self) -> bool:
        """True if steps waited for a measured large part of their time."""
        return self in {InputVerdict.HIGHLY_BOUND, InputVerdict.MODERATELY_BOUND}


NO_INPUT_VERDICT = frozenset(verdict.value for verdict in InputVerdict if not verdict.is_judged)
"""Strings of the verdicts on an input that was not judged, as in the facts of section ``input_pipeline``."""


class Cause(StrEnum):
    """Causes of a verdict that code distinguishes; others are keys of candidates, such as the name of a finding."""

    INPUT = "input"
    POSSIBLE_INPUT = "possible_input"
    UNEXPLAINED = "unexplained"
    HEALTHY = "healthy"
    UNKNOWN = ""
