"""The run folder before the program starts: created, and removed again if the program cannot be run."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from traceviz.collectors.run.manifest import is_run_folder
from traceviz.core.files import check_folder_free, explained

RAW = "raw"
TABLES = "tables"
INJECTION = "inject.json"

_RESERVE = ".reserve"
_RESERVED_BYTES = 1 << 16
"""Space reserved for the last manifest: it can be written after a profiler has filled the disk."""


@contextlib.contextmanager
def new_run_folder(folder: Path, collectors: tuple[str, ...], *, force: bool) -> Iterator[NewRun]:
    """Make ``folder`` with ``raw/NAME`` for each collector; remove it again unless the block calls :meth:`NewRun.keep`.

    A run that is replaced is set aside, and restored if the new one cannot start.

    Raises:
        OutputExistsError: ``folder`` exists and may not be replaced.
        OutputError: it cannot be written.
    """
    check_folder_free(folder, force=force, replaceable=is_run_folder)
    run = NewRun(folder)
    try:
        with explained(folder):
            run.make(collectors)
        yield run
    finally:
        run.finish()


class NewRun:
    """A run folder whose program may or may not start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: Path | None = None
        self._aside: Path | None = None
        self._kept = False

    def make(self, collectors: tuple[str, ...]) -> None:
        """Set aside an existing folder and make the folders."""
        if self._folder.exists():
            self._aside = Path(tempfile.mkdtemp(prefix=f".{self._folder.name}.", dir=self._folder.parent)) / "run"
            self._folder.rename(self._aside)
        missing = self._folder
        while not missing.parent.exists():
            missing = missing.parent
        self._made = missing
        for name in collectors:
            (self._folder / RAW / name).mkdir(parents=True)
        (self._folder / RAW).mkdir(parents=True, exist_ok=True)
        reserve(self._folder)

    def keep(self) -> None:
        """Keep the folder in any case, because the program runs."""
        self._kept = True

    def finish(self) -> None:
        """Remove the replaced run; or remove the new folders and restore the replaced run."""
        if not self._kept and self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
        if self._aside is not None:
            if not self._kept and self._aside.exists():
                self._folder.parent.mkdir(parents=True, exist_ok=True)
                self._aside.rename(self._folder)
            shutil.rmtree(self._aside.parent, ignore_errors=True)


def reserve(folder: Path) -> None:
    """Reserve the space that the last manifest needs.

    Raises:
        OSError: the disk is full.
    """
    handle = os.open(folder / _RESERVE, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(handle, b"\0" * _RESERVED_BYTES)
        os.fsync(handle)
    finally:
        os.close(handle)


def release(folder: Path) -> None:
    """Release the reserved space."""
    with contextlib.suppress(OSError):
        (folder / _RESERVE).unlink(missing_ok=True)


def room(folder: Path) -> int:
    """Return the free bytes of the file system of ``folder`` for this user; ``sys.maxsize`` if unknown."""
    try:
        system = os.statvfs(folder)
    except OSError:
        return sys.maxsize
    return system.f_bavail * system.f_frsize if system.f_blocks else sys.maxsize


def bytes_of(file: Path) -> int:
    """Return the size of a file; 0 if it was just removed."""
    try:
        return file.lstat().st_size
    except OSError:
        return 0


def bytes_below(folder: Path) -> int:
    """Return the total size of all files in a folder; files and folders removed during the count add nothing."""
    return sum(bytes_of(Path(parent, name)) for parent, _, names in os.walk(folder) for name in names)


def drop_raw(folder: Path) -> None:
    """Remove the recordings of the profilers, once tables have been made of them."""
    shutil.rmtree(folder / RAW, ignore_errors=True)
    with contextlib.suppress(OSError):
        (folder / INJECTION).unlink(missing_ok=True)
