"""Reasons why a capture cannot be judged, and remedies, as values of which a report shows what it has room for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class ReasonCode(Enum):
    """Why the input is not judged."""

    SERVES = auto()
    TRAINS_NOTHING = auto()
    NO_STEPS = auto()
    NO_SIGN_OF_TRAINING = auto()
    NO_RANGES = auto()
    NO_RANGES_NOR_DEVICE = auto()
    NO_HOST = auto()
    FEW_STEPS = auto()


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason.

    Args:
        code: The kind of reason.
        fact: What is the case, within a sentence.
        consequence: What follows from it; the first sentence of a report omits it.
    """

    code: ReasonCode
    fact: str
    consequence: str = ""

    @property
    def text(self) -> str:
        """The fact and its consequence, within a sentence."""
        return f"{self.fact}, so {self.consequence}" if self.consequence else self.fact


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do so that the next capture can be judged.

    Args:
        first: The first way; empty if nothing helps.
        others: The other ways, with the punctuation before them; the first sentence of a report omits them.
    """

    first: str = ""
    others: str = ""

    @property
    def text(self) -> str:
        """All ways."""
        return f"{self.first}{self.others}"

    @property
    def brief(self) -> str:
        """The first way, as a sentence."""
        return f"{self.first.rstrip('.')}." if self.first else ""


NO_REMEDY = Remedy()
