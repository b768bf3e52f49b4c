"""Folders that are kept from one run to the next: a cache of this user alone, bounded in size.

``TRACEVIZ_CACHE`` names the place; empty, or ``0``, there is none. ``TRACEVIZ_CACHE_SIZE`` bounds it: what was not used
for longest goes first. The place is never needed: where it cannot be written or read, or is not this user's alone,
nothing is kept, and nothing fails.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traceviz.errors import UsageError
from traceviz.process.interrupts import uninterrupted
from traceviz.process.temporary import drop, note
from traceviz.units import parse_bytes

PLACE_VARIABLE = "TRACEVIZ_CACHE"
SIZE_VARIABLE = "TRACEVIZ_CACHE_SIZE"
MOST_BYTES = 5 * 10**9
"""How much is kept where nobody says."""
SPARED_BYTES = 64 * 2**20
"""So much of the disk stays free."""
_OFF = frozenset({"", "0"})
_UNFINISHED = "."
"""Names of what is being written, or removed, begin so."""
_ABANDONED_S = 24 * 3600
"""What has been unfinished for so long, its process was killed over."""


@dataclass(frozen=True, slots=True)
class KeptFolders:
    """Folders by key, a word of letters and digits.

    Args:
        place: The folder that holds them; it need not exist.
        most_bytes: What all of them may take.
    """

    place: Path
    most_bytes: int = MOST_BYTES

    def find(self, key: str) -> Path | None:
        """The folder kept under ``key``, which counts as used now; ``None`` where there is none."""
        folder = self.place / key
        try:
            if not (_is_private(self.place) and _is_private(folder) and _holds_files_only(folder)):
                return None
        except OSError:
            return None
        with suppress(OSError):
            os.utime(folder)
        return folder

    def keep(self, key: str, folder: Path) -> Path | None:
        """Move ``folder``, which holds files only, to where :meth:`find` finds it, and make room for it.

        Returns:
            Where it is now, or what another process kept under ``key`` meanwhile; ``None`` where it cannot be kept:
            then it is still where it was.
        """
        size = _size(folder)
        if size > self.most_bytes:
            return None
        try:
            self.place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.place.mkdir(mode=0o700, exist_ok=True)
            if not _is_private(self.place) or shutil.disk_usage(self.place).free < size + SPARED_BYTES:
                return None
            if self.find(key) is None:
                self.throw_away(key)  # what is there is of no use, and would be in the way
            self._move(folder, self.place / key)
        except OSError:
            return self.find(key)
        self._make_room(spared=key)
        return self.place / key

    def _move(self, folder: Path, target: Path) -> None:
        """Rename ``folder``; to another disk, copy it under a temporary name first."""
        folder.chmod(0o700)
        try:
            with uninterrupted():
                folder.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
        else:
            return
        copy = note(self.place, _UNFINISHED)
        try:
            copy.mkdir(mode=0o700)
            for file in folder.iterdir():
                shutil.copyfile(file, copy / file.name)
            with uninterrupted():
                copy.rename(target)
        finally:
            drop(copy)

    def throw_away(self, key: str) -> None:
        """Remove the folder kept under ``key``, for other processes all at once."""
        old = note(self.place, _UNFINISHED)
        try:
            with suppress(OSError):
                (self.place / key).rename(old)
        finally:
            drop(old)

    def _make_room(self, spared: str) -> None:
        """Remove the folders that were not used for longest, until the others take no more than they may."""
        with suppress(OSError):
            folders = [entry for entry in self.place.iterdir() if entry.is_dir() and not entry.is_symlink()]
            finished = [folder for folder in folders if not folder.name.startswith(_UNFINISHED)]
            used = {folder: folder.stat().st_mtime for folder in finished}
            sizes = {folder: _size(folder) for folder in finished}
            total = sum(sizes.values())
            for folder in sorted(finished, key=used.__getitem__):
                if total > self.most_bytes and folder.name != spared:
                    self.throw_away(folder.name)
                    total -= sizes[folder]
            for folder in set(folders) - set(finished):
                if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                    drop(folder)


def kept_folders(kind: str) -> KeptFolders | None:
    """Where folders of a ``kind`` are kept, by the environment; ``None`` where nothing is to be kept.

    Raises:
        UsageError: the environment names a bound that is no size.
    """
    named = os.environ.get(PLACE_VARIABLE)
    if named is not None and named in _OFF:
        return None
    try:
        root = _usual_place() if named is None else Path(named).expanduser()
    except RuntimeError:  # nobody knows where this user is at home
        return None
    return KeptFolders(root.absolute() / kind, _bound())


def _bound() -> int:
    text = os.environ.get(SIZE_VARIABLE)
    if not text:
        return MOST_BYTES
    stated = parse_bytes(text)
    if stated is None:
        raise UsageError(f"{SIZE_VARIABLE} is {text!r}, which is no size.", fix="Write 5GB, for example, or unset it.")
    return stated


def _usual_place() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "traceviz"


def _is_private(folder: Path) -> bool:
    """Whether ``folder`` is a real folder that this user made, and that nobody else can read or write."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _holds_files_only(folder: Path) -> bool:
    return all(stat.S_ISREG(file.lstat().st_mode) for file in folder.iterdir())


def _size(folder: Path) -> int:
    """Bytes of the files in ``folder``; none where it vanishes meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError:
        return 0
