"""Temporary files and folders: none outlives the process that made it, at whatever moment that is asked to end.

A name is noted before anything of that name exists. Blocks remove what they made; what they had no time to remove is
removed when the process ends.
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
"""Threads that still write may make a file in a folder that is being removed."""

_noted: dict[Path, int] = {}
"""What is to be removed, and the process that made it: a fork has the names, too."""


def note(folder: Path, prefix: str) -> Path:
    """A new name in ``folder`` for a file or folder, which is removed by :func:`drop`, or when the process ends."""
    path = folder / f"{prefix}{secrets.token_hex(6)}"
    _noted[path] = os.getpid()
    return path


def drop(path: Path) -> None:
    """Remove what :func:`note` named, if it is there."""
    with uninterrupted():
        _remove(path)
        _noted.pop(path, None)


@atexit.register
def drop_all() -> None:
    """Remove all that is left of this process."""
    for path, process in list(_noted.items()):
        if process == os.getpid():
            drop(path)


@contextmanager
def temporary_folder(prefix: str = PREFIX) -> Iterator[Path]:
    """A new empty folder of this user alone, where the system has temporary files; removed when the block ends."""
    path = note(Path(tempfile.gettempdir()), prefix)
    try:
        path.mkdir(mode=0o700)
        yield path
    finally:
        drop(path)


class HeldFolder:
    """A new temporary folder of this user alone, which is there as long as somebody holds it, or a file of it."""

    def __init__(self) -> None:
        self.path = note(Path(tempfile.gettempdir()), PREFIX)
        self.path.mkdir(mode=0o700)
        weakref.finalize(self, _drop_own, self.path, os.getpid()).atexit = False  # drop_all sees to that

    def file(self, name: str) -> HeldFile:
        """The path of a file in it."""
        path = HeldFile(self.path / name)
        path.folder = self
        return path


class HeldFile(type(Path())):  # type: ignore[misc]  # the class that paths have on this system
    """The path of a file in a folder that is there as long as the path is held."""

    folder: HeldFolder


def _drop_own(path: Path, process: int) -> None:
    """Remove a folder, unless a fork has merely let go of it."""
    if process == os.getpid():
        drop(path)


def _remove(path: Path) -> None:
    for _ in range(_ATTEMPTS):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        if not os.path.lexists(path):
            return
