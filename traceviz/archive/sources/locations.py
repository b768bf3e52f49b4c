"""One file as the source of a trace or of many: on this machine, or behind a URL that fsspec knows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from urllib.parse import unquote

import fsspec
from fsspec.core import url_to_fs

from traceviz.archive.sources.packed.names import printable, unsafe
from traceviz.errors import TracevizError, UnknownFormatError, UsageError

_READ_AHEAD = 8 << 20
_PART = 1 << 18
_WEB = ("http://", "https://")
_ADDRESS = re.compile(r"\b[A-Za-z][\w+.-]*://[^\s'\"]*")
_USER = re.compile(r"[^\s'\"/:@()=,]+:[^\s'\"/@]*@(?=[\w\[])")
"""User and password before the name of a host, without the kind of address."""
_NAMED_BEFORE_HOST = frozenset({"abfs", "abfss", "github", "wasb", "wasbs"})
"""Where what stands before an ``@`` is a container or repository, no user."""
_LIBRARIES = frozenset(
    {
        *("adlfs", "aiobotocore", "aiohttp", "azure", "botocore", "fsspec", "ftplib", "gcsfs", "google", "msal"),
        *("paramiko", "requests", "s3fs", "smbclient", "smbprotocol", "spnego", "urllib3"),
    }
)
"""Whose errors have a common base with nothing: each says that the store cannot be reached, or refuses."""


@dataclass(frozen=True)
class Place:
    """A file.

    Args:
        url: Path on this machine, or a URL.
        name: What people call it.
    """

    url: str
    name: str

    @property
    def local(self) -> Path | None:
        """Its path, where it lies on this machine."""
        return None if is_url(self.url) else Path(self.url)

    def head(self, count: int) -> bytes:
        """Its first bytes.

        Raises:
            UnknownFormatError: it cannot be read.
        """
        found = b""
        for block in self.blocks(count):
            found += block
            if len(found) >= count:
                break
        return found[:count]

    def blocks(self, size: int) -> Iterator[bytes]:
        """All its bytes, in order, in blocks of at most ``size``.

        Raises:
            UnknownFormatError: it cannot be read.
        """
        with explained(self.name):
            if self.local is not None:
                if not self.local.is_file():  # a named pipe would be waited for
                    raise FileNotFoundError(f"{self.name} is no file.")
                file: Any = self.local.open("rb")
            else:
                filesystem, path = reached(self.url)
                file = filesystem.open(path, "rb", block_size=min(max(size, 1 << 16), _READ_AHEAD))
            with file:
                while block := file.read(size):
                    yield block

    @property
    def gives_parts(self) -> bool:
        """Whether it lies in a store that gives any part of it; servers of the web need not."""
        return self.local is None and not is_web(self.url)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file where it lies, to be read in parts.

        Raises:
            UnknownFormatError: it cannot be read.
        """
        with explained(self.name):
            filesystem, path = reached(self.url)
            with filesystem.open(path, "rb", block_size=_PART) as file:
                yield file

    @cached_property
    def _status(self) -> dict[str, Any]:
        with explained(self.name):
            if self.local is not None:
                status = self.local.stat()
                return {"size": status.st_size, "mtime": status.st_mtime_ns}
            filesystem, path = reached(self.url)
            return dict(filesystem.info(path))

    @property
    def size(self) -> int | None:
        """Bytes, where a server says."""
        size = self._status.get("size")
        return None if size is None else int(size)

    def state(self) -> str:
        """What changes when its content does, as far as can be told without reading it."""
        kept = ("size", "mtime", "ETag", "etag", "LastModified", "md5Hash", "generation")
        return " ".join([self.url, *(f"{key}={self._status[key]}" for key in kept if key in self._status)])


def is_url(source: str) -> bool:
    """Whether it is a URL rather than a path."""
    protocol, found, _ = source.partition("://")
    return bool(found) and not protocol.startswith((".", "/", "~"))


def is_web(url: str) -> bool:
    """Whether it is a page of the web, of which no listings exist."""
    return url.startswith(_WEB)


def last_part(url: str) -> str:
    """What people call the file of a URL: its last part, never its user, password or signature.

    It may be the name of a file below a folder; empty where the URL has no path.
    """
    path = _bare(url).partition("://")[2]
    if is_web(url):  # of which parts are told apart by the server, after this
        path = unquote(path.partition("/")[2])
    name = "".join(one if one.isprintable() else "_" for one in PurePosixPath(path).name)
    return "trace" if name and unsafe(name) else name


def shown(url: str) -> str:
    """A URL or path for people, without user, password and signature."""
    return printable(_bare(url) if is_url(url) else url)


def public(text: str) -> str:
    """What a library says, without the users, passwords and signatures of the addresses in it."""
    return printable(_USER.sub("", _ADDRESS.sub(lambda found: _bare(found[0]), text)))


def _bare(url: str) -> str:
    """A URL, or several in a chain, without users, passwords and signatures."""
    return "::".join(_bare_part(part) for part in url.split("::"))


def _bare_part(url: str) -> str:
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    path, _, query = rest.partition("?")
    if scheme in {"http", "https"}:
        rest = path.partition("#")[0]
    elif "=" in query:  # else it stands for any letter, or is a part of a name
        rest = path
    host, slash, path = rest.partition("/")
    if scheme not in _NAMED_BEFORE_HOST and "@" in host:
        host = host.rpartition("@")[2]
    elif scheme not in _NAMED_BEFORE_HOST and "@" in path and not host.partition(":")[2].isdigit() and ":" in host:
        return scheme + found + path.rpartition("@")[2]  # a password with a slash in it
    return scheme + found + host + slash + path


def reached(url: str) -> tuple[fsspec.AbstractFileSystem, str]:
    """The file system of a URL, and the path there.

    Raises:
        UsageError: no file system of this kind is known, or what reaches it is not installed.
        UnknownFormatError: it is reached when its file system is made, and that failed.
    """
    try:
        filesystem, path = url_to_fs(url)
    except ValueError as error:
        fix = "Name a file, or a URL of s3://."
        raise UsageError(f"{shown(url)} cannot be reached.", f"{public(str(error))}.", fix) from None
    except ImportError as error:
        fix = "Install it: pip install 'traceviz-toolkit[cloud]'."
        raise UsageError(f"{shown(url)} cannot be reached.", f"{public(str(error))}.", fix) from None
    except Exception as error:
        if not of_store(error):
            raise
        raise _unreadable(shown(url), error) from error
    return filesystem, path


@contextmanager
def explained(name: str) -> Iterator[None]:
    """What files and stores complain of, as an error of ours.

    Raises:
        UnknownFormatError: the place cannot be reached or read.
    """
    try:
        yield
    except (TracevizError, GeneratorExit):
        raise
    except Exception as error:
        if not of_store(error) and not isinstance(error, ValueError | EOFError):
            raise
        raise _unreadable(name, error) from error


def of_store(error: Exception) -> bool:
    """Whether an error says that a place cannot be reached, or refuses.

    Libraries of object stores raise errors of their own, which have no other base in common.
    """
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _LIBRARIES


def _unreadable(name: str, error: Exception) -> UnknownFormatError:
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else public(str(error)).rstrip(".")
    what = f"{printable(name)} cannot be read."
    return UnknownFormatError(what, f"{reason or type(error).__name__}.", "Try again.")
