"""The members of a tar file, which lies unpacked and whole on a disk of this machine.

Nothing is unpacked by :mod:`tarfile`. Its ``data`` filter is not enough for untrusted files: it accepts links inside
the folder, any size, any number of members and any text as a name, and after one refused member the rest is lost. Here
it only reads the headers, and the bytes are copied by offset.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

from traceviz.archive.sources.names import normal
from traceviz.archive.sources.packed.index import Entry, ListedMember
from traceviz.archive.storage.addresses import printable

HEADER = 512
"""Bytes of a header; everything in a tar file is padded to a multiple of it."""
_LONGEST_READ = 1 << 20
"""Longest header that is read, with its ``pax`` records: anything longer is an attack."""
_FAILS = (tarfile.TarError, OSError, ValueError, LookupError, OverflowError, RecursionError, EOFError)
"""Errors of reading headers: they are untrusted, and tarfile does not promise one kind of error."""
CUT = ListedMember("", None, "cut", "It is cut off or damaged here: members that came after are lost.")


class _Guarded(io.RawIOBase):
    """A file that refuses to read more at once than the longest header, and remembers its last read."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file, self.last = file, b""

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _LONGEST_READ:
            raise tarfile.ReadError(f"a header of {size} bytes")
        self.last = self.file.read(size)
        return self.last

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()


def is_header(block: bytes) -> bool:
    """Whether it begins with the header of a tar file, recognised by its checksum: old ones have no other mark."""
    try:
        tarfile.TarInfo.frombuf(block[:HEADER], "utf-8", "surrogateescape")
    except (*_FAILS, tarfile.HeaderError):
        return False
    return True


def members(file: BinaryIO) -> Iterator[ListedMember]:
    """The members in the order of the file; then :data:`CUT` if the end of the file is missing."""
    length = file.seek(0, os.SEEK_END)
    file.seek(0)
    guarded = _Guarded(file)
    whole, before, pending = False, -1, None
    try:
        with tarfile.open(fileobj=guarded, mode="r:", encoding="utf-8", errors="surrogateescape") as archive:
            while (member := archive.next()) is not None and member.offset > before:
                if pending is not None:
                    yield pending
                archive.members = []  # type: ignore[attr-defined]  # else tarfile would keep all of them
                before, pending = member.offset, _listed_member(member) if member.size >= 0 else None
                if member.size < 0:  # it leads back
                    break
                if pending is not None and pending.entry is not None and pending.entry.at + member.size > length:
                    pending = ListedMember(member.name, None, "cut", "The archive file ends within it.")
            whole = member is None and guarded.last == bytes(HEADER)
    except _FAILS:
        whole = False
    if pending is not None:
        yield pending
    if not whole:
        yield CUT


def _listed_member(member: tarfile.TarInfo) -> ListedMember | None:
    """The entry or refusal of a member; ``None`` for a folder, which has no content of its own."""
    if member.isdir():
        return None
    if member.issym() or member.islnk():
        return ListedMember(
            member.name, None, "link", f"It is a link to {printable(member.linkname)}: links are not followed."
        )
    if not member.isreg():
        return ListedMember(
            member.name, None, "device", "It is no file: a device, a named pipe, or of an unknown kind."
        )
    if member.issparse():
        return ListedMember(member.name, None, "unreadable", "It is packed as a sparse file: pack it without --sparse.")
    return ListedMember(member.name, Entry(normal(member.name), member.offset_data, member.size, member.size, "tar"))
