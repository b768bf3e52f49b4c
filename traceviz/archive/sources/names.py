"""Safety of names inside archive files and object stores as paths.

Such names cannot be trusted. They are checked when an archive file is listed, so that unpacking later cannot write
outside the target folder.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from traceviz.archive.storage.addresses import printable

MOST_BYTES = 1024
"""Maximum length of a name in bytes."""
MOST_PART = 255
"""Maximum length of a file or folder name in bytes, a limit of file systems."""
_DRIVE = re.compile(r"^[A-Za-z]:")


def normal(name: str) -> str:
    """Remove redundant parts of a name: ``./a//b`` becomes ``a/b``. An unsafe name stays unsafe."""
    lead = "/" if name.startswith("/") else ""
    return lead + "/".join(part for part in name.split("/") if part not in {"", "."})


def unsafe(name: str) -> str:
    """Return the reason why a name may not become a path below a folder; empty if it may."""
    return next((why for holds, why in _UNSAFE if holds(name)), "")


def _too_long(name: str) -> bool:
    lengths = [len(os.fsencode(part)) for part in name.split("/")]
    return sum(lengths) + len(lengths) > MOST_BYTES or max(lengths) > MOST_PART


def _is_half(name: str) -> bool:
    """Return whether a name holds half a surrogate pair. Paths cannot contain it (unlike bytes that are not UTF-8)."""
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return True
    return False


_UNSAFE: tuple[tuple[Callable[[str], bool], str], ...] = (
    (lambda name: not name, "It has no name."),
    (lambda name: "\0" in name, "Its name holds a NUL character."),
    (lambda name: name.startswith("/"), "Its name is an absolute path."),
    (
        lambda name: "\\" in name,
        "Its name holds a backslash, which only some programs take for a separator of folders.",
    ),
    (lambda name: _DRIVE.match(name) is not None, "Its name begins with a drive letter."),
    (lambda name: ".." in name.split("/"), "Its name leads out of the folder (..)."),
    (_is_half, "Its name holds half a character."),
    (_too_long, f"Its name is longer than {MOST_BYTES:,} bytes, or a part of it than {MOST_PART}."),
)


def plain_path(path: Path, into: Path, beside: Iterable[Path] = ()) -> Path:
    """Return a path that every reader and table accepts: the path or a link to it, as many accept only UTF-8 names.

    Args:
        path: A file or folder.
        into: Folder in which a link may be made.
        beside: Files in the same folder that readers look for: the same name with another suffix.
    """
    name = printable(path.name)
    if name == path.name and str(path).isprintable():
        return path
    link = Path(tempfile.mkdtemp(dir=into), name.encode()[-MOST_PART:].decode("utf-8", "ignore"))
    link.symlink_to(path.absolute())
    for neighbour in beside:
        if neighbour.is_file():
            link.with_suffix(neighbour.suffix).symlink_to(neighbour.absolute())
    return link


def text_of(raw: bytes, *, utf8: bool) -> str:
    """Decode a name in a zip file: as UTF-8 if possible, since many programs write UTF-8 without stating it.

    Args:
        raw: The bytes of the name.
        utf8: True if the file states UTF-8; otherwise the name may be in code page 437.
    """
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape") if utf8 else raw.decode("cp437")
