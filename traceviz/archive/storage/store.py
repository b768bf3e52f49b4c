"""Storage of an archive: a folder or a prefix in an object store, behind one small set of operations.

All writes are atomic. A local file is written under a temporary name and renamed. A remote store shows an object only
when it is complete, and a remote folder counts as written when its last file is.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.core import url_to_fs

from traceviz.archive.storage import writers
from traceviz.archive.storage.addresses import display_address, public
from traceviz.archive.storage.spool import SPOOL
from traceviz.core.errors import OutputError, TracevizError, UsageError

WORK = "work"
"""Folder for unfinished files."""
LAST = "manifest.json"
"""File that is written last. A folder without it does not exist."""
_ATTEMPTS = 5
"""Attempts to upload a folder to a remote store while other programs write the same one."""
_BLOCK = 1 << 22
_LIBRARIES = frozenset(
    {
        *("adlfs", "aiobotocore", "aiohttp", "azure", "botocore", "fsspec", "ftplib", "gcsfs", "google", "msal"),
        *("paramiko", "requests", "s3fs", "smbclient", "smbprotocol", "spnego", "urllib3"),
    }
)
"""Libraries whose errors, without a common base class, mean that a store is unreachable or refuses."""
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")
"""Keys of modification times in file systems of fsspec."""


@dataclass(frozen=True, slots=True)
class Store:
    """Location of an archive. It consists of texts only, so that it can be sent to other processes and machines.

    Args:
        url: Absolute local path, or a URL that fsspec knows (``s3://bucket/prefix``).
        options: Options of its file system (endpoint, credentials); by default from the environment.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def at(cls, location: str | Path, options: Mapping[str, Any] | None = None) -> Store:
        """Return the store at a path or URL.

        Raises:
            UsageError: no file system of this kind is installed.
        """
        text = str(location)
        protocol, separator, rest = text.partition("://")
        if not separator or protocol in {"file", "local"}:
            return cls(str(Path(rest if separator else text).expanduser().absolute()), dict(options or {}))
        try:
            fsspec.get_filesystem_class(protocol)
        except ValueError:
            raise UsageError(
                f"{display_address(text)} cannot be reached: there is no file system {protocol}://."
            ) from None
        except ImportError as error:
            raise UsageError(
                f"{display_address(text)} cannot be reached.",
                str(error),
                "Install it: pip install 'traceviz-toolkit[cloud]'.",
            ) from None
        return cls(text.rstrip("/"), dict(options or {}))

    @property
    def is_local(self) -> bool:
        """True if it is a folder of this machine."""
        return "://" not in self.url

    def filesystem(self) -> fsspec.AbstractFileSystem:
        """Return the file system of fsspec; one per process."""
        return self._reached()[0]

    def url_of(self, *parts: str) -> str:
        """Return the path or URL of a part of the archive, for libraries that open files themselves.

        Raises:
            UsageError: it would lie outside the archive.
        """
        return "/".join((self.url, *_safe(parts)))

    def called(self, *parts: str) -> str:
        """Return the display name of the store or of a part of it, without user, password and signature."""
        return display_address("/".join((self.url, *parts)))

    def path_of(self, *parts: str) -> str:
        """Return the path of a part of the archive in the form that its :meth:`filesystem` takes.

        Raises:
            UsageError: it would lie outside the archive.
        """
        return self._path(parts)

    def exists(self, *parts: str) -> bool:
        """Return whether a file or folder exists."""
        with self._explained():
            return bool(self.filesystem().exists(self._path(parts)))

    def names(self, *parts: str) -> list[str]:
        """Return the names in a folder, in order; empty if there is no such folder."""
        with self._explained():
            filesystem, path = self.filesystem(), self._path(parts)
            filesystem.invalidate_cache(path)
            try:
                listed = filesystem.ls(path, detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        inside = (name.rstrip("/") for name in listed)
        return sorted({PurePosixPath(name).name for name in inside if name != path.rstrip("/")} - {""})

    def read(self, *parts: str) -> bytes:
        """Read a whole file.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        with self._explained():
            return bytes(self.filesystem().cat_file(self._path(parts)))

    @contextmanager
    def open(self, *parts: str) -> Iterator[BinaryIO]:
        """Open a file for reading in pieces.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        with self._explained():
            opened = self.filesystem().open(self._path(parts), "rb")
        with opened as file:  # errors of the block itself are not explained
            yield cast("BinaryIO", _Explained(file, self._explained))

    def write(self, data: bytes, *parts: str) -> None:
        """Write a file, replacing an existing one."""
        with self._explained():
            if not self.is_local:
                with self._bucket():
                    self.filesystem().pipe_file(self._path(parts), data)
                return
            target = Path(self._path(parts))
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._temporary()
            try:
                with temporary.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())  # a name without its content would damage the catalogue
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)

    @contextmanager
    def new_folder(self, *parts: str, unless: Callable[[], bool] = lambda: False) -> Iterator[Path]:
        """Yield a local folder. At the end its files become the folder ``parts``, with :data:`LAST` written last.

        An existing folder is replaced. If the block fails, nothing is left.

        Args:
            parts: The folder.
            unless: Called at the end of the block. If it returns true, the existing folder is kept.
        """
        with self._new_temporary() if self.is_local else SPOOL.room() as temporary:
            yield temporary
            with self._explained():
                if not unless():
                    self._publish(temporary, parts)

    def remove(self, *parts: str) -> None:
        """Remove a file, or a folder with its content, if it is there.

        A folder disappears at once. In a local archive, a new folder that another program writes in its place is kept.
        """
        with self._explained():
            path = self._path(parts)
            if self.is_local:
                self._remove_local(Path(path))
                return
            filesystem = self.filesystem()
            if filesystem.exists(f"{path}/{LAST}"):
                filesystem.rm_file(f"{path}/{LAST}")  # from now on the folder does not exist
            try:
                filesystem.rm(path, recursive=True)
            except FileNotFoundError:
                return

    def touched(self, *parts: str) -> float | None:
        """Return the last write time of a file, or below a folder, in seconds since 1970; ``None`` if unknown."""
        with self._explained():
            path = self._path(parts)
            times = [_time_of(info) for info in self.filesystem().find(path, withdirs=True, detail=True).values()]
            if self.is_local:
                with suppress(FileNotFoundError):  # an empty folder has a time, too
                    times.append(Path(path).stat().st_mtime)
        return max((time for time in times if time is not None), default=None)

    def now(self) -> float:
        """Return the time in seconds since 1970, by the clock of :meth:`touched` if possible."""
        if not self.is_local:
            return time.time()
        with self._explained():
            temporary = self._temporary()
            temporary.touch(exist_ok=False)
            try:
                return temporary.stat().st_mtime
            finally:
                temporary.unlink(missing_ok=True)

    def sizes(self, *parts: str) -> dict[str, int]:
        """Return the size in bytes of every file below a folder, by relative path."""
        with self._explained():
            path = self._path(parts)
            listed = self.filesystem().find(path, detail=True)
        return {name[len(path) :].lstrip("/"): int(info["size"]) for name, info in listed.items()}

    def _publish(self, folder: Path, parts: tuple[str, ...]) -> None:
        if self.is_local:
            target = Path(self._path(parts))
            target.parent.mkdir(parents=True, exist_ok=True)
            while not _rename(folder, target):  # another program may write it at the same time
                replaced = self._temporary()
                with suppress(FileNotFoundError):
                    target.rename(replaced)
                shutil.rmtree(replaced, ignore_errors=True)
            return
        for _ in range(_ATTEMPTS):
            self._put(folder, parts)
            if self._is_settled(folder, parts):
                return
        raise OutputError(
            f"{self.called(*parts)} cannot be written.", "Other programs write or remove it.", "Add the trace again."
        )

    def _put(self, folder: Path, parts: tuple[str, ...]) -> None:
        """Upload all files of a local folder to a remote one, :data:`LAST` last. Other files there are removed."""
        filesystem, path = self.filesystem(), self._path(parts)
        if filesystem.exists(f"{path}/{LAST}"):
            filesystem.rm_file(f"{path}/{LAST}")
        files = sorted(_files_in(folder).items(), key=lambda file: file[0] == LAST)
        for name in self.sizes(*parts).keys() - {name for name, _ in files}:
            with suppress(FileNotFoundError):
                filesystem.rm_file(f"{path}/{name}")
        for name, file in files:
            with self._bucket():
                filesystem.put_file(str(file), f"{path}/{name}")

    def _is_settled(self, folder: Path, parts: tuple[str, ...]) -> bool:
        """Return whether a remote folder has the files of the local one, or another program will ensure that.

        Two programs that upload the same trace at once may each have written some of its files. The program that wrote
        :data:`LAST` last finds the files of the other program, and uploads its own again.
        """
        files, path = _files_in(folder), self._path(parts)
        if LAST not in files:
            return True
        try:
            if self.read(*parts, LAST) != files[LAST].read_bytes():
                return True
            listed = self.filesystem().find(path, detail=True)
            there = {name[len(path) :].lstrip("/"): info for name, info in listed.items()}
            return there.keys() == files.keys() and all(
                self._is_same(file, there[name], (*parts, name)) for name, file in files.items()
            )
        except FileNotFoundError:
            return False  # another program removed it

    def _is_same(self, file: Path, info: Mapping[str, Any], parts: tuple[str, ...]) -> bool:
        """Return whether a stored file equals the local one, by the store's MD5 or else by reading it back."""
        if int(info["size"]) != file.stat().st_size:
            return False
        stated = _md5_of(info)
        with file.open("rb") as mine:
            if stated and digest_of(mine, hashlib.md5(usedforsecurity=False)) == stated:
                return True
            mine.seek(0)
            with self.open(*parts) as theirs:
                return digest_of(mine, hashlib.sha256()) == digest_of(theirs, hashlib.sha256())

    def _remove_local(self, path: Path) -> None:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
            return
        aside = self._temporary()
        try:
            path.rename(aside)
        except FileNotFoundError:  # another program was faster
            return
        shutil.rmtree(aside)

    @contextmanager
    def _new_temporary(self) -> Iterator[Path]:
        with self._explained():
            temporary = self._temporary()
            temporary.mkdir()
        try:
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _temporary(self) -> Path:
        """Return a new path in a local store, on its file system, so that it can be renamed."""
        root = Path(self.url, WORK)
        root.mkdir(parents=True, exist_ok=True)
        return root / writers.new_name()

    def _path(self, parts: tuple[str, ...]) -> str:
        return "/".join((self._reached()[1].rstrip("/"), *_safe(parts)))

    def _reached(self) -> tuple[fsspec.AbstractFileSystem, str]:
        # A cached listing would hide concurrent writes of other programs.
        fresh = {} if self.is_local else {"use_listings_cache": False}
        filesystem, path = url_to_fs(self.url, **fresh, **self.options)
        return filesystem, path

    @contextmanager
    def _bucket(self) -> Iterator[None]:
        """Convert a missing-file error. While writing, only the bucket can be missing.

        Raises:
            OutputError: there is no such bucket.
        """
        try:
            yield
        except FileNotFoundError as error:
            problem = f"The archive {self.called()} cannot be written."
            raise OutputError(problem, public(str(error)), "Create the bucket.") from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Convert errors of the file system to errors of traceviz; a missing file stays a FileNotFoundError.

        Raises:
            OutputError: the store cannot be reached, read or written.
        """
        try:
            yield
        except (FileNotFoundError, TracevizError):
            raise
        except Exception as error:
            if not is_store_error(error) and not isinstance(error, ValueError):
                raise
            if isinstance(error, OSError) and error.errno == errno.EROFS:
                raise OutputError(f"The archive {self.called()} is read-only.", fix="Nothing was written.") from error
            reason = error.strerror if isinstance(error, OSError) and error.errno else None  # without the path in it
            raise OutputError(
                f"The archive {self.called()} cannot be used.", f"{reason}." if reason else public(str(error))
            ) from error


def is_store_error(error: Exception) -> bool:
    """Return whether an error means that a file system or object store is unreachable, or refuses."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _LIBRARIES


class _Explained(io.RawIOBase):
    """A file that converts its errors as the store does."""

    def __init__(self, file: BinaryIO, explained: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self._file, self._explained = file, explained

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        with self._explained():
            return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def digest_of(file: BinaryIO, digest: hashlib._Hash) -> bytes:
    """Return the digest of the rest of a file, read in pieces."""
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.digest()


def _md5_of(info: Mapping[str, Any]) -> bytes:
    """Return the MD5 of a file if its store states it; empty if it does not, or if its entity tag is not an MD5."""
    with suppress(ValueError):
        if "md5Hash" in info:
            return base64.b64decode(info["md5Hash"])
        tag = str(info.get("ETag", "")).strip('"')
        return bytes.fromhex(tag) if len(tag) == 32 else b""
    return b""


def _files_in(folder: Path) -> dict[str, Path]:
    """Return the files of a local folder by relative path, in order."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def _time_of(info: Mapping[str, Any]) -> float | None:
    """Return the write time of a file. File systems state it under different keys, in seconds or as a time."""
    stated = next((info[key] for key in _TIMES if info.get(key)), None)
    if isinstance(stated, str):
        with suppress(ValueError):
            stated = datetime.fromisoformat(stated)
    if isinstance(stated, datetime):
        return stated.timestamp()
    return float(stated) if isinstance(stated, int | float) else None


def _rename(folder: Path, target: Path) -> bool:
    """Rename a folder; return false if a folder of that name with content exists."""
    try:
        folder.rename(target)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
            return False
        raise
    return True


def _safe(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Check that a path stays below the root, and return its parts.

    Raises:
        UsageError: it leaves the root.
    """
    for part in parts:
        names = part.split("/")
        if part.startswith("/") or "\0" in part or "\\" in part or {"", ".", ".."} & set(names):
            raise UsageError(f"{part!r} cannot be a name in an archive.")
    return parts
