"""Folders that are cached from one run to the next, for this user alone, and bounded in size.

``TRACEVIZ_CACHE`` names the place; if it is empty or ``0``, there is no cache. ``TRACEVIZ_CACHE_SIZE`` bounds it:
entries that were not used for longest are evicted first. The cache is never needed: if its folder cannot be written or
read, nothing is cached, and nothing fails.

The cache deletes only what it made::

    TRACEVIZ_CACHE/exports/              of this user alone (0700), no link
        .traceviz-cache                  the marker, written into a new or empty folder only
        <64 hexadecimal digits>/         an entry: regular files of known names, and nothing else
        .<12 hexadecimal digits>/        an entry that is being copied or removed

A folder that holds anything else and no marker belongs to the user: it is not used, and a warning reports that. A
folder of an earlier version has no marker; it is adopted if traceviz wrote every entry in it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
import warnings
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from traceviz.core.errors import TracevizWarning, UsageError
from traceviz.core.process.interrupts import uninterrupted
from traceviz.core.process.temporary import drop, note
from traceviz.core.sanitize import one_line
from traceviz.core.units import parse_bytes
from traceviz.trace.trace_folder import is_trace_folder

PLACE_VARIABLE = "TRACEVIZ_CACHE"
SIZE_VARIABLE = "TRACEVIZ_CACHE_SIZE"
MARKER = ".traceviz-cache"
"""Name of the file that marks a folder as ours."""
MOST_BYTES = 5 * 10**9
"""Size of the cache if the environment does not set one."""
SPARED_BYTES = 64 * 2**20
"""Bytes of the disk that stay free."""
_MARKER_TEXT = (
    "A cache of traceviz. Entries in this folder are removed without asking. Keep no files of your own here.\n"
)
_OFF = frozenset({"", "0"})
_UNFINISHED = "."
"""Start of the names of entries that are being written or removed."""
_UNFINISHED_NAME = re.compile(r"\.[0-9a-f]{12}")
_KEY = re.compile(r"[0-9a-f]{64}")
_ABANDONED_S = 24 * 3600
"""Age from which an unfinished entry counts as abandoned: its process was killed."""


@dataclass(frozen=True, slots=True)
class KeptFolders:
    """Folders by key, a SHA-256 as hexadecimal digits.

    Args:
        place: The folder that holds them; it need not exist.
        files: Names of the files that an entry may hold.
        most_bytes: Bound on the size of all entries.
    """

    place: Path
    files: AbstractSet[str]
    most_bytes: int = MOST_BYTES

    def problem(self) -> str:
        """Return why an existing folder is not used, as a clause; empty if it may be used.

        Raises:
            OSError: the folder cannot be read.
        """
        if not os.path.lexists(self.place):
            return ""
        found = self.place.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return "it is a link" if stat.S_ISLNK(found.st_mode) else "it is no folder"
        if found.st_uid != os.geteuid():
            return "it belongs to another user"
        if found.st_mode & 0o077:
            return "other users can read or write it"
        if _is_own_file(self.place / MARKER):
            return ""
        foreign = sorted(
            entry.name
            for entry in self.place.iterdir()
            if not (self._is_own(entry) and (_UNFINISHED_NAME.fullmatch(entry.name) or is_trace_folder(entry)))
        )
        return f"it holds {foreign[0]!r}, which traceviz did not write" if foreign else ""

    def find(self, key: str) -> Path | None:
        """Return the folder kept under ``key``, which counts as used now; ``None`` if there is none."""
        folder = self.place / key
        try:
            if self.problem() or not self._is_own(folder):
                return None
        except OSError:
            return None
        with suppress(OSError):
            os.utime(folder)
        return folder

    def keep(self, key: str, folder: Path) -> Path | None:
        """Move ``folder``, which holds files of known names only, into the cache, and evict entries beyond the bound.

        Returns:
            Its new path. ``None`` if it cannot be cached, or if another process cached one under ``key`` at the same
            time;
            then ``folder`` is still where it was.
        """
        size = _size(folder)
        if size > self.most_bytes:
            return None
        try:
            self.place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.place.mkdir(mode=0o700, exist_ok=True)
            if problem := self.problem():
                raise PermissionError(errno.EPERM, problem)
            with suppress(FileExistsError), (self.place / MARKER).open("x") as marker:
                marker.write(_MARKER_TEXT)
            if shutil.disk_usage(self.place).free < size + SPARED_BYTES:
                return None
            if self.find(key) is None:
                self.evict(key)  # a damaged entry is useless, and would be in the way
            self._move(folder, self.place / key)
        except OSError:
            return None
        self._make_room(spared=key)
        return self.place / key

    def evict(self, key: str) -> None:
        """Remove the folder kept under ``key``, for other processes all at once."""
        self._remove(self.place / key)

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

    def _make_room(self, spared: str) -> None:
        """Evict the entries that were not used for longest until the others keep the bound; remove abandoned ones."""
        entries: list[tuple[float, int, Path]] = []
        with suppress(OSError):
            for entry in self.place.iterdir():
                with suppress(OSError):  # another process evicted it
                    if self._is_own(entry):
                        entries.append((entry.lstat().st_mtime, _size(entry), entry))
        finished = [entry for entry in entries if _KEY.fullmatch(entry[2].name)]
        total = sum(size for _, size, _ in finished)
        for _, size, entry in sorted(finished):
            if total > self.most_bytes and entry.name != spared:
                self._remove(entry)
                total -= size
        for used, _, entry in entries:
            if _UNFINISHED_NAME.fullmatch(entry.name) and time.time() - used > _ABANDONED_S:
                self._remove(entry)

    def _remove(self, entry: Path) -> None:
        """Remove an entry if it is ours: its files by their names, then the folder, which is empty by then."""
        aside = self.place / f"{_UNFINISHED}{secrets.token_hex(6)}"
        with suppress(OSError), uninterrupted():
            if self.problem() or not self._is_own(entry):
                return
            entry.rename(aside)
            folder = os.open(aside, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                for name in self.files & set(os.listdir(folder)):  # noqa: PTH208 (a path may be another by now)
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(folder)
            aside.rmdir()

    def _is_own(self, entry: Path) -> bool:
        """Check that ``entry`` looks as this cache makes its entries: name, owner, and files of known names only.

        Raises:
            OSError: it cannot be read.
        """
        if not (_KEY.fullmatch(entry.name) or _UNFINISHED_NAME.fullmatch(entry.name)):
            return False
        found = entry.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return False
        return all(file.name in self.files and _is_own_file(file) for file in entry.iterdir())


def kept_folders(kind: str, files: AbstractSet[str]) -> KeptFolders | None:
    """Return the cache of a ``kind`` that the environment asks for; ``None`` if there is none, or it is not ours.

    Args:
        kind: Name of its folder.
        files: Names of the files that an entry may hold.

    Warns:
        TracevizWarning: the folder exists and is not ours.

    Raises:
        UsageError: the environment names a bound that is not a size.
    """
    named = os.environ.get(PLACE_VARIABLE)
    if named is not None and named in _OFF:
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME", "")
        usual = (Path(base) if base.startswith("/") else Path("~/.cache")) / "traceviz"
        root = (usual if named is None else Path(named)).expanduser()
    except RuntimeError:  # the home folder of this user is not known
        return None
    most_bytes: int | None = MOST_BYTES
    if text := os.environ.get(SIZE_VARIABLE):
        most_bytes = parse_bytes(text)
    if most_bytes is None:
        raise UsageError(f"{SIZE_VARIABLE} is {text!r}, which is no size.", fix="Write 5GB, for example, or unset it.")
    kept = KeptFolders(root.absolute() / kind, files, most_bytes)
    try:
        problem = kept.problem()
    except OSError:
        return None
    if problem:
        where = one_line(str(kept.place))
        fix = f"Set {PLACE_VARIABLE} to a new folder of yours, or to 0 for no cache."
        warnings.warn(f"The cache {where} is not used: {problem}. {fix}", TracevizWarning, stacklevel=2)
        return None
    return kept


def _is_own_file(path: Path) -> bool:
    """Check that ``path`` is a regular file of this user, and no link."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _size(folder: Path) -> int:
    """Return the bytes of the files in ``folder``; 0 if it vanishes."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError:
        return 0
