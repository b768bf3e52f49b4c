"""Names of temporary files, which state their writer, so that leftovers of killed programs can be recognised.

::

    traceviz-3f2a9c01-4711-0b7d...    hash of machine and process namespace, process id, random

Only a process in the same namespace can check whether another is alive. Other machines and containers wait a day.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from functools import cache
from pathlib import Path

ADD = "add-"
"""Prefix of lease names (see ``leases.py``)."""
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
