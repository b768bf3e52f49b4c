"""What finds events in blocks of text: the compiled scanner, or the portable one."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from traceviz.parsers.kineto.decode.columns import Pieces


class Found(Enum):
    """Why a scanner stopped."""

    MORE = 0
    """The text ended."""
    END = 1
    """The list of events ended."""
    BROKEN = 2
    """A byte cannot stand where it does."""


class Step(NamedTuple):
    """How far a scanner came.

    Args:
        found: Why it stopped there.
        place: Where it stopped: before the element that is not whole, or after the end of the list.
        broken: The byte that cannot stand where it does; otherwise ``place``.
    """

    found: Found
    place: int
    broken: int


class Scanner(Protocol):
    """Collects the events of one file."""

    name: str

    def feed(self, text: bytes, place: int) -> Step:
        """Take the elements of a list of events from ``place`` on, as far as they are whole.

        ``place`` is before an element, a comma or the bracket that ends the list.

        Raises:
            OverflowError: there are more than 2,147,483,647 events or distinct texts.
        """

    def pieces(self) -> Pieces:
        """What was found; called once, at the end."""
