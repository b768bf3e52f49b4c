"""Numbers of CUPTI that several formats write, and their words in the contract.

Source: the CUPTI headers (``CUpti_ActivityMemcpyKind``, ``CUpti_ActivityMemoryKind``,
``CUpti_ActivitySynchronizationType``).
"""

from __future__ import annotations

COPY_KIND = {
    1: "h2d",  # host to device
    2: "d2h",  # device to host
    3: "h2d",  # host to array
    4: "d2h",  # array to host
    5: "d2d",  # array to array
    6: "d2d",  # array to device
    7: "d2d",  # device to array
    8: "d2d",  # device to device
    9: "h2h",  # host to host
    10: "p2p",  # peer to peer
    11: "h2d",  # unified memory, host to device
    12: "d2h",  # unified memory, device to host
    13: "d2d",  # unified memory, device to device
}

MEMORY_KIND = {
    1: "pageable",
    2: "pinned",
    3: "device",
    4: "array",
    5: "managed",
    6: "device_static",
    7: "managed_static",
}
"""``CUpti_ActivityMemoryKind``; exports of Nsight Systems count from 0."""

SYNC_KIND = {1: "event", 2: "stream_wait_event", 3: "stream", 4: "context"}


def cuda_version(number: int) -> str:
    """Return a version of CUDA as text, ``12.4`` for 12040."""
    return f"{number // 1000}.{number % 1000 // 10}"
