"""File as the source of one or more traces: local, or behind a URL that fsspec supports."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import unquote

import fsspec
from fsspec.core import url_to_fs

from traceviz.archive.sources.names import unsafe
from traceviz.archive.storage.addresses import display_address, is_url, is_web, printable, public, without_secrets
from traceviz.archive.storage.store import is_store_error
from traceviz.core.errors import TracevizError, UnknownFormatError, UsageError

_READ_AHEAD = 8 << 20
_PART = 1 << 18


@dataclass(frozen=True)
class Location:
    """A file.

    Args:
        url: Path on this machine, or a URL.
        name: Its display name.
    """

    url: str
    name: str

    @property
    def local(self) -> Path | None:
        """Its path, if it is local."""
        return None if is_url(self.url) else Path(self.url)

    def head(self, count: int) -> bytes:
        """Return its first bytes.

        Raises:
            UnknownFormatError: it cannot be read.
        """
        head = b""
        for block in self.blocks(count):
            head += block
            if len(head) >= count:
                break
        return head[:count]

    def blocks(self, size: int) -> Iterator[bytes]:
        """Yield all its bytes, in order, in blocks of at most ``size``.

        Raises:
            UnknownFormatError: it cannot be read.
        """
        with explain_errors(self.name):
            if self.local is not None:
                if not self.local.is_file():  # opening a named pipe would block
                    raise FileNotFoundError(f"{self.name} is no file.")
                file: Any = self.local.open("rb")
            else:
                filesystem, path = reach(self.url)
                file = filesystem.open(path, "rb", block_size=min(max(size, 1 << 16), _READ_AHEAD))
            with file:
                while block := file.read(size):
                    yield block

    @property
    def gives_parts(self) -> bool:
        """True if parts can be read separately, as in object stores. Web servers need not support that."""
        return self.local is None and not is_web(self.url)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the file in its store, for reading parts of it.

        Raises:
            UnknownFormatError: it cannot be read.
        """
        with explain_errors(self.name):
            filesystem, path = reach(self.url)
            with filesystem.open(path, "rb", block_size=_PART) as file:
                yield file

    @cached_property
    def _status(self) -> dict[str, Any]:
        with explain_errors(self.name):
            if self.local is not None:
                status = self.local.stat()
                return {"size": status.st_size, "mtime": status.st_mtime_ns}
            filesystem, path = reach(self.url)
            return dict(filesystem.info(path))

    @property
    def size(self) -> int | None:
        """Size in bytes, if known."""
        size = self._status.get("size")
        return None if size is None else int(size)

    def state(self) -> str:
        """Return a text that changes with the content, as far as this shows without reading the file."""
        kept = ("size", "mtime", "ETag", "etag", "LastModified", "md5Hash", "generation")
        return " ".join([self.url, *(f"{key}={self._status[key]}" for key in kept if key in self._status)])


def last_part(url: str) -> str:
    """Return the display name of a URL's file: its last part, without user, password or signature.

    The name is safe as a file name below a folder; it is empty if the URL has no path.
    """
    path = without_secrets(url).partition("://")[2]
    if is_web(url):  # the server decodes the path
        path = unquote(path.partition("/")[2])
    name = "".join(character if character.isprintable() else "_" for character in PurePosixPath(path).name)
    return "trace" if name and unsafe(name) else name


def reach(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        UsageError: no file system of this kind is known, or its library is not installed.
        UnknownFormatError: the connection to the store failed.
    """
    try:
        filesystem, path = url_to_fs(url)
    except ValueError as error:
        fix = "Name a file, or a URL of s3://."
        raise UsageError(f"{display_address(url)} cannot be reached.", f"{public(str(error))}.", fix) from None
    except ImportError as error:
        fix = "Install it: pip install 'traceviz-toolkit[cloud]'."
        raise UsageError(f"{display_address(url)} cannot be reached.", f"{public(str(error))}.", fix) from None
    except Exception as error:
        if not is_store_error(error):
            raise
        raise _unreadable(display_address(url), error) from error
    return filesystem, path


@contextmanager
def explain_errors(name: str) -> Iterator[None]:
    """Convert errors of files and stores to errors of traceviz.

    Raises:
        UnknownFormatError: the location cannot be reached or read.
    """
    try:
        yield
    except (TracevizError, GeneratorExit):
        raise
    except Exception as error:
        if not is_store_error(error) and not isinstance(error, ValueError | EOFError):
            raise
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> UnknownFormatError:
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else public(str(error)).rstrip(".")
    what = f"{printable(name)} cannot be read."
    return UnknownFormatError(what, f"{reason or type(error).__name__}.", "Try again.")
