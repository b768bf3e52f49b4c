"""Allocations and releases by PyTorch's allocators."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceviz.parsers.kineto.categories import Role
from traceviz.parsers.kineto.columns import narrow, numbers
from traceviz.parsers.kineto.work.launches import Launches
from traceviz.parsers.shared.arrays.operations import NONE
from traceviz.parsers.shared.events.columns import Numbers, encoded, masked, table
from traceviz.trace import schema

_CPU = 0
_DEVICE_TYPES = {1: "CUDA", 6: "HIP", 9: "XLA", 12: "XPU", 13: "MPS", 15: "HPU", 19: "MTIA", 20: "PRIVATEUSE1"}
"""Kinds of devices as PyTorch numbers them."""


def memory_events(launches: Launches) -> pa.Table:
    """Return table ``memory_events``: allocations and releases by the framework's allocators."""
    events, identity = launches.events, launches.identity
    rows = events.rows(Role.MEMORY)
    if not rows.size:
        return schema.table("memory_events").empty()
    size = numbers(events.frame, "memory_bytes", rows)
    kind, number = numbers(events.frame, "device_type", rows), numbers(events.frame, "device_id", rows)
    on_device = kind.known & (kind.value != _CPU) & (number.value >= 0)
    device = identity.device_id(Numbers(number.value, number.known & on_device))
    thread, behalf = identity.thread_id[rows], launches.forest.behalf[rows]
    address = numbers(events.frame, "address", rows)
    distinct, place = np.unique(np.where(on_device, (kind.value << 16) + number.value + 1, 0), return_inverse=True)
    columns = {
        "start_ns": events.start[rows],
        "process_id": identity.process_of[thread],
        "device_id": masked(device.astype(np.int16), device < 0, pa.int16()),
        "kind": encoded((size.value < 0).astype(np.int32), ["alloc", "free"]),
        "memory": encoded(on_device.astype(np.int32), ["pageable", "device"]),
        "pool": encoded(place.astype(np.int32), [_pool(key) for key in distinct.tolist()]),
        "address": masked(address.value, ~address.known, pa.int64()),
        "bytes": narrow(Numbers(np.abs(size.value), size.known), pa.int64()),
        "op": encoded(np.where(behalf >= 0, events.name.codes[behalf], NONE).astype(np.int32), events.name.words),
        "in_use_bytes": narrow(numbers(events.frame, "in_use", rows), pa.int64()),
        "reserved_bytes": narrow(numbers(events.frame, "reserved", rows), pa.int64()),
    }
    return table("memory_events", columns)


def _pool(key: int) -> str:
    """Return the name of the allocator's device: ``CPU``, ``CUDA:0``."""
    kind, number = key >> 16, (key & 0xFFFF) - 1
    return f"{_DEVICE_TYPES.get(kind, f'device type {kind}')}:{number}" if key else "CPU"
