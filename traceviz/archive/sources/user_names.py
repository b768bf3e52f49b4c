"""Names of users in the paths of sources: an archive does not reveal in whose folders its traces lay."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from traceviz.archive.sources.item import Item

HIDDEN = "[removed]"
_HOME = re.compile(r"(?:^|/)(?:home|homes|nethome|Users|users|u)/([^/]+)")
"""The user of a home folder; paths in archive files and buckets may begin anywhere."""
_NOBODY = frozenset({"", "root", "shared", "public", "Shared", "Public"})


def users_of(item: Item) -> frozenset[str]:
    """Users whose names may be in the paths of an item: users of home folders in it, and its owner."""
    named = {user for path in (item.url, item.name, item.member, item.job) for user in _HOME.findall(path)}
    return frozenset(named | _owner(item.url)) - _NOBODY


def below_users(path: str, users: Collection[str]) -> str:
    """The part of a path below the folders of users, without their names; empty if there is none.

    ``home/ada/jobs/a`` becomes ``jobs/a``: it names the job, not the user.
    """
    *folders, last = path.split("/")
    owned = [position for position, folder in enumerate(folders) if folder in users]
    return "/".join([*folders[owned[-1] + 1 if owned else 0 :], without_user(last, users)]).strip("/")


def mark_of_user(path: str, users: Collection[str]) -> str:
    """Two digits of a hash of the user in whose folder a path lies; empty if there is none.

    It keeps jobs of the same name of two users apart. As one of 256 values, it identifies nobody.
    """
    owners = [folder for folder in path.split("/")[:-1] if folder in users]
    return hashlib.sha256(owners[-1].encode(errors="replace")).hexdigest()[:2] if owners else ""


def folder_below_users(path: str, users: Collection[str]) -> str:
    """The same for the path of a folder."""
    return below_users(f"{path}/", users)


def without_user(name: str, users: Collection[str]) -> str:
    """The name of a file, with :data:`HIDDEN` for a stem that is the name of a user."""
    stem, dot, ending = name.partition(".")
    return name if stem not in users else f"{HIDDEN}{dot}{ending}"


def numbered(name: str, clean: str) -> str:
    """A cleaned name with a number in each placeholder: ``[removed-417].xplane.pb``.

    Names of one archive that lost the same text have the same number, whoever added them, and others most likely
    another. As one of a thousand values of a hash, the number tells nobody what was removed.

    Args:
        name: The name as it was.
        clean: The same, with :data:`HIDDEN` in place of what is private; returned where it is not that.
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
    """The owner of a file on this machine."""
    try:
        return {Path(url).owner()}
    except (OSError, KeyError, ValueError):  # it is elsewhere, or its owner has no name
        return set()
