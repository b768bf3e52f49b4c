"""Collective operations of several ranks, from the kernels of NCCL and RCCL."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from traceviz.parsers.kineto.categories import Role
from traceviz.parsers.kineto.columns import Words, narrow, numbers, texts
from traceviz.parsers.kineto.work.device import rows_on_devices, without_zeros, work_columns
from traceviz.parsers.kineto.work.launches import Launches
from traceviz.parsers.shared.arrays.operations import NONE, take
from traceviz.parsers.shared.events.columns import encoded, table

_NCCL = re.compile(r"^(nccl|rccl|mscclKernel|oneccl|hcom_|hccl)", re.IGNORECASE)
_COLLECTIVE = re.compile(
    r"(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Bcast|Reduce|Gather|Scatter)", re.IGNORECASE
)
_COLLECTIVES = {
    "AllReduce": "allreduce",
    "AllGather": "allgather",
    "ReduceScatter": "reduce_scatter",
    "AllToAll": "all_to_all",
    "SendRecv": "send_recv",
    "Broadcast": "broadcast",
    "Bcast": "broadcast",
    "Reduce": "reduce",
    "Gather": "gather",
    "Scatter": "scatter",
}
"""Names of collectives as NCCL's kernels spell them, and as PyTorch does."""
_KNOWN = {name.lower(): collective for name, collective in _COLLECTIVES.items()}
_ANNOTATION = "nccl:"
"""Prefix of PyTorch's ranges around the launches of a collective: ``nccl:all_to_all``."""
_ANNOTATED = re.compile("|".join((*_COLLECTIVES, "Send", "Recv")), re.IGNORECASE)


def collectives(launches: Launches) -> pa.Table:
    """Return table ``collectives``: from the kernels' arguments, else the ranges around their launches, or names.

    The range is more specific than the kernel: an exchange between all ranks is a kernel that sends and receives, and
    some versions of NCCL have one kernel for everything.
    """
    events = launches.events
    kernels = rows_on_devices(launches, events.rows(Role.KERNEL))
    stated = texts(events.frame, "collective", kernels)
    shown = events.name.at(kernels).each(lambda name: bool(_NCCL.match(name)), False, np.bool_)
    rows = kernels[shown | (stated.codes >= 0)]
    call = launches.call(rows)
    names = events.name.at(rows)
    around = Words(np.full(call.size, NONE, np.int32), ())
    if any(word.startswith(_ANNOTATION) for word in events.name.words):
        is_collective = events.name.each(lambda word: _annotated_collective(word) is not None, False, np.bool_)
        around = events.name.at(take(launches.forest.around(is_collective), call))
    argument = texts(events.frame, "collective", rows)
    words = [
        # The name of a kernel of NCCL or RCCL states its operation, unless one kernel does everything.
        *(_KNOWN[match[1].lower()] if match else "unknown" for match in map(_COLLECTIVE.search, names.words)),
        *(_annotated_collective(word) or "unknown" for word in around.words),
        *(word.lower() for word in argument.words),
    ]
    place = np.where(around.codes >= 0, around.codes + len(names.words), names.codes)
    place = np.where(argument.codes >= 0, argument.codes + len(names.words) + len(around.words), place)
    common = work_columns(launches, rows, call)
    columns = {
        **{key: common[key] for key in ("start_ns", "dur_ns", "device_id", "process_id", "stream", "correlation_id")},
        "name": encoded(place, words),
        "group": texts(events.frame, "group", rows).to_arrow(),
        "group_size": narrow(without_zeros(numbers(events.frame, "group_size", rows)), pa.int32()),
        "dtype": texts(events.frame, "dtype", rows).to_arrow(),
        "in_elements": narrow(numbers(events.frame, "in_elements", rows), pa.int64()),
        "out_elements": narrow(numbers(events.frame, "out_elements", rows), pa.int64()),
    }
    return table("collectives", columns)


def _annotated_collective(text: str) -> str | None:
    """Return the collective that PyTorch's range ``text`` names; ``None`` for other ranges."""
    if not text.startswith(_ANNOTATION):
        return None
    match = _ANNOTATED.search(text.replace("_", ""))
    return _KNOWN.get(match[0].lower(), "send_recv") if match else None
