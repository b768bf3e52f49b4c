"""Copies that many processes of a machine share: a compressed tar file is unpacked once, a remote one fetched once.

::

    $TMPDIR/traceviz-spool-1000/       of this user only
        5d41402a...                    a plain zip or tar file; may not be written any more, so it is whole
        room-0b7d...                   a folder for what one process makes on the way, such as tables with secrets

Each process that reads a copy holds a shared lock on it; whoever makes it an exclusive one, and the others wait. The
last one that lets go of it removes it: when its add ends, and on a machine that only works for an add elsewhere and
never hears of its end, when nothing was done for a while. The system lets go for a process that was killed; the next
one that comes removes what nobody holds.
"""

from __future__ import annotations

import atexit
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
from dataclasses import dataclass
from pathlib import Path
from threading import RLock, Timer

from traceviz.archive.sources.packed.index import NoRoomError
from traceviz.errors import OutputError
from traceviz.units import format_value

IDLE_S = 60.0
"""A process that has not used its copies for so long, and has no room, lets go of them."""
MOST_HELD = 4
"""Copies that a process holds; of more, it lets go of the one that it used longest ago."""
RESERVE = 64 << 20
"""Bytes of disk space that are left free."""
_CHECKED = 64 << 20
"""After so many bytes it is looked again whether there is space."""
_MADE = 0o400

_held: dict[Path, int] = {}
"""The open files of the copies that this process holds, the one first that it used longest ago."""
_guard = RLock()


@dataclass(slots=True)
class _Use:
    """What this process does with its copies: rooms that are open, the last use of a copy, who looks for the end."""

    rooms: int = 0
    last_s: float = 0.0
    watch: Timer | None = None


_use = _Use()


def copy_of(key: str, make: Callable[[], Iterable[bytes]]) -> Path:
    """The path of a copy, which stays there until :func:`release` or until this process has used others.

    Args:
        key: What the copy is of: its place, size, and time or tag of its content.
        make: Gives its bytes, in blocks; called where no other process has made it.

    Raises:
        OutputError: there is no space for it.
        Exception: what ``make`` raises; then there is no copy.
    """
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    with _guard:
        path = _folder() / name
        _use.last_s = time.monotonic()
        if path in _held:
            _held[path] = _held.pop(path)
            return path
        while len(_held) >= MOST_HELD:
            _let_go(next(iter(_held)))
        _sweep(path.parent)
        while path not in _held:
            _hold(path, make)
        _use.last_s = time.monotonic()  # making it may have taken long
        _watch()
        return path


def release() -> None:
    """Let go of all copies of this process; those that no other process holds are removed."""
    with _guard:
        if _use.watch is not None:
            _use.watch.cancel()
            _use.watch = None
        for path in list(_held):
            _let_go(path)


@contextmanager
def room() -> Iterator[Path]:
    """A new empty folder of this user alone, removed when the block ends; that of a process that was killed, by others.

    Raises:
        OutputError: it cannot be made.
    """
    with _guard:
        folder = _folder()
        _sweep(folder)
        try:
            path, handle = _new_room(folder)
        except OSError as error:
            raise OutputError(f"{folder} cannot be written.", f"{error.strerror}.", "Set TMPDIR.") from error
        _use.rooms += 1
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)
        with _guard:
            _use.rooms -= 1
            _use.last_s = time.monotonic()


def check_space(folder: Path, size: int, written: int = 0) -> None:
    """Whether ``size`` bytes can be written.

    Args:
        folder: Where they are to be written.
        size: Bytes.
        written: Bytes of the same that were written already, and are removed where the others do not fit.

    Raises:
        NoRoomError: there is no space for so many, but for fewer.
        OutputError: there is no space for anything.
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


def _watch() -> None:
    """Look later whether the copies are still used."""
    if _use.watch is None:
        _use.watch = Timer(IDLE_S, _let_go_of_idle)
        _use.watch.daemon = True
        _use.watch.start()


def _let_go_of_idle() -> None:
    with _guard:
        _use.watch = None
        if not _use.rooms and time.monotonic() - _use.last_s >= IDLE_S:
            release()
        elif _held:
            _watch()


def _hold(path: Path, make: Callable[[], Iterable[bytes]]) -> None:
    """One attempt to hold a copy; none is held afterwards where another process removed it meanwhile."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except PermissionError:  # it is made, and this user is not one who may write everything
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        if _is_there(handle, path) and not _is_made(handle):
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_there(handle, path) and not _is_made(handle):
                _fill(handle, path, make)
            fcntl.flock(handle, fcntl.LOCK_SH)
        if _is_there(handle, path) and _is_made(handle):
            _held[path] = handle
    finally:
        if path not in _held:
            os.close(handle)


def _fill(handle: int, path: Path, make: Callable[[], Iterable[bytes]]) -> None:
    try:
        os.ftruncate(handle, 0)  # what a process left that was killed
        for block in _with_space(path.parent, make()):
            _write(handle, block, path.parent)
        os.fchmod(handle, _MADE)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write(handle: int, block: bytes, folder: Path) -> None:
    left = memoryview(block)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError as error:
        raise OutputError(f"{folder} cannot be written.", f"{error.strerror}.", "Make space, or set TMPDIR.") from error


def _with_space(folder: Path, blocks: Iterable[bytes]) -> Iterator[bytes]:
    left = written = 0
    for block in blocks:
        if left <= 0:
            check_space(folder, _CHECKED, written)
            left = _CHECKED
        left -= len(block)
        written += len(block)
        yield block


def _let_go(path: Path) -> None:
    handle = _held.pop(path)
    _remove_unheld(handle, path)
    os.close(handle)


def _sweep(folder: Path) -> None:
    """Remove what nobody holds."""
    for path in folder.iterdir():
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if path not in _held:
                    _remove_unheld(handle, path)
            finally:
                os.close(handle)


def _new_room(folder: Path) -> tuple[Path, int]:
    """A new folder, and the open file that holds it."""
    while True:
        path = folder / f"room-{uuid.uuid4().hex}"
        path.mkdir(mode=0o700)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # it was swept before it was held
            continue
        with suppress(OSError):  # no locks here: then nobody gets one to sweep it, either
            fcntl.flock(handle, fcntl.LOCK_SH)
        if _is_there(handle, path):
            return path, handle
        os.close(handle)


def _remove_unheld(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # another process holds it
    if not _is_there(handle, path):
        return
    if stat.S_ISDIR(os.fstat(handle).st_mode):
        # Under another name first: who has just made it sees at once that it is gone.
        gone = path.with_name(f"gone-{uuid.uuid4().hex}")
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_there(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _is_made(handle: int) -> bool:
    return stat.S_IMODE(os.fstat(handle).st_mode) == _MADE


def _folder() -> Path:
    """The folder of this user; another one where somebody else has made it.

    Raises:
        OutputError: it cannot be made, or is not this user's.
    """
    folder = Path(tempfile.gettempdir()) / f"traceviz-spool-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise OutputError(f"{folder} cannot be made.", f"{error.strerror}.", "Set TMPDIR.") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise OutputError(f"{folder} is not a folder of yours alone.", "What is unpacked is private.", "Set TMPDIR.")
    return folder


atexit.register(release)
