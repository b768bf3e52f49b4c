"""Temporary files and folders: none outlives the process that made it, whenever that is asked to end.

A name is noted before anything with that name exists. Blocks remove what they made; the rest is removed when the
process ends.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from traceviz.core.process.interrupts import uninterrupted

PREFIX = "traceviz-"
_ATTEMPTS = 3
"""Attempts to remove a folder: threads that still write may add a file during the removal."""

_noted: dict[Path, int] = {}
"""Paths to remove, and the process that made each: a fork has the names, too."""


def note(folder: Path, prefix: str) -> Path:
    """Return a new name in ``folder`` for a file or folder. :func:`drop` or the end of the process removes it."""
    path = folder / f"{prefix}{secrets.token_hex(6)}"
    _noted[path] = os.getpid()
    return path


def drop(path: Path) -> None:
    """Remove the path that :func:`note` returned, if it exists."""
    with uninterrupted():
        for _ in range(_ATTEMPTS):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
            if not os.path.lexists(path):
                break
        _noted.pop(path, None)


@atexit.register
def drop_all() -> None:
    """Remove all remaining paths of this process."""
    for path, process in list(_noted.items()):
        if process == os.getpid():
            drop(path)


@contextmanager
def temporary_folder(prefix: str = PREFIX) -> Iterator[Path]:
    """Yield a new empty folder of this user alone, in the system's temporary folder; removed when the block ends."""
    path = note(Path(tempfile.gettempdir()), prefix)
    try:
        path.mkdir(mode=0o700)
        yield path
    finally:
        drop(path)


class HeldFolder:
    """A new temporary folder of this user alone, which exists as long as it or one of its files is referenced."""

    def __init__(self) -> None:
        self.path = note(Path(tempfile.gettempdir()), PREFIX)
        self.path.mkdir(mode=0o700)
        weakref.finalize(self, _drop_own, self.path, os.getpid()).atexit = False  # drop_all handles that

    def file(self, name: str) -> HeldFile:
        """Return the path of a file in it."""
        path = HeldFile(self.path / name)
        path.folder = self
        return path


class HeldFile(type(Path())):  # type: ignore[misc]  # the class that paths have on this system
    """Path of a file in a folder that exists as long as the path is referenced."""

    folder: HeldFolder


def _drop_own(path: Path, process: int) -> None:
    """Remove a folder, unless only a fork released it."""
    if process == os.getpid():
        drop(path)
