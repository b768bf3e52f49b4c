"""Members of a local zip file, even of a truncated one.

A zip file ends with a directory of its members, which :mod:`zipfile` reads. If the end is missing or damaged, members
are found one after the other from the start, as each has its own header (APPNOTE.TXT of PKWARE, 4.3).
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from traceviz.archive.sources.hashes import Limits
from traceviz.archive.sources.names import normal, text_of
from traceviz.archive.sources.packed.index import LOCAL, LOCAL_HEADER, Entry, ListedMember, Method, TooManyError, excess
from traceviz.core.errors import UnknownFormatError

_METHODS: dict[int, Method] = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}
_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 0x1, 0x8, 0x800
"""Flag bits of a member."""
_LISTED, _RECORD = b"PK\x01\x02", 46
"""First bytes of a directory record, and its length without name, extra field and comment (4.3.12)."""
_MOST_DIRECTORY, _MOST_RECORD, _MOST_EXTRA = 64 << 20, 256, 1 << 12
"""Maximum bytes of a directory (a base, plus bytes per member) and of an extra field. Packers write a few dozen."""
_FAILS = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error, OverflowError, EOFError)
"""Errors of zipfile for an untrusted directory. ValueError is also raised for a name that is not UTF-8."""
_DEFLATE_AT_MOST = 1032
"""Maximum compression ratio of deflate."""
_READ = 1 << 16


def members(file: BinaryIO, limits: Limits) -> Iterator[ListedMember]:
    """Yield the members in the order of the directory; without one in file order, and a refusal (``cut``).

    Raises:
        UnknownFormatError: the file cannot be read.
        TooManyError: the directory lists more than ``limits.members``.
    """
    try:
        with zipfile.ZipFile(cast("BinaryIO", _Guarded(file, limits))) as archive:
            listed = archive.infolist()
    except _FAILS:
        listed = []
    file.seek(0)
    if not listed and file.read(len(LOCAL)) == LOCAL:
        yield from _walk(file, limits)
        return
    length = file.seek(0, os.SEEK_END)
    if (
        sum(info.compress_size for info in listed if _lies_inside(info, length)) > length
    ):  # overlapping members: a few bytes that unpack to terabytes
        why = "Its members lie over each other, so that little unpacks to much."
        yield from (ListedMember(info.orig_filename, None, "bomb", why) for info in listed)
        return
    yield from (_list(info, length) for info in listed if not info.orig_filename.endswith("/"))


class _Guarded(io.RawIOBase):
    """A file for zipfile that checks the directory before zipfile reads it.

    Zipfile would accept any length, and needs quadratic time in the length of an extra field.
    """

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        super().__init__()
        self._file, self._limits = file, limits

    def read(self, size: int = -1, /) -> bytes:
        most = _MOST_DIRECTORY + _MOST_RECORD * self._limits.members
        if size > most:
            raise zipfile.BadZipFile(f"a directory of {size} bytes")
        try:
            data = self._file.read(size if size >= 0 else most)  # zipfile reads the end without a size
        except OSError as error:  # otherwise the directory would seem to be missing
            raise UnknownFormatError("The archive file cannot be read.", f"{error}.", "Try again.") from error
        if data.startswith(_LISTED):
            _check_directory(data, self._limits)
        return data

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _check_directory(data: bytes, limits: Limits) -> None:
    """Refuse a directory with too many members, or with more data per member than packers write.

    Raises:
        TooManyError: there are too many.
        zipfile.BadZipFile: it is too long or damaged. Its members are then found without it.
    """
    at = count = 0
    while data.startswith(_LISTED, at) and at + _RECORD <= len(data):
        name, extra, comment = struct.unpack_from("<3H", data, at + 28)
        at += _RECORD + name + extra + comment
        count += 1
        if count > limits.members:
            raise TooManyError(f"It lists more than {limits.members:,} members.")
        if extra > _MOST_EXTRA:
            raise zipfile.BadZipFile(f"an extra field of {extra} bytes")
    if len(data) > _MOST_DIRECTORY + _MOST_RECORD * count:
        raise zipfile.BadZipFile(f"a directory of {len(data)} bytes for {count} members")


def _lies_inside(info: zipfile.ZipInfo, length: int) -> bool:
    return 0 <= info.header_offset <= length - info.compress_size


def _list(info: zipfile.ZipInfo, length: int) -> ListedMember:
    raw = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437", "surrogateescape")
    name = text_of(raw, utf8=bool(info.flag_bits & _UTF8))
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return ListedMember(name, None, "link", "It is a link: links are not followed.")
    if kind not in {0, stat.S_IFREG}:
        return ListedMember(name, None, "device", "It is no file: a device, a named pipe, or of an unknown kind.")
    if not _lies_inside(info, length):
        return ListedMember(name, None, "cut", "It lies outside of the archive file, as its directory says.")
    entry = Entry(normal(name), info.header_offset, info.compress_size, info.file_size, "stored", info.CRC)
    return _list_member(name, entry, info.flag_bits, info.compress_type)


def _list_member(name: str, entry: Entry, flags: int, method: int) -> ListedMember:
    if flags & _ENCRYPTED:
        return ListedMember(name, None, "encrypted", "It is encrypted: unpack it, and add what was in it.")
    if method not in _METHODS:
        method_name = zipfile.compressor_names.get(method, str(method))  # type: ignore[attr-defined]
        return ListedMember(
            name, None, "unreadable", f"It is packed by a method that is not read ({method_name}): unpack it first."
        )
    return ListedMember(name, Entry(entry.name, entry.at, entry.packed, entry.size, _METHODS[method], entry.crc))


def _walk(file: BinaryIO, limits: Limits) -> Iterator[ListedMember]:
    """Yield members from the start of the file, by their headers."""
    at, length = 0, file.seek(0, os.SEEK_END)
    while at + LOCAL_HEADER.size <= length:
        file.seek(at)
        header = file.read(LOCAL_HEADER.size)
        if not header.startswith(LOCAL):
            break
        _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = LOCAL_HEADER.unpack(header)
        name = text_of(file.read(name_length), utf8=bool(flags & _UTF8))
        packed, size = _sizes64(file.read(extra_length), packed, size)
        begin = at + LOCAL_HEADER.size + name_length + extra_length
        entry = Entry(normal(name), at, packed, size, "stored", crc)
        if flags & _SIZES_FOLLOW and method == zipfile.ZIP_DEFLATED and not flags & _ENCRYPTED:
            measured = _measure(file, begin, entry, limits)
        elif flags & _SIZES_FOLLOW and not packed:
            measured = None  # its end is unknown
        else:
            measured = entry if begin + packed <= length else None
        if measured is None:
            yield ListedMember(name, None, "cut", "The archive file ends within it, or is damaged there.")
            return
        if not name.endswith("/"):
            yield _list_member(name, measured, flags, method)
        at = begin + measured.packed
        at += _descriptor(file, at) if flags & _SIZES_FOLLOW else 0
    yield ListedMember(
        "", None, "cut", "Its end, where its members are listed, is missing or damaged: read from its beginning."
    )


def _sizes64(extra: bytes, packed: int, size: int) -> tuple[int, int]:
    """Return the packed size and the size, from the zip64 extra field if they do not fit the header."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1 and length >= 16 and at + 20 <= len(extra) and 0xFFFFFFFF in {packed, size}:
            size, packed = struct.unpack_from("<2Q", extra, at + 4)
        at += 4 + length
    return packed, size


def _measure(file: BinaryIO, begin: int, entry: Entry, limits: Limits) -> Entry | None:
    """Return the entry with its sizes, by inflating it once; ``None`` if it is truncated, damaged or too large."""
    file.seek(begin)
    inflater, packed, size, crc = zlib.decompressobj(-zlib.MAX_WBITS), 0, 0, 0
    try:
        while not inflater.eof and (block := file.read(_READ)):
            packed += len(block)
            # A block of this length inflates to 64 MiB at most.
            out = inflater.decompress(block, _READ * _DEFLATE_AT_MOST)
            size, crc = size + len(out), zlib.crc32(out, crc)
            if excess(packed, size, limits)[0]:
                return None
    except zlib.error:
        return None
    packed -= len(inflater.unused_data)
    return Entry(entry.name, entry.at, packed, size, "deflated", crc) if inflater.eof else None


def _descriptor(file: BinaryIO, at: int) -> int:
    """Return the length of the descriptor after a member: with or without a signature, with sizes of 4 or 8 bytes."""
    file.seek(at)
    following = file.read(24 + len(LOCAL))
    for length in (16, 24, 12, 20):
        if following[length : length + 2] == b"PK" or len(following) == length:
            return length
    return 16
