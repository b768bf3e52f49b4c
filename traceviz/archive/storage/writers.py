"""Who is writing something: names of temporary files say it, so that what a program that was killed left can be told.

::

    traceviz-3f2a9c01-4711-0b7d...    machine and processes that see each other, process, and nothing else in common

Only who sees the same processes can tell whether one is alive: another machine, or another container, waits a day.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from functools import cache
from pathlib import Path

_NAME = re.compile(r"traceviz-([0-9a-f]{8})-([0-9]+)-[0-9a-f]{32}")


def new_name() -> str:
    """A name for something that this process writes, different from all others."""
    return f"traceviz-{_here()}-{os.getpid()}-{uuid.uuid4().hex}"


def is_of_dead(name: str) -> bool:
    """Whether it is of a process that would be seen here, and is not there any more."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] != _here():
        return False
    try:
        os.kill(int(match[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is there, and somebody else's; or there are no such numbers
        return False
    return False


@cache
def _here() -> str:
    """What processes that see each other have in common, and no others: the boot of a machine, and the namespace."""
    parts = [socket.gethostname()]
    for identify in (_boot, _processes):
        try:
            parts.append(identify())
        except (OSError, ValueError):
            parts.append(uuid.uuid4().hex)  # nobody but this process is known to see it
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")


def _processes() -> str:
    return str(Path("/proc/self/ns/pid").readlink())
