"""Content of one file of a capture, up to any damage. It imports no pyarrow, so that reading can start earlier."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np

from traceviz.core.errors import DamagedTraceError
from traceviz.core.process.memory import Allowance
from traceviz.core.units import format_value
from traceviz.parsers.xplane.decode.raw import Space
from traceviz.parsers.xplane.decode.scan import read_space
from traceviz.parsers.xplane.decode.wire import Damage
from traceviz.parsers.xplane.sniff import GZIP_MAGIC

_AGAIN = "Copy the file again, or record again."
_EMPTY = (
    "The profiler writes an empty file where the capture grows over 2 GiB, and leaves one behind where it is ended "
    "before it finished."
)
_UNLIMITED = Allowance()
_BLOCK = 16 * 2**20
_FREE_BYTES = 64 * 10**6
"""Length always allowed for a file inside a gzip file; beyond, the ratio to the gzip file is limited."""
_MOST_TIMES = 100
_TIMES_ITS_SIZE = 2
"""Minimum ratio of memory for reading a file to its size: the file, and its content."""
_SHORTER = "Record fewer steps, without the Python tracer (python_tracer_level=0), and let the program end the profile."


def read_file(file: Path, allowance: Allowance = _UNLIMITED) -> Space:
    """Return the content of ``file``, up to any damage.

    Raises:
        DamagedTraceError: it is empty, or no part of it can be read.
        OutOfMemoryError: it does not fit in the allowed memory.
    """
    try:
        with file.open("rb") as opened:
            if not opened.read(1):
                raise DamagedTraceError(f"{file.name} is empty.", _EMPTY, _SHORTER)
            opened.seek(0)
            is_compressed = opened.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        if is_compressed:
            space = _read_compressed(file, allowance)
        else:
            allowance.check(file.stat().st_size * _TIMES_ITS_SIZE, file.name)
            space = read_space(_content(file))
    except OSError as error:
        raise DamagedTraceError(f"{file.name} cannot be read.", str(error), _AGAIN) from error
    if not (space.planes or space.errors or space.warnings):
        why = space.damage[0].what if space.damage else "It holds no plane."
        raise DamagedTraceError(f"{file.name} is not a profile that can be read.", why, _AGAIN)
    return space


def _content(file: Path) -> memoryview:
    """Return all of ``file``, read and not mapped: if a mapped file is truncated, the system raises SIGBUS.

    Raises:
        DamagedTraceError: it changed during the read.
        OSError: it cannot be read.
    """
    with file.open("rb", buffering=0) as opened:
        before = os.fstat(opened.fileno())
        data = np.empty(before.st_size, np.uint8).data  # in large pages: fewer have to be cleared
        length = 0
        while length < len(data) and (more := opened.readinto(data[length:])):
            length += more
        has_grown = bool(opened.read(1))
        after = os.fstat(opened.fileno())
    if has_grown or length != len(data) or before.st_mtime_ns != after.st_mtime_ns:
        raise DamagedTraceError(
            f"{file.name} was changed while it was read.",
            f"It held {before.st_size:,} bytes, and {after.st_size if has_grown else length:,} could be read.",
            "Wait until whatever writes or copies it has ended.",
        )
    return data


def _read_compressed(file: Path, allowance: Allowance) -> Space:
    """Return the file inside a gzip file, or its start if the gzip file is cut short."""
    rest, data = file.read_bytes(), bytearray()
    most = max(_FREE_BYTES, _MOST_TIMES * len(rest))
    try:
        while rest.startswith(GZIP_MAGIC):  # a gzip file may consist of several
            inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            while not inflate.eof and (block := inflate.decompress(rest, _BLOCK)):
                data += block
                rest = inflate.unconsumed_tail
                if len(data) > most:
                    raise DamagedTraceError(
                        f"{file.name} holds more than {format_value(most, 'bytes')}, which no profile does.",
                        "Files that are made to exhaust the memory do this.",
                        _AGAIN,
                    )
                allowance.check(len(data) * (_TIMES_ITS_SIZE - 1), file.name)
            rest = inflate.unused_data
    except zlib.error as error:
        raise DamagedTraceError(f"{file.name} cannot be decompressed.", f"{error}.", _AGAIN) from error
    if not data and inflate.eof:
        raise DamagedTraceError(f"{file.name} is empty.", _EMPTY, _SHORTER)
    space = read_space(memoryview(data))
    if inflate.eof:
        return space
    cut = Damage("file", "The gzip file is cut short: what follows is lost.")
    return Space(space.planes, space.errors, space.warnings, space.hostnames, (cut, *space.damage), space.scanner)
