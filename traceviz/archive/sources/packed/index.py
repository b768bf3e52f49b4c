"""Index of the members of zip and tar files, and reading of members."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

from traceviz.archive.sources.hashes import Limits, Refused
from traceviz.archive.sources.names import normal, unsafe
from traceviz.archive.storage.addresses import printable
from traceviz.archive.storage.spool import NoRoomError
from traceviz.core.errors import DamagedTraceError

BLOCK = 1 << 20
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
"""Local header of a member of a zip file: signature, version, flags, method, time, date, CRC, packed size, size,
and the lengths of the name and of the extra fields (APPNOTE.TXT of PKWARE, 4.3.7).
"""
LOCAL = b"PK\x03\x04"

Method = Literal["tar", "stored", "deflated"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an archive file that can be unpacked.

    Args:
        name: Safe path below the target folder.
        at: Offset in the archive file: of the content in a tar file, of the local header in a zip file.
        packed: Packed size in bytes.
        size: Unpacked size in bytes.
        method: Compression method.
        crc: CRC-32 of its content, if the archive file states it.
    """

    name: str
    at: int
    packed: int
    size: int
    method: Method
    crc: int | None = None


@dataclass(frozen=True, slots=True)
class ListedMember:
    """A listed member: an entry with its original name, or the reason for its refusal."""

    name: str
    entry: Entry | None = None
    code: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Index:
    """The members of an archive file.

    Args:
        entries: Members that can be unpacked, by name, in the order of the file.
        refused: Other members, with their names in the file.
    """

    entries: Mapping[str, Entry] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    names: Sequence[str] = ()
    """The names of the entries, sorted."""


class TooManyError(DamagedTraceError):
    """An archive file with more members than the limit."""


class BombError(DamagedTraceError):
    """An archive file that unpacks to much more than its size."""


def code_of(error: Exception) -> str:
    """Return the code of a refusal for this error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), "unreadable")


_CODES: tuple[tuple[type[Exception], str], ...] = (
    (TooManyError, "too-many"),
    (BombError, "bomb"),
    (NoRoomError, "too-large"),
)


def check_index(listed: Iterable[ListedMember], limits: Limits) -> Index:
    """Return the index of the listed members. Names are checked; the last of several members with equal names counts.

    Raises:
        TooManyError: there are more than ``limits.members``.
    """
    entries: dict[str, Entry] = {}
    refused: list[Refused] = []
    for count, member in enumerate(listed):
        if count >= limits.members:
            raise TooManyError(f"It holds more than {limits.members:,} members.")
        code, why = _reason(member, limits)
        if code or member.entry is None:
            refused.append(Refused(printable(member.name), code, why))
            continue
        if member.entry.name in entries:
            refused.append(
                Refused(printable(member.entry.name), "duplicate", "A later member of the same name counts.")
            )
            del entries[member.entry.name]  # keeps the order of the members that count
        entries[member.entry.name] = member.entry
    both = entries.keys() & {parent for name in entries for parent in parents(name)}
    refused += [Refused(printable(name), "unsafe-name", "Its name is that of a folder, too.") for name in sorted(both)]
    kept = {name: entry for name, entry in entries.items() if name not in both}
    return Index(kept, tuple(refused), sorted(kept))


def below(names: Sequence[str], folder: str) -> Sequence[str]:
    """Return the sorted paths that lie below a folder, by binary search; all for an empty folder."""
    if not folder:
        return names
    after = f"{folder}{chr(ord('/') + 1)}"  # sorts just behind all paths that start with the folder and a slash
    return names[bisect_left(names, f"{folder}/") : bisect_left(names, after)]


def parents(name: str) -> Iterator[str]:
    """Yield the parent folders of a path, the innermost first: ``a/b`` and ``a`` for ``a/b/c``."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _reason(member: ListedMember, limits: Limits) -> tuple[str, str]:
    if member.code == "cut":  # it may concern the whole file, which has no name
        return member.code, member.why
    why = unsafe(normal(member.name))
    if why:
        return "unsafe-name", why
    if member.code or member.entry is None:
        return member.code, member.why
    return excess(member.entry.packed, member.entry.size, limits)


def excess(packed: int, size: int, limits: Limits) -> tuple[str, str]:
    """Return why a member of these sizes is not unpacked, as code and reason; empty if it is unpacked."""
    if size > limits.bytes:
        return "too-large", f"It unpacks to {size:,} bytes; the limit is {limits.bytes:,}."
    if size > limits.free + limits.ratio * packed:
        times = size // max(packed, 1)
        return "bomb", f"It unpacks to {size:,} bytes, {times:,} times its packed size; the limit is {limits.ratio}."
    return "", ""


def blocks(file: BinaryIO, entry: Entry, read: int = BLOCK) -> Iterator[bytes]:
    """Yield the unpacked bytes of a member, at most its listed size.

    Args:
        file: The archive file.
        entry: The member.
        read: Packed bytes to read at once.

    Raises:
        DamagedTraceError: the content is truncated, or differs from what the archive file states.
    """
    size = crc = 0
    for block in _raw(file, entry, read):
        size += len(block)
        crc = zlib.crc32(block, crc)
        if size > entry.size:
            break
        yield block
    if size != entry.size:
        more = "more" if size > entry.size else "fewer"
        raise _damaged_error(entry, f"It holds {more} than the {entry.size:,} bytes that the archive file says.")
    if entry.crc is not None and crc != entry.crc:
        raise _damaged_error(entry, "Its checksum (CRC-32) is not that of its content.")


def _raw(file: BinaryIO, entry: Entry, read: int) -> Iterator[bytes]:
    if entry.method != "tar":
        file.seek(entry.at)
        header = file.read(LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size or not header.startswith(LOCAL):
            raise _damaged_error(entry, "It does not begin where the archive file says.")
        *_, name, extra = LOCAL_HEADER.unpack(header)
        file.seek(name + extra, 1)
    else:
        file.seek(entry.at)
    plain = _plain(file, entry.packed, read)
    yield from inflate(plain, entry) if entry.method == "deflated" else plain


def _plain(file: BinaryIO, left: int, read: int) -> Iterator[bytes]:
    while left and (block := file.read(min(read, left))):
        left -= len(block)
        yield block


def inflate(packed: Iterator[bytes], entry: Entry) -> Iterator[bytes]:
    """Yield inflated blocks, none much longer than :data:`BLOCK`."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    for block in packed:
        left = block
        try:
            while (left or not inflater.eof) and (out := inflater.decompress(left, BLOCK)):
                yield out
                left = inflater.unconsumed_tail
        except zlib.error as error:
            raise _damaged_error(entry, f"It cannot be inflated: {error}.") from None
        if inflater.eof:
            return


def _damaged_error(entry: Entry, why: str) -> DamagedTraceError:
    name = printable(entry.name)
    return DamagedTraceError(f"The member {name} of the archive file is damaged.", why, "Copy the archive file again.")
