"""Read large files in pieces, without mapping them: a mapped file that is cut during the read ends the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

WINDOW = 32 << 20
"""Bytes of one window."""


def windows(path: Path, overlap: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the content of a file as windows, each with a flag that is true for the last.

    Each starts with the last ``overlap`` bytes of the previous one. So one of them holds each text up to that length
    whole.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        window = file.read(WINDOW)
        while window:
            piece = file.read(WINDOW)
            yield window, not piece
            window = window[-overlap:] + piece if piece else b""
