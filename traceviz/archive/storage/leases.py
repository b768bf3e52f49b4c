"""Leases: files of work that show which programs are adding to an archive.

::

    work/add-traceviz-3f2a9c01-4711-0b7d...     named after its writer (writers.py); holds the start time of the add

A trace written after the start of a running add may belong to it, and may not be in the catalogue yet. The lease of a
dead process, or one that was not renewed for a day, is ignored as a leftover.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from traceviz.archive.storage import writers
from traceviz.archive.storage.store import WORK, Store
from traceviz.core.errors import OutputError

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
    held = Lease(store, f"{writers.ADD}{writers.new_name()}", store.now(), -_RENEWED_S)
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
        if not name.startswith(writers.ADD) or writers.is_of_dead(name):
            continue
        touched = store.touched(WORK, name)
        if touched is not None and store.now() - touched > ABANDONED_S:
            continue
        with suppress(FileNotFoundError, ValueError):  # it has just ended, or the file is foreign
            starts.append(float(store.read(WORK, name)))
    return min(starts, default=0.0) - _SLACK_S if starts else None
