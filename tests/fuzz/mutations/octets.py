"""Changes of bytes that know nothing of the format, and of gzip files: what they hold, and how it is packed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.fuzz.cases import Step

Change = Callable[[Random, bytes], bytes]

LARGE = 1 << 18
"""From this many bytes on, which an earlier step made of a small sample, changes do not look at the structure: to take
it apart in Python takes longer than everything that is done with the input."""
_LENGTHS = (1, 1, 2, 4, 8, 16, 64, 512, 4096)


def in_file(change: Change) -> Step:
    """Return the step that changes the bytes of a file."""

    def step(random: Random, path: Path) -> None:
        path.write_bytes(change(random, path.read_bytes()))

    return step


def spoil(random: Random, data: bytes) -> bytes:
    """Return ``data`` with one change: bits, numbers, ranges that are lost, repeated, moved or foreign."""
    at = random.randrange(len(data) + 1)
    length = random.choice(_LENGTHS)
    part = data[at : at + length]
    match random.randrange(10):
        case 0 | 1 if part:
            return data[:at] + bytes([part[0] ^ 1 << random.randrange(8)]) + data[at + 1 :]
        case 2:
            return data[:at] + random.choice((b"\x00", b"\x7f", b"\x80", b"\xff", b"\n", b'"', b"9")) + data[at + 1 :]
        case 3:
            return data[:at]
        case 4:
            return data[:at] + data[at + length :]
        case 5:
            return data[:at] + part * random.choice((2, 3, 20)) + data[at + length :]
        case 6:
            to = random.randrange(len(data) + 1)
            return data[:to] + part + data[to + length :]
        case 7:
            number = random.choice((0, 1, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1))
            size = random.choice((1, 2, 4, 8))
            value = (number & 256**size - 1).to_bytes(size, random.choice(("little", "big")))
            return data[:at] + value + data[at + size :]
        case 8:
            return data[:at] + random.randbytes(length) + data[at + length :]
        case _:
            return data[:at] + bytes([random.choice((0, 10, 65, 255))]) * length + data[at + length :]


SPOIL: Step = in_file(spoil)


def inside(step: Step) -> Step:
    """Return ``step`` on the contents of a gzip file; on its bytes if it cannot be unpacked."""

    def packed(random: Random, path: Path) -> None:
        data = path.read_bytes()
        try:
            plain = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            path.write_bytes(spoil(random, data))
            return
        path.write_bytes(plain)
        step(random, path)
        path.write_bytes(gzip.compress(path.read_bytes(), 1, mtime=0))

    return packed


def repack(random: Random, path: Path) -> None:
    """Pack in another way: several members, no compression, a wrong sum, something after the end, a cut."""
    data = path.read_bytes()
    try:
        plain = gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        path.write_bytes(spoil(random, data))
        return
    at = random.randrange(len(plain) + 1)
    match random.randrange(7):
        case 0:
            packed = gzip.compress(plain[:at], 1, mtime=0) + gzip.compress(plain[at:], 9, mtime=0)
        case 1:
            packed = gzip.compress(plain, 0, mtime=0)
        case 2:
            packed = data[:-8] + spoil(random, data[-8:])
        case 3:
            packed = data + random.choice((b"\0" * 100, b"x", plain[:50], gzip.compress(b"", mtime=0), data))
        case 4:
            packed = data[: random.randrange(len(data) + 1)]
        case 5:
            packed = gzip.compress(data, 1, mtime=0)  # packed twice
        case _:
            packed = gzip.compress(plain + b" " * random.choice((10, 10**5, 3 * 10**6)), 1, mtime=0)
    path.write_bytes(packed)
