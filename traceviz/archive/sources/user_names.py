"""Names of users in the paths of what is added: an archive does not tell in whose folders its traces were found."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from pathlib import Path

from traceviz.archive.sources.item import Item

HIDDEN = "[removed]"
_HOME = re.compile(r"(?:^|/)(?:home|homes|nethome|Users|users|u)/([^/]+)")
"""The user whose home folder it is; paths in archive files and buckets begin anywhere."""
_NOBODY = frozenset({"", "root", "shared", "public", "Shared", "Public"})


def users_of(item: Item) -> frozenset[str]:
    """Users whose names may be in the paths of an item: of whom the home folders in it are, and to whom it belongs."""
    named = {user for path in (item.url, item.name, item.member, item.job) for user in _HOME.findall(path)}
    return frozenset(named | _owner(item.url)) - _NOBODY


def below_users(path: str, users: Collection[str]) -> str:
    """What of a path lies below the folders of users, their names left out; empty where nothing does.

    ``jobs/a`` of ``home/ada/jobs/a``: which job it is can be told without whose it is.
    """
    *folders, last = path.split("/")
    owned = [position for position, folder in enumerate(folders) if folder in users]
    return "/".join([*folders[owned[-1] + 1 if owned else 0 :], without_user(last, users)]).strip("/")


def mark_of_user(path: str, users: Collection[str]) -> str:
    """Two digits of a hash of the user in whose folder a path lies; empty where there is none.

    Jobs of two users that are called the same stay apart by it. One of 256, it tells of nobody who it is.
    """
    owners = [folder for folder in path.split("/")[:-1] if folder in users]
    return hashlib.sha256(owners[-1].encode(errors="replace")).hexdigest()[:2] if owners else ""


def folder_below_users(path: str, users: Collection[str]) -> str:
    """The same of the path of a folder."""
    return below_users(f"{path}/", users)


def without_user(name: str, users: Collection[str]) -> str:
    """The name of a file with :data:`HIDDEN` in it, where it is called like a user but for its ending."""
    stem, dot, ending = name.partition(".")
    return name if stem not in users else f"{HIDDEN}{dot}{ending}"


def _owner(url: str) -> set[str]:
    """Whose file it is, on this machine."""
    try:
        return {Path(url).owner()}
    except (OSError, KeyError, ValueError):  # it is elsewhere, or its owner has no name
        return set()
