"""The writers of temporary files, stated in their names, so that what a killed program left can be recognised.

::

    traceviz-3f2a9c01-4711-0b7d...    hash of machine and process namespace, process id, random

Only a process in the same namespace can tell whether another is alive: other machines and containers wait a day.
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
"""Names of leases start so (see ``leases.py``)."""
_NAME = re.compile(r"(?:add-)?traceviz-([0-9a-f]{8})-([0-9]+)-[0-9a-f]{32}")


def new_name() -> str:
    """A unique name for something that this process writes."""
    return f"traceviz-{_here()}-{os.getpid()}-{uuid.uuid4().hex}"


def is_of_dead(name: str) -> bool:
    """Whether it was written by a process that would be visible here, and has ended."""
    match = _NAME.fullmatch(name)
    if match is None or match[1] != _here():
        return False
    try:
        os.kill(int(match[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # the process belongs to another user; or no process has such a number
        return False
    return False


@cache
def _here() -> str:
    """What only processes that see each other have in common: the boot of the machine, and the namespace."""
    parts = [socket.gethostname()]
    for identify in (_boot, _processes):
        try:
            parts.append(identify())
        except (OSError, ValueError):
            parts.append(uuid.uuid4().hex)  # only this process itself is known to see it
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")


def _processes() -> str:
    return str(Path("/proc/self/ns/pid").readlink())
