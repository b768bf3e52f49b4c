"""Changes of gzip files: what they hold, and how it is packed."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from random import Random

from tests.fuzz.cases import Step
from tests.fuzz.mutations.octets import spoil


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
