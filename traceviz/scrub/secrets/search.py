"""Search of content that is about to be written for all secrets of its source."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path

from traceviz.core.errors import OutputError
from traceviz.scrub.secrets.redactor import BINARY, PACKED, TEXT, Redactor

__all__ = ["BINARY", "PACKED", "TEXT", "check_file", "check_stream", "joined", "leak"]

_PIECE = 1 << 23


def check_file(path: Path, redactor: Redactor, content_kind: int = TEXT) -> int:
    """Search the bytes of a file; return their number.

    Args:
        path: The file.
        redactor: Redactor with the secrets.
        content_kind: Kind of the bytes (see :meth:`Redactor.position_in`).

    Raises:
        OutputError: the file contains a secret.
    """
    size = path.stat().st_size
    if size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            position = redactor.position_in(content, content_kind)
        if position >= 0:
            raise leak(f"at byte {position}")
    return size


def check_stream(blocks: Iterable[bytes], redactor: Redactor) -> int:
    """Search a text that comes in blocks; return its length in bytes.

    Raises:
        OutputError: the text contains a secret.
    """
    size, rest = 0, b""
    for block in joined(blocks):
        size += len(block)
        piece = rest + block
        position = redactor.position_in(piece)
        if position >= 0:
            raise leak(f"at byte {size - len(piece) + position} of the text")
        rest = piece[-redactor.reach :]
    return size


def joined(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same text in pieces of some megabytes, as searching many small ones is slow."""
    parts: list[bytes] = []
    size = 0
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size >= _PIECE:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def leak(where: str, fix: str = "") -> OutputError:
    """Return the error for a secret that would remain in the output."""
    return OutputError(
        f"A secret of the source would have stayed in the output, {where}.",
        "Nothing was written.",
        fix or "Share a traceviz folder instead: traceviz convert TRACE -o DIR, then traceviz scrub DIR -o OUT.",
    )
