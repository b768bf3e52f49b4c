"""Copies shared by the processes of a machine: a compressed tar file is unpacked once, a remote one fetched once.

::

    $TMPDIR/traceviz-spool-1000/       private to this user
        5d41402a...                    a plain zip or tar file; read-only when complete
        room-0b7d...                   a folder for temporary files of one process, such as tables with secrets

Each process that reads a copy holds a shared lock on it. The process that creates the copy holds an exclusive lock, and
the others wait. The last process that releases a copy removes it. A process releases its copies when its add ends, or
after some idle time, as a worker on another machine is not notified of the end. The system releases the locks of a
killed process; the next process removes unlocked copies.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock, Timer

from traceviz.core.errors import DamagedTraceError, OutputError
from traceviz.core.process.temporary import drop, note
from traceviz.core.units import format_value

IDLE_S = 60.0
"""Idle time in seconds after which a process without open rooms releases its copies."""
MOST_HELD = 4
"""Maximum number of copies that a process holds. Beyond it, the process releases the least recently used copy."""
RESERVE = 64 << 20
"""Bytes of disk space to keep free."""
SPACE_CHECKED = 64 << 20
"""Bytes written between two checks of the disk space."""
_ATTEMPTS = 100
"""Attempts to create the folder, which another process may remove at the same time."""
_WHOLE = 0o400
"""Mode of a complete copy."""


class NoRoomError(DamagedTraceError):
    """Not enough space for something large, or for its claimed size. Smaller things may still fit."""


class Spool:
    """Copies and rooms of one process.

    Args:
        idle_s: Seconds without use after which the process releases its copies.
    """

    def __init__(self, idle_s: float = IDLE_S) -> None:
        self._idle_s = idle_s
        self._guard = RLock()
        self._held: dict[Path, int] = {}
        """Open files of the copies that this process holds, the least recently used first."""
        self._open_rooms = 0
        self._last_use_s = 0.0
        self._watch: Timer | None = None

    def copy_of(self, key: str, make: Callable[[], Iterable[bytes]]) -> Path:
        """Return the path of a copy. It exists until :meth:`release`, or until this process has used other copies.

        Args:
            key: Identifies the content: location, size, and time or tag.
            make: Returns the bytes, in blocks; called if no other process has created the copy.

        Raises:
            OutputError: there is no space for it.
            Exception: raised by ``make``; then there is no copy.
        """
        name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        with self._guard:
            path = _folder() / name
            self._last_use_s = time.monotonic()
            if path in self._held:
                self._held[path] = self._held.pop(path)
                return path
            while len(self._held) >= MOST_HELD:
                self._release_copy(next(iter(self._held)))
            self._sweep(path.parent)
            while path not in self._held:
                self._hold(path, make)
            self._last_use_s = time.monotonic()  # creating it may have taken long
            self._start_watch()
            return path

    def release(self) -> None:
        """Release all copies of this process. Those that no other process holds are removed."""
        with self._guard:
            if self._watch is not None:
                self._watch.cancel()
                self._watch = None
            for path in list(self._held):
                self._release_copy(path)
            self._sweep(_path_of_folder())
        _leave_folder()

    @contextmanager
    def room(self) -> Iterator[Path]:
        """Yield a new empty folder, private to this user, that is removed at the end.

        If this process is killed, another process removes the folder.

        Raises:
            OutputError: the folder cannot be created.
        """
        with self._guard:
            folder = _folder()
            self._sweep(folder)
            try:
                path, handle = _new_room(folder)
            except OSError as error:
                raise OutputError(f"{folder} cannot be written.", f"{error.strerror}.", "Set TMPDIR.") from error
            self._open_rooms += 1
        try:
            yield path
        finally:
            drop(path)
            os.close(handle)
            with self._guard:
                self._open_rooms -= 1
                self._last_use_s = time.monotonic()
            _leave_folder()

    def _start_watch(self) -> None:
        """Start a timer that checks whether the copies are still used."""
        if self._watch is None:
            self._watch = Timer(self._idle_s, self._release_if_idle)
            self._watch.daemon = True
            self._watch.start()

    def _release_if_idle(self) -> None:
        with self._guard:
            self._watch = None
            if not self._open_rooms and time.monotonic() - self._last_use_s >= self._idle_s:
                self.release()
            elif self._held:
                self._start_watch()

    def _hold(self, path: Path, make: Callable[[], Iterable[bytes]]) -> None:
        """Try once to hold a copy. It is not held afterwards if another process just removed it."""
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except FileNotFoundError:  # another process has just removed the folder
            _folder()
            return
        except PermissionError:  # it is complete, and this user is not a superuser
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            except FileNotFoundError:
                return
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            if _is_at(handle, path) and not _is_whole(handle):
                fcntl.flock(handle, fcntl.LOCK_EX)
                if _is_at(handle, path) and not _is_whole(handle):
                    try:
                        os.ftruncate(handle, 0)  # remains of a killed process
                        for block in _check_space_between(path.parent, make()):
                            write_block(handle, block, path.parent)
                        os.fchmod(handle, _WHOLE)
                    except BaseException:
                        path.unlink(missing_ok=True)
                        raise
                fcntl.flock(handle, fcntl.LOCK_SH)
            if _is_at(handle, path) and _is_whole(handle):
                self._held[path] = handle
        finally:
            if path not in self._held:
                os.close(handle)

    def _release_copy(self, path: Path) -> None:
        handle = self._held.pop(path)
        _remove_unheld(handle, path)
        os.close(handle)

    def _sweep(self, folder: Path) -> None:
        """Remove everything that no process holds."""
        for path in _list_folder(folder):
            with suppress(OSError):
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    if path not in self._held:
                        _remove_unheld(handle, path)
                finally:
                    os.close(handle)


SPOOL = Spool()
"""The spool of this process. Locks belong to a process, so all functions that a worker runs share its copies."""
atexit.register(SPOOL.release)


def check_space(folder: Path, size: int, written: int = 0) -> None:
    """Check that ``size`` bytes can be written.

    Args:
        folder: The target folder.
        size: Number of bytes.
        written: Bytes of the same file that are already written, and are removed if the rest does not fit.

    Raises:
        NoRoomError: there is space, but not for this size.
        OutputError: there is no space at all.
    """
    free = shutil.disk_usage(folder).free
    if free < size + RESERVE:
        kind = OutputError if free + written < RESERVE else NoRoomError
        needed = format_value(size + written, "bytes")
        raise kind(
            f"There is no space to unpack into {folder}.",
            f"It takes {needed} and {format_value(RESERVE, 'bytes')} to spare; "
            f"{format_value(free + written, 'bytes')} are free.",
            "Make space, or name another folder in the variable TMPDIR.",
        )


def _folder() -> Path:
    """Return the folder that all processes of this user share.

    Raises:
        OutputError: it cannot be created, or belongs to another user.
    """
    folder = _path_of_folder()
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            break
        except OSError as error:
            if attempts_left and isinstance(error, FileNotFoundError | FileExistsError) and folder.parent.is_dir():
                continue  # another process removed it in between
            raise OutputError(f"{folder} cannot be created.", f"{error.strerror}.", "Set TMPDIR.") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise OutputError(f"{folder} is not yours alone.", "Unpacked traces are private.", "Set TMPDIR.")
    return folder


def _list_folder(folder: Path) -> list[Path]:
    """Return the content of the folder; empty if another process just removed it, or memory is exhausted."""
    try:
        return list(folder.iterdir())
    except OSError as error:
        if error.errno not in {errno.ENOENT, errno.ENOMEM}:
            raise
        return []


def _leave_folder() -> None:
    """Remove the folder of this user if it is empty."""
    with suppress(OSError):
        _path_of_folder().rmdir()


def _path_of_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"traceviz-spool-{os.getuid()}"


def _check_space_between(folder: Path, blocks: Iterable[bytes]) -> Iterator[bytes]:
    left = written = 0
    for block in blocks:
        if left <= 0:
            check_space(folder, SPACE_CHECKED, written)
            left = SPACE_CHECKED
        left -= len(block)
        written += len(block)
        yield block


def write_block(handle: int, block: bytes, folder: Path) -> None:
    """Write a whole block to an open file below ``folder``.

    Raises:
        OutputError: there is no space.
    """
    left = memoryview(block)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError as error:
        raise OutputError(f"{folder} cannot be written.", f"{error.strerror}.", "Make space, or set TMPDIR.") from error


def _new_room(folder: Path) -> tuple[Path, int]:
    """Create a room; return its path and the open file that holds it."""
    while True:
        path = note(folder, "room-")
        try:
            path.mkdir(mode=0o700)
        except FileNotFoundError:  # another process has just removed the folder
            _folder()
            continue
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # it was swept before it was held
            continue
        with suppress(OSError):  # no locks here: then no process can lock and sweep it, either
            fcntl.flock(handle, fcntl.LOCK_SH)
        if _is_at(handle, path):
            return path, handle
        os.close(handle)


def _remove_unheld(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # another process holds it
    if not _is_at(handle, path):
        return
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        # Renamed first, so that a process that has just created it notices the removal at once.
        gone = path.with_name(f"gone-{uuid.uuid4().hex}")
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_at(handle: int, path: Path) -> bool:
    """Return whether the open file is still the one at that path."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _is_whole(handle: int) -> bool:
    return stat.S_IMODE(os.fstat(handle).st_mode) == _WHOLE
