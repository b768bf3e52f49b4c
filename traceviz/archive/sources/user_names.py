"""Removal of user names from the paths of sources: an archive does not reveal in which home folders its traces lay."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from traceviz.archive.sources.item import Item

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


def numbered(name: str, clean: str) -> str:
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
