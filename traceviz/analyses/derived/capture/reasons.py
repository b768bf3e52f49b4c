"""Reasons why a capture cannot be judged, and remedies. They are values, so a report shows the parts that fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class ReasonCode(Enum):
    """Reasons for not judging the input."""

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
        fact: The fact, within a sentence.
        consequence: Its consequence; the first sentence of a report omits it.
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
    """Advice on how to make the next capture judgeable.

    Args:
        first: The first way; empty if nothing helps.
        others: The other ways, with their leading punctuation; the first sentence of a report omits them.
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
