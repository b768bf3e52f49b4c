"""Archive files: their kind by content, their members, and unpacking of members to files.

Zip files and plain tar files are read in place, with access to any member. A compressed tar file can only be read from
its start. It is unpacked once per machine into a plain one (:mod:`traceviz.archive.storage.spool`), as fetching 10,000
members one by one would unpack it 10,000 times. A remote archive file is fetched once per machine in the same way. To
list a zip file in an object store, its directory is enough.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Literal, cast

import zstandard

from traceviz.archive.sources.hashes import Limits
from traceviz.archive.sources.locations import Location, explain_errors
from traceviz.archive.sources.packed import tars, zips
from traceviz.archive.sources.packed.index import BLOCK, LOCAL, BombError, Entry, Index, blocks, check_index, excess
from traceviz.archive.storage.addresses import display_address
from traceviz.archive.storage.spool import MOST_HELD, SPOOL, check_space, write_block
from traceviz.core.errors import DamagedTraceError, OutputError

Kind = Literal["zip", "tar", "gzip", "zstd"]
"""Supported archive files. The last two are compressed tar files."""

_GZIP, _ZSTD = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"
_SKIPPED_FRAME = tuple(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))
"""First bytes of frames that a zstd decoder skips. Some packers write such frames first (RFC 8878, 3.1.2)."""
_WINDOW = 1 << 27
"""Maximum memory that zstd may request: the default limit of ``zstd``."""
_UNREAD = {
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"7z\xbc\xaf\x27\x1c": "7-Zip",
    b"Rar!\x1a\x07": "RAR",
}
HEAD_BYTES = 1 << 18
"""Bytes needed to recognise an archive file. Zstd needs up to 128 KiB before it unpacks any output."""
_PIECE, _HEAD_PIECE = 1 << 12, 1 << 6
_LEAST = 1 << 12
"""Minimum bytes per read for the first bytes of a member."""


def kind_of(head: bytes) -> Kind | None:
    """Return the kind of archive file with these first bytes; ``None`` for others, such as a compressed single file."""
    if head.startswith((LOCAL, b"PK\x05\x06")):
        return "zip"
    if head.startswith(_GZIP):
        return "gzip" if tars.is_header(_begin(_inflate(_pieces([head], _HEAD_PIECE)))) else None
    if head.startswith((_ZSTD, *_SKIPPED_FRAME)):
        return "zstd" if tars.is_header(_begin(_decompress(iter([head])))) else None
    return "tar" if tars.is_header(head) else None


def may_be_packed(head: bytes) -> bool:
    """Return whether a file starts like a compressed file. :func:`kind_of` then needs :data:`HEAD_BYTES` bytes."""
    return head.startswith((_GZIP, _ZSTD, *_SKIPPED_FRAME))


def unread_kind(head: bytes) -> str:
    """Return the name of a packed format that cannot be read; empty for other files."""
    if head.startswith((_ZSTD, *_SKIPPED_FRAME)):
        return "zstd, of one file"
    return next((name for magic, name in _UNREAD.items() if head.startswith(magic)), "")


def index_of(location: Location, limits: Limits) -> Index:
    """Return the index of an archive file.

    Raises:
        DamagedTraceError: it is not an archive file, has too many members, or has a suspicious compression ratio.
        OutputError: there is no space to unpack it.
    """
    return _index(location.url, location.state(), limits)


@lru_cache(maxsize=MOST_HELD)
def _index(url: str, state: str, limits: Limits) -> Index:  # noqa: ARG001 (part of the key)
    """Read an index. The cache avoids reading it again for each of 10,000 members."""
    location = Location(url, display_address(url))
    with explain_errors(location.name), open_for_listing(location, limits) as (file, kind):
        return check_index(zips.members(file, limits) if kind == "zip" else tars.members(file), limits)


@contextmanager
def open_for_listing(location: Location, limits: Limits) -> Iterator[tuple[BinaryIO, Kind]]:
    """Open an archive file for listing it and reading the first bytes of a few members.

    Only these parts of a remote zip file are read, if its store supports it.
    """
    if location.gives_parts and _kind(location.url, location.state()) == "zip":
        with location.opened() as file:
            yield file, "zip"
    else:
        path, kind = _plain_copy(location, limits)
        with path.open("rb") as file:
            yield file, kind


@lru_cache(maxsize=MOST_HELD)
def _kind(url: str, state: str) -> Kind | None:  # noqa: ARG001 (part of the key)
    """Return the kind of an archive file. The cache helps when the folders of a zip file are listed one by one."""
    return kind_of(Location(url, display_address(url)).head(HEAD_BYTES))


@contextmanager
def open_plain(location: Location, limits: Limits) -> Iterator[BinaryIO]:
    """Open the local plain archive file that holds the entries of :func:`index_of`."""
    try:
        file = _plain_copy(location, limits)[0].open("rb")
    except FileNotFoundError:  # another add just released the copy
        file = _plain_copy(location, limits)[0].open("rb")
    with file:
        yield file


def unpack(file: BinaryIO, entries: dict[str, Entry], into: Path) -> None:
    """Write members as files below the new folder ``into``, under their names.

    Raises:
        DamagedTraceError: a member is truncated or damaged.
        OutputError: there is no space, or ``into`` cannot be written.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(into, error) from error
    check_space(into, sum(entry.size for entry in entries.values()))
    for name, entry in entries.items():
        try:
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            # Create a new file, never follow a link.
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _unwritten(into, error) from error
        try:
            for block in blocks(file, entry):
                write_block(handle, block, into)
        finally:
            os.close(handle)


def head_of(file: BinaryIO, entry: Entry, count: int) -> bytes:
    """Return the first bytes of a member, as far as they can be read."""
    head = b""
    try:
        for block in blocks(file, entry, min(BLOCK, max(count, _LEAST))):
            head += block
            if len(head) >= count:
                break
    except (DamagedTraceError, OSError):
        pass  # fetching it reports the damage
    return head[:count]


def _unwritten(into: Path, error: OSError) -> OutputError:
    return OutputError(f"{into} cannot be written.", f"{error.strerror}.", "Make space, or set TMPDIR.")


def _plain_copy(location: Location, limits: Limits) -> tuple[Path, Kind]:
    """Return a local zip or plain tar file with the members of an archive file: the file itself, or a copy.

    Raises:
        DamagedTraceError: it is not an archive file, or it unpacks to more than ``limits`` allow.
    """
    kind = kind_of(location.head(HEAD_BYTES))
    if kind is None:
        raise DamagedTraceError(
            f"{location.name} is no zip or tar file.", "Its first bytes are no longer those of one."
        )
    if location.local is not None and kind in {"zip", "tar"}:
        return location.local, kind
    plain: Kind = "zip" if kind == "zip" else "tar"
    return SPOOL.copy_of(f"{location.state()} {kind} {limits}", lambda: _unpack(location, kind, limits)), plain


def _unpack(location: Location, kind: Kind, limits: Limits) -> Iterator[bytes]:
    """Yield the bytes of a plain archive file. At truncation or damage, they end within the last member."""
    read = 0

    def counted() -> Iterator[bytes]:
        nonlocal read
        for block in location.blocks(BLOCK):
            read += len(block)
            yield block

    written = 0
    for block in _UNPACKERS[kind](counted()):
        written += len(block)
        code, why = excess(read, written, Limits(limits.ratio, limits.free, _ANY, limits.members))
        if code:
            raise BombError(f"{location.name} is not unpacked.", why, "Unpack it yourself if you trust it.")
        yield block


_ANY = 1 << 62
"""Maximum number of members in the copy. The number of members is limited elsewhere; the disk limits the file."""


def _pieces(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Split blocks into shorter pieces, as zlib returns nothing for a piece with damage."""
    for block in blocks:
        for begin in range(0, len(block), size):
            yield block[begin : begin + size]


def _inflate(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress gzip, one part after the other, up to truncation or damage."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        for block in packed:
            left = block
            while left:
                if inflater.eof:
                    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
                while out := inflater.decompress(left, BLOCK):
                    left = inflater.unconsumed_tail
                    yield out
                left = inflater.unused_data
    except zlib.error:
        return


def _decompress(packed: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress zstd, one frame after the other, up to truncation or damage."""
    reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
        cast("BinaryIO", _Blocks(packed)), read_across_frames=True, read_size=BLOCK
    )
    try:
        while out := reader.read(BLOCK):
            yield out
    except zstandard.ZstdError:
        return


class _Blocks(io.RawIOBase):
    """Blocks as a file that is read from its start."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks, self._left = blocks, b""

    def read(self, size: int = -1, /) -> bytes:
        if not self._left:
            self._left = next(self._blocks, b"")
        data, self._left = (self._left, b"") if size < 0 else (self._left[:size], self._left[size:])
        return data


_UNPACKERS: dict[Kind, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "zip": iter,
    "tar": iter,
    "gzip": lambda packed: _inflate(_pieces(packed, _PIECE)),
    "zstd": _decompress,
}


def _begin(unpacked: Iterator[bytes]) -> bytes:
    """Return the first unpacked bytes, at least as many as a tar header has."""
    head = b""
    for block in unpacked:
        head += block
        if len(head) >= tars.HEADER:
            break
    return head
