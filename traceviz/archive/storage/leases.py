"""Leases: files of work that show which programs are adding to an archive, and the names of their writers.

::

    work/add-traceviz-3f2a9c01-4711-0b7d...     named after its writer (:func:`new_name`); holds the start of the add

A trace written after the start of a running add may belong to it, and may not be in the catalogue yet. The lease of a
dead process, or one that was not renewed for a day, is ignored as a leftover.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from traceviz.archive.storage.store import WORK, Store
from traceviz.core.errors import OutputError

ADD = "add-"
"""Prefix of lease names."""
_NAME = re.compile(r"(?:add-)?traceviz-([0-9a-f]{8})-([0-9]+)-[0-9a-f]{32}")


def new_name() -> str:
    """Return a unique name for a file that this process writes."""
    return f"traceviz-{_here()}-{os.getpid()}-{uuid.uuid4().hex}"


def is_of_dead(name: str) -> bool:
    """Return whether the writer of a file would be visible here, and has ended."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] != _here():
        return False
    try:
        os.kill(int(match[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # the process belongs to another user, or the number is too large
        return False
    return False


@cache
def _here() -> str:
    """Return a hash common to all processes that see each other: of the machine's boot and the process namespace."""
    parts = [socket.gethostname()]
    for identify in (_boot, _processes):
        try:
            parts.append(identify())
        except (OSError, ValueError):
            parts.append(uuid.uuid4().hex)  # then only this process itself is known to see it
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")


def _processes() -> str:
    return str(Path("/proc/self/ns/pid").readlink())


ABANDONED_S = 24 * 3600.0
"""Age in seconds after which unmodified files in work are leftovers. Younger ones may still be in use."""
_RENEWED_S = 600.0
_SLACK_S = 60.0
"""Tolerance for clock differences between an object store and the adding machine, in seconds."""


@dataclass(slots=True)
class Lease:
    """The lease of one add.

    Args:
        store: The archive.
        name: Name of the lease file.
        since: Start of the add, in seconds since 1970, by the clock of the archive.
    """

    store: Store
    name: str
    since: float
    _renewed_s: float = 0.0

    def renew(self) -> None:
        """Touch the lease, but not too often.

        Raises:
            OutputError: the archive cannot be written.
        """
        if time.monotonic() - self._renewed_s > _RENEWED_S:
            self._renewed_s = time.monotonic()
            self.store.write(repr(self.since).encode(), WORK, self.name)


@contextmanager
def lease(store: Store) -> Iterator[Lease]:
    """Hold a lease while the block runs.

    Raises:
        OutputError: the archive cannot be written.
    """
    held = Lease(store, f"{ADD}{new_name()}", store.now(), -_RENEWED_S)
    held.renew()
    try:
        yield held
    finally:
        with suppress(OutputError):  # then it is a leftover of this process
            store.remove(WORK, held.name)


def first_start(store: Store) -> float | None:
    """Return the start time of the oldest running add, minus some tolerance; ``None`` if no add is running."""
    starts = []
    for name in store.names(WORK):
        if not name.startswith(ADD) or is_of_dead(name):
            continue
        touched = store.touched(WORK, name)
        if touched is not None and store.now() - touched > ABANDONED_S:
            continue
        with suppress(FileNotFoundError, ValueError):  # it has just ended, or the file is foreign
            starts.append(float(store.read(WORK, name)))
    return min(starts, default=0.0) - _SLACK_S if starts else None
