"""Interface of the scanners that find events in blocks of text: compiled or portable."""

from __future__ import annotations

from typing import Protocol

from traceviz.parsers.kineto.decode.columns import Pieces
from traceviz.parsers.shared.json.walk import Step


class Scanner(Protocol):
    """Collects the events of one file."""

    name: str

    def feed(self, text: bytes, place: int) -> Step:
        """Take the complete elements of a list of events from ``place`` on.

        ``place`` is before an element, a comma or the bracket that ends the list.

        Raises:
            OverflowError: there are more than 2,147,483,647 events or distinct texts.
        """

    def pieces(self) -> Pieces:
        """Return the events found; called once, at the end."""
