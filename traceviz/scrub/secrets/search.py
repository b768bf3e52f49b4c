"""Searching content that is about to be written for every secret of its source."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from traceviz.errors import OutputError
from traceviz.scrub.secrets.secrets import SHORT

_PIECE = 1 << 23


def position_of_secret(content: bytes | mmap.mmap, secrets: Iterable[bytes], *, words: bool = True) -> int:
    """Where the first secret stands in ``content``; -1 where none does.

    Args:
        content: Raw bytes.
        secrets: What must not be there.
        words: Look for short secrets too, as whole words. In compressed bytes any three letters occur by chance.
    """
    for secret in secrets:
        if len(secret) >= SHORT:
            position = content.find(secret)
        elif words and content.find(secret) >= 0:
            match = re.search(rb"(?<![A-Za-z0-9])%b(?![A-Za-z0-9])" % re.escape(secret), content)
            position = match.start() if match else -1
        else:
            position = -1
        if position >= 0:
            return position
    return -1


def check_file(path: Path, secrets: Sequence[bytes], *, words: bool = True) -> int:
    """Search the bytes of a file; returns how many there are.

    Raises:
        OutputError: a secret is among them.
    """
    size = path.stat().st_size
    if size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            position = position_of_secret(content, secrets, words=words)
        if position >= 0:
            raise leak(f"at byte {position}")
    return size


def check_stream(blocks: Iterable[bytes], secrets: Sequence[bytes]) -> int:
    """Search a text that comes in blocks; returns its length in bytes.

    Raises:
        OutputError: a secret is in it.
    """
    size, rest = 0, b""
    reach = max(map(len, secrets), default=0) + 1  # a word is recognised by the byte after it
    for block in joined(blocks):
        size += len(block)
        piece = rest + block
        position = position_of_secret(piece, secrets)
        if position >= 0:
            raise leak(f"at byte {size - len(piece) + position} of the text")
        rest = piece[-reach:]
    return size


def joined(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same text in pieces of some megabytes: searching many small ones is slow."""
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
    """The error where a secret would have stayed."""
    return OutputError(
        f"A secret of the source would have stayed in the output, {where}.",
        "Nothing was written.",
        fix or "Share a traceviz folder instead: traceviz convert TRACE -o DIR, then traceviz scrub DIR -o OUT.",
    )
