"""The values that every column of every format must bear, and what a format is to the test: a sample with columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

ABSENT: Final = object()
"""Stands for a column that is not there."""

VALUES: dict[str, Any] = {
    "2^63": 2**63,
    "-2^63": -(2**63),
    "2^63-1": 2**63 - 1,
    "-1": -1,
    "null": None,
    "text": "text",
    "empty": "",
    "surrogate": "\ud800",
    "1 MB": "x" * 10**6,
    "absent": ABSENT,
}

Place = tuple[str, ...]
"""Place of a value in a sample: a table and a column, or a path of keys."""


class Sample(ABC):
    """A small input of one format, whose columns are found in it."""

    @abstractmethod
    def places(self) -> Sequence[Place]:
        """Every column, in an order that does not change."""

    @abstractmethod
    def write(self, place: Place, value: Any, folder: Path) -> Path | None:
        """The sample with ``value`` at ``place``, written into the empty ``folder``; ``None`` if that cannot be."""


def in_utf8(text: str) -> bytes:
    """Return bytes of a text, half of a surrogate pair included: no valid UTF-8 then."""
    return text.encode("utf-8", "surrogatepass")
