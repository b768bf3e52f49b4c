"""Collective operations of several ranks, as the kernels of NCCL and RCCL tell of them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from traceviz.parsers.kineto_categories import Role
from traceviz.parsers.kineto_columns import narrow, numbers, table, texts
from traceviz.parsers.kineto_device import on_a_device, positive, worked
from traceviz.parsers.kineto_launches import Launches
from traceviz.parsers.xplane_columns import encoded

_NCCL = re.compile(r"^(nccl|rccl|mscclKernel|oneccl)", re.IGNORECASE)
_COLLECTIVE = re.compile(
    r"(AllReduce|AllGather|ReduceScatter|AllToAll|AlltoAll|SendRecv|Broadcast|Bcast|Reduce|Gather|Scatter)"
)
_COLLECTIVES = {
    "AllReduce": "allreduce",
    "AllGather": "allgather",
    "ReduceScatter": "reduce_scatter",
    "AllToAll": "all_to_all",
    "AlltoAll": "all_to_all",
    "SendRecv": "send_recv",
    "Broadcast": "broadcast",
    "Bcast": "broadcast",
    "Reduce": "reduce",
    "Gather": "gather",
    "Scatter": "scatter",
}
"""Names of collectives as NCCL's kernels spell them, and as PyTorch does."""


def collectives(launches: Launches) -> pa.Table:
    """Table ``collectives``: from the arguments of the kernels, else from their names."""
    events = launches.events
    kernels = on_a_device(launches, events.rows(Role.KERNEL))
    stated = texts(events.frame, "collective", kernels)
    shown = events.name.at(kernels).each(lambda name: bool(_NCCL.match(name)), False, np.bool_)
    rows = kernels[shown | (stated.codes >= 0)]
    names = events.name.at(rows)
    said = texts(events.frame, "collective", rows)
    words = [*(collective_name(word) for word in names.words), *(word.lower() for word in said.words)]
    place = np.where(said.codes >= 0, said.codes + len(names.words), names.codes)
    common = worked(launches, rows, launches.call(rows))
    columns = {
        **{key: common[key] for key in ("start_ns", "dur_ns", "device_id", "process_id", "stream", "correlation_id")},
        "name": encoded(place, words),
        "group": texts(events.frame, "group", rows).arrow(),
        "group_size": narrow(positive(numbers(events.frame, "group_size", rows)), pa.int32()),
        "dtype": texts(events.frame, "dtype", rows).arrow(),
        "in_elements": narrow(numbers(events.frame, "in_elements", rows), pa.int64()),
        "out_elements": narrow(numbers(events.frame, "out_elements", rows), pa.int64()),
    }
    return table("collectives", columns)


def collective_name(kernel: str) -> str:
    """What a kernel of NCCL or RCCL does, by its name; ``unknown`` where one kernel does everything."""
    match = _COLLECTIVE.search(kernel)
    return _COLLECTIVES[match[1]] if match else "unknown"
