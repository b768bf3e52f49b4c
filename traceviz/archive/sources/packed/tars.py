"""Members of an uncompressed local tar file.

:mod:`tarfile` only reads the headers here; the content is copied by offset. Its ``data`` filter is not enough for
untrusted files. It accepts links inside the folder, any size, any number of members and any text as a name. After one
refused member, it skips the rest.
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
"""Bytes of a header. All parts of a tar file are padded to multiples of it."""
_LONGEST_READ = 1 << 20
"""Maximum length of a header with its ``pax`` records. A longer header is an attack."""
_FAILS = (tarfile.TarError, OSError, ValueError, LookupError, OverflowError, RecursionError, EOFError)
"""Errors of reading headers. They are untrusted, and tarfile does not guarantee one kind of error."""
CUT = ListedMember("", None, "cut", "It is cut off or damaged here: members that came after are lost.")


class _Guarded(io.RawIOBase):
    """A file that refuses reads longer than the longest header, and stores its last read."""

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
    """Return whether the block starts with a tar header, recognised by its checksum: old headers have no other mark."""
    try:
        tarfile.TarInfo.frombuf(block[:HEADER], "utf-8", "surrogateescape")
    except (*_FAILS, tarfile.HeaderError):
        return False
    return True


def members(file: BinaryIO) -> Iterator[ListedMember]:
    """Yield the members in the order of the file, then :data:`CUT` if the end of the file is missing."""
    length = file.seek(0, os.SEEK_END)
    file.seek(0)
    guarded = _Guarded(file)
    whole, before, pending = False, -1, None
    try:
        with tarfile.open(fileobj=guarded, mode="r:", encoding="utf-8", errors="surrogateescape") as archive:
            while (member := archive.next()) is not None and member.offset > before:
                if pending is not None:
                    yield pending
                archive.members = []  # type: ignore[attr-defined]  # else tarfile keeps all of them
                before, pending = member.offset, _listed_member(member) if member.size >= 0 else None
                if member.size < 0:  # it points backwards
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
    """Return the entry or refusal of a member; ``None`` for a folder, which has no content."""
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
