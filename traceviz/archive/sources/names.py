"""Safety of names inside archive files and object stores as paths, and removal of user names from paths.

Such names cannot be trusted. They are checked when an archive file is listed, so that unpacking later cannot write
outside the target folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from traceviz.archive.sources.hashes import Item
from traceviz.archive.storage.addresses import printable

HIDDEN = "[removed]"
_HOME = re.compile(r"(?:^|/)(?:home|homes|nethome|Users|users|u)/([^/]+)")
"""User of a home folder. Paths in archive files and buckets may start at any folder."""
_NOBODY = frozenset({"", "root", "shared", "public", "Shared", "Public"})


def users_of(item: Item) -> frozenset[str]:
    """Return users whose names may be in the paths of an item: users of home folders in it, and its owner."""
    named = {user for path in (item.url, item.name, item.member, item.job) for user in _HOME.findall(path)}
    return frozenset(named | _owner(item.url)) - _NOBODY


def below_users(path: str, users: Collection[str]) -> str:
    """Return the part of a path below the folders of users, without their names; empty if there is none.

    ``home/ada/jobs/a`` becomes ``jobs/a``, which names the job but not the user.
    """
    *folders, last = path.split("/")
    owned = [position for position, folder in enumerate(folders) if folder in users]
    return "/".join([*folders[owned[-1] + 1 if owned else 0 :], without_user(last, users)]).strip("/")


def mark_of_user(path: str, users: Collection[str]) -> str:
    """Return two digits of a hash of the user whose folder contains a path; empty if there is none.

    They distinguish jobs of the same name of two users. One of 256 values does not identify a user.
    """
    owners = [folder for folder in path.split("/")[:-1] if folder in users]
    return hashlib.sha256(owners[-1].encode(errors="replace")).hexdigest()[:2] if owners else ""


def folder_below_users(path: str, users: Collection[str]) -> str:
    """Do the same for the path of a folder."""
    return below_users(f"{path}/", users)


def without_user(name: str, users: Collection[str]) -> str:
    """Return the name of a file, with :data:`HIDDEN` for a stem that is the name of a user."""
    stem, dot, ending = name.partition(".")
    return name if stem not in users else f"{HIDDEN}{dot}{ending}"


def number_placeholders(name: str, clean: str) -> str:
    """Number the placeholders of a cleaned name: ``[removed-417].xplane.pb``.

    Equal removed texts get equal numbers, regardless of the user who added them. Different texts most likely get
    different numbers. A number is one of a thousand hash values, so it does not reveal the text.

    Args:
        name: The name as it was.
        clean: The same with :data:`HIDDEN` in place of private parts; returned unchanged if it is not that.
    """
    first, *pieces = clean.split(HIDDEN)
    if not name.startswith(first):
        return clean
    at, parts = len(first), [first]
    for place, piece in enumerate(pieces, 1):
        is_last = place == len(pieces)
        end = len(name) - len(piece) if is_last else name.find(piece, at + 1)
        if end <= at or not name.startswith(piece, end):
            return clean
        parts += [f"{HIDDEN[:-1]}-{_number(name[at:end])}{HIDDEN[-1]}", piece]
        at = end + len(piece)
    return "".join(parts)


def _number(text: str) -> str:
    digest = hashlib.sha256(text.casefold().encode(errors="replace")).digest()
    return f"{int.from_bytes(digest[:8], 'big') % 1_000:03}"


def _owner(url: str) -> set[str]:
    """Return the owner of a local file."""
    try:
        return {Path(url).owner()}
    except (OSError, KeyError, ValueError):  # the file is remote, or its owner has no name
        return set()


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
