"""Large files piece by piece. They are read and not mapped: a mapped file that is cut meanwhile ends the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

WINDOW = 32 << 20
"""Bytes of one window."""


def windows(path: Path, overlap: int) -> Iterator[tuple[bytes, bool]]:
    """The content of a file as windows, each with whether it is the last.

    Each begins with the last ``overlap`` bytes of the one before: what is no longer is whole in one of them.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        window = file.read(WINDOW)
        while window:
            piece = file.read(WINDOW)
            yield window, not piece
            window = window[-overlap:] + piece if piece else b""
