"""What ran on devices: kernels, copies, fills, synchronisations, and ranges around them."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from traceviz.parsers.kineto.categories import Role, host_category
from traceviz.parsers.kineto.columns import Columns, either, narrow, numbers, texts, triples
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.kineto.host import times
from traceviz.parsers.kineto.identity import ordinals, stream_numbers
from traceviz.parsers.kineto.launches import Launches
from traceviz.parsers.shared import launch_details as details
from traceviz.parsers.shared.arrays import Array
from traceviz.parsers.shared.arrow import Array as Arrow
from traceviz.parsers.shared.columns import Numbers, constant, encoded, masked, table

_DIMENSIONS = ("x", "y", "z")
_NODES, _GRAPHS = 1 << 32, 1 << 31
"""Numbers of the nodes of a graph, and of graphs, are below these."""
_LONGEST = 1_000
"""Characters of the name of a copy that are looked at: a bound on time."""
_SIDES = re.compile(r"\((?P<source>[^()]+?) *-> *(?P<target>[^()]+?)\)")
_SIDE = re.compile(r"\((?P<memory>[^()]+)\)")
_ARRAY_COPY = re.compile(r"(memcpy[_ ]?)(?P<source>[ahdp])to(?P<target>[ahdp])\b", re.IGNORECASE)
_SYNC_KINDS = {
    "event sync": "event",
    "event synchronize": "event",
    "stream wait event": "stream_wait_event",
    "stream sync": "stream",
    "stream synchronize": "stream",
    "context sync": "context",
    "context synchronize": "context",
    "device sync": "context",
}


def worked(launches: Launches, rows: Array, call: Array) -> Columns:
    """Columns that all device work has."""
    events = launches.events
    return {
        **times(events, rows),
        "device_id": launches.identity.device_id(ordinals(events, rows)).astype(np.int16),
        "process_id": launches.process(call),
        "stream": narrow(stream_numbers(events, rows), pa.int64()),
        "context_id": narrow(numbers(events.frame, "context", rows), pa.int32()),
        "correlation_id": launches.correlation(rows, call),
        "graph_node_id": narrow(node_numbers(events, rows), pa.int64()),
        "op": launches.op(rows, call),
    }


def node_numbers(events: Events, rows: Array) -> Numbers:
    """Numbers of the nodes of graphs, unique within a process.

    CUDA numbers the nodes of each graph from 0 and puts the number of the graph before it, which some profilers do not.
    """
    node, graph = numbers(events.frame, "graph_node", rows), numbers(events.frame, "graph", rows)
    alone = graph.known & (graph.value > 0) & (graph.value < _GRAPHS) & (node.value >= 0) & (node.value < _NODES)
    return positive(Numbers(np.where(alone, graph.value * _NODES + node.value, node.value), node.known))


def positive(stated: Numbers) -> Numbers:
    """``stated`` without zeros, which stand for nothing."""
    return Numbers(stated.value, stated.known & (stated.value > 0))


def on_a_device(launches: Launches, rows: Array) -> Array:
    """Those of ``rows`` whose device is known."""
    return rows[launches.identity.device_id(ordinals(launches.events, rows)) >= 0]


def kernels(launches: Launches) -> pa.Table:
    """Table ``kernels``. ROCm notes the launch configuration at the call."""
    events = launches.events
    rows = on_a_device(launches, events.rows(Role.KERNEL))
    call = launches.call(rows)
    shared = either(numbers(events.frame, "shared_memory", rows), launches.stated("shared_memory", call))
    columns = {
        **worked(launches, rows, call),
        "name": events.name.at(rows).arrow(),
        **_launch_shape(launches, "grid", rows, call),
        **_launch_shape(launches, "block", rows, call),
        "registers_per_thread": narrow(numbers(events.frame, "registers", rows), pa.int32()),
        "static_shared_bytes": narrow(shared, pa.int32()),
        "blocks_per_sm": _ratio(numbers(events.frame, "blocks_per_sm", rows), 1),
        "achieved_occupancy": _ratio(numbers(events.frame, "achieved_occupancy", rows), 100),
    }
    return table("kernels", columns)


def _launch_shape(launches: Launches, name: str, rows: Array, call: Array) -> Columns:
    """Columns ``grid_x`` and so on."""
    frame = launches.events.frame
    own = triples(frame, name, rows)
    at_call = triples(frame, name, np.maximum(call, 0).astype(np.int32)) if frame.height else own
    return {
        f"{name}_{axis}": narrow(either(here, Numbers(there.value, there.known & (call >= 0))), pa.int32())
        for axis, here, there in zip(_DIMENSIONS, own, at_call, strict=True)
    }


def _ratio(stated: Numbers, whole: int) -> Arrow:
    """Real numbers in parts of ``whole``, null where they make no sense."""
    value = stated.value.astype(np.float64) / whole
    sensible = stated.known & (value >= 0) & (value < 2.0**63)
    return masked(np.where(sensible, value, 0.0), ~sensible, pa.float64())


def copies(launches: Launches) -> pa.Table:
    """Table ``memcpy``. The name says it all: ``Memcpy HtoD (Pageable -> Device)``."""
    events = launches.events
    rows = on_a_device(launches, events.rows(Role.COPY))
    call = launches.call(rows)
    name, stated = events.name.at(rows), texts(events.frame, "copy_kind", rows)
    kinds = [copy_kind(word) for word in name.words]
    hints = [copy_kind(f"Memcpy {word.replace('_', '')}") for word in stated.words]  # HtoD, DEVICE_TO_HOST
    by_name = name.each(lambda word: copy_kind(word) != "unknown", False, np.bool_)
    place = np.where(by_name, name.codes, np.where(stated.codes >= 0, stated.codes + len(kinds), name.codes))
    words = [*kinds, *hints]
    memories = [memory_kinds(word, kind) for word, kind in zip(name.words, kinds, strict=True)]
    memories += [memory_kinds("", kind) for kind in hints]
    columns = {
        **worked(launches, rows, call),
        "kind": encoded(place, words),
        "src_memory": encoded(place, [source for source, _ in memories]),
        "dst_memory": encoded(place, [target for _, target in memories]),
        "bytes": _bytes(launches, rows, call),
    }
    return table("memcpy", columns)


def _bytes(launches: Launches, rows: Array, call: Array) -> Arrow:
    own = numbers(launches.events.frame, "bytes", rows)
    return narrow(either(own, launches.stated("bytes", call)), pa.int64())


def copy_kind(name: str) -> str:
    """Value of ``memcpy.kind`` from the name of a copy; arrays count as device memory."""
    plain = _ARRAY_COPY.sub(lambda match: f"{match[1]}{_end(match['source'])}to{_end(match['target'])}", name)
    return details.copy_kind(plain, {}, None)


def _end(letter: str) -> str:
    return "D" if letter.lower() == "a" else letter


def memory_kinds(name: str, kind: str) -> tuple[str, str]:
    """Kinds of source and target memory from the name of a copy; what it does not say follows from its direction."""
    match = _SIDES.search(name[:_LONGEST])
    stated = {"kind_src": _memory(match["source"]), "kind_dst": _memory(match["target"])} if match else {}
    return details.memory_kinds(kind, stated)


def _memory(text: str) -> str:
    return text.strip().lower().replace(" ", "_")


def fills(launches: Launches) -> pa.Table:
    """Table ``memset``."""
    events = launches.events
    rows = on_a_device(launches, events.rows(Role.FILL))
    call = launches.call(rows)
    columns = {
        **worked(launches, rows, call),
        "memory": events.name.at(rows).mapped(_filled_memory),
        "bytes": _bytes(launches, rows, call),
    }
    return table("memset", columns)


def _filled_memory(name: str) -> str:
    match = _SIDE.search(name[:_LONGEST])
    return details.memory_kind(_memory(match["memory"]), "unknown") if match else "device"


def synchronisations(launches: Launches) -> pa.Table:
    """Table ``sync``. Whoever waits for an event waits for no stream: the file says stream -1."""
    events = launches.events
    rows = events.rows(Role.SYNC)
    kind, name = texts(events.frame, "sync_kind", rows), events.name.at(rows)
    words = [_SYNC_KINDS.get(word.lower(), "unknown") for word in (*name.words, *kind.words)]
    place = np.where(kind.codes >= 0, kind.codes + len(name.words), name.codes)
    device, call = launches.identity.device_id(ordinals(events, rows)), launches.call(rows)
    columns = {
        **times(events, rows),
        "device_id": masked(device.astype(np.int16), device < 0, pa.int16()),
        "process_id": launches.process(call),
        "stream": narrow(stream_numbers(events, rows), pa.int64()),
        "context_id": narrow(numbers(events.frame, "context", rows), pa.int32()),
        "correlation_id": launches.correlation(rows, call),
        "kind": encoded(place, words),
    }
    return table("sync", columns)


def scopes(launches: Launches) -> pa.Table:
    """Rows of table ``device_ops``: ranges of the program around the device work that they set off, but for steps."""
    events = launches.events
    rows = on_a_device(launches, events.rows(Role.SCOPE))
    name = events.name.at(rows)
    rows = rows[name.each(lambda word: host_category(word) != "step", True, np.bool_)]
    columns = {
        **times(events, rows),
        "device_id": launches.identity.device_id(ordinals(events, rows)).astype(np.int16),
        "process_id": np.full(rows.size, launches.identity.program, np.int32),
        "name": events.name.at(rows).arrow(),
        "kind": constant("scope", rows.size),
    }
    return table("device_ops", columns)
