"""Device work: kernels, copies, fills, synchronisations, ranges around them, and nodes of graphs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceviz.parsers.kineto.categories import Role, host_category
from traceviz.parsers.kineto.columns import Columns, Words, first_known, narrow, numbers, texts
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.kineto.identity import ordinals, stream_numbers
from traceviz.parsers.kineto.work.copies import describe_copy, memory_of_fill
from traceviz.parsers.kineto.work.host import time_columns
from traceviz.parsers.kineto.work.launches import Launches
from traceviz.parsers.shared.arrays.arrow import Array as Arrow
from traceviz.parsers.shared.arrays.operations import Array
from traceviz.parsers.shared.events.columns import Numbers, constant, encoded, masked, table

_BACKWARD = "backward"
_NODES, _GRAPHS = 1 << 32, 1 << 31
"""Upper limits of the numbers of nodes of a graph, and of graphs."""
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


def work_columns(launches: Launches, rows: Array, call: Array) -> Columns:
    """Return the columns of all device work."""
    events = launches.events
    return {
        **time_columns(events, rows),
        "device_id": launches.identity.device_id(ordinals(events, rows)).astype(np.int16),
        "process_id": launches.process(call),
        "stream": narrow(stream_numbers(events, rows), pa.int64()),
        "context_id": narrow(numbers(events.frame, "context", rows), pa.int32()),
        "correlation_id": launches.correlation(rows, call),
        "graph_node_id": narrow(node_numbers(events, rows), pa.int64()),
        "op": launches.op(rows, call),
    }


def node_numbers(events: Events, rows: Array) -> Numbers:
    """Return the numbers of the nodes of graphs, unique within a process.

    CUDA numbers the nodes of each graph from 0 and prefixes the number of the graph, which some profilers omit.
    """
    node, graph = numbers(events.frame, "graph_node", rows), numbers(events.frame, "graph", rows)
    alone = graph.known & (graph.value > 0) & (graph.value < _GRAPHS) & (node.value >= 0) & (node.value < _NODES)
    return without_zeros(Numbers(np.where(alone, graph.value * _NODES + node.value, node.value), node.known))


def without_zeros(stated: Numbers) -> Numbers:
    """Return ``stated`` without zeros, which stand for "none"."""
    return Numbers(stated.value, stated.known & (stated.value > 0))


def rows_on_devices(launches: Launches, rows: Array) -> Array:
    """Return those of ``rows`` whose device is known."""
    return rows[launches.identity.device_id(ordinals(launches.events, rows)) >= 0]


def kernels(launches: Launches) -> pa.Table:
    """Return table ``kernels``. ROCm states the launch configuration at the call."""
    events = launches.events
    rows = rows_on_devices(launches, events.rows(Role.KERNEL))
    call = launches.call(rows)
    shared = first_known(numbers(events.frame, "shared_memory", rows), launches.argument_of_call("shared_memory", call))
    columns = {
        **work_columns(launches, rows, call),
        "name": events.name.at(rows).to_arrow(),
        **_launch_shape(launches, "grid", rows, call),
        **_launch_shape(launches, "block", rows, call),
        "registers_per_thread": narrow(numbers(events.frame, "registers", rows), pa.int32()),
        "static_shared_bytes": narrow(shared, pa.int32()),
        "blocks_per_sm": _ratio(numbers(events.frame, "blocks_per_sm", rows), 1),
        "achieved_occupancy": _ratio(numbers(events.frame, "achieved_occupancy", rows), 100),
    }
    return table("kernels", columns)


def _launch_shape(launches: Launches, name: str, rows: Array, call: Array) -> Columns:
    """Return the columns ``grid_x`` and so on."""
    frame = launches.events.frame
    return {
        f"{name}_{letter}": narrow(
            first_known(numbers(frame, name, rows, axis), launches.argument_of_call(name, call, axis)), pa.int32()
        )
        for axis, letter in enumerate("xyz")
    }


def _ratio(stated: Numbers, whole: int) -> Arrow:
    """Return real numbers in parts of ``whole``, null if negative or too large."""
    value = stated.value.astype(np.float64) / whole
    sensible = stated.known & (value >= 0) & (value < 2.0**63)
    return masked(np.where(sensible, value, 0.0), ~sensible, pa.float64())


def copies(launches: Launches) -> pa.Table:
    """Return table ``memcpy``."""
    events = launches.events
    rows = rows_on_devices(launches, events.rows(Role.COPY))
    call = launches.call(rows)
    place, texts_of = _distinct_rows(
        events.name.at(rows), *(texts(events.frame, key, rows) for key in ("copy_kind", "src_kind", "dst_kind"))
    )
    sides = [describe_copy(*row) for row in texts_of]
    columns = {
        **work_columns(launches, rows, call),
        **{
            name: encoded(place, [side[index] for side in sides])
            for index, name in enumerate(("kind", "src_memory", "dst_memory"))
        },
        "bytes": _bytes(launches, rows, call),
    }
    return table("memcpy", columns)


def _bytes(launches: Launches, rows: Array, call: Array) -> Arrow:
    own = numbers(launches.events.frame, "bytes", rows)
    return narrow(first_known(own, launches.argument_of_call("bytes", call)), pa.int64())


def _distinct_rows(*columns: Words) -> tuple[Array, list[tuple[str, ...]]]:
    """Return each row's position (int32) among the distinct combinations of texts, and these; empty for no text."""
    key = np.zeros(columns[0].codes.size, np.int64)
    for words in columns:
        key = key * (len(words.words) + 1) + words.codes + 1
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    codes = [words.codes[first].tolist() for words in columns]
    combinations = [
        tuple(words.words[code] if code >= 0 else "" for words, code in zip(columns, row, strict=True))
        for row in zip(*codes, strict=True)
    ]
    return place.astype(np.int32), combinations


def fills(launches: Launches) -> pa.Table:
    """Return table ``memset``."""
    events = launches.events
    rows = rows_on_devices(launches, events.rows(Role.FILL))
    call = launches.call(rows)
    place, texts_of = _distinct_rows(events.name.at(rows), texts(events.frame, "memory_kind", rows))
    columns = {
        **work_columns(launches, rows, call),
        "memory": encoded(place, [memory_of_fill(*row) for row in texts_of]),
        "bytes": _bytes(launches, rows, call),
    }
    return table("memset", columns)


def synchronisations(launches: Launches) -> pa.Table:
    """Return table ``sync``. A wait for an event waits for no stream: the file states stream -1."""
    events = launches.events
    rows = events.rows(Role.SYNC)
    kind, name = texts(events.frame, "sync_kind", rows), events.name.at(rows)
    words = [_SYNC_KINDS.get(word.lower(), "unknown") for word in (*name.words, *kind.words)]
    place = np.where(kind.codes >= 0, kind.codes + len(name.words), name.codes)
    device, call = launches.identity.device_id(ordinals(events, rows)), launches.call(rows)
    columns = {
        **time_columns(events, rows),
        "device_id": masked(device.astype(np.int16), device < 0, pa.int16()),
        "process_id": launches.process(call),
        "stream": narrow(stream_numbers(events, rows), pa.int64()),
        "context_id": narrow(numbers(events.frame, "context", rows), pa.int32()),
        "correlation_id": launches.correlation(rows, call),
        "kind": encoded(place, words),
    }
    return table("sync", columns)


def scopes(launches: Launches) -> pa.Table:
    """Return table ``device_ops``: ranges of the program around their device work, without steps."""
    events = launches.events
    rows = rows_on_devices(launches, events.rows(Role.SCOPE))
    name = events.name.at(rows)
    rows = rows[name.each(lambda word: host_category(word) != "step", True, np.bool_)]
    columns = {
        **time_columns(events, rows),
        "device_id": launches.identity.device_id(ordinals(events, rows)).astype(np.int16),
        "process_id": np.full(rows.size, launches.identity.program, np.int32),
        "name": events.name.at(rows).to_arrow(),
        "kind": constant("scope", rows.size),
    }
    return table("device_ops", columns)


def graph_nodes(launches: Launches) -> pa.Table:
    """Return table ``graph_nodes``: the annotated nodes of CUDA graphs, each once.

    PyTorch copies annotations from the capture of a graph to the arguments of its work
    (``torch.cuda.graph_annotations``, exported with ``cuda_graph_annotations``): ``name`` of the part, by frameworks on
    top ``module_fqn``, the path of the module, and ``autograd_phase``. With ``graph_lanes`` the work is shown on
    another stream than the one it ran on.
    """
    events = launches.events
    rows = rows_on_devices(launches, events.rows(Role.KERNEL, Role.COPY, Role.FILL))
    part, module = texts(events.frame, "label", rows), texts(events.frame, "module_path", rows)
    rows = rows[node_numbers(events, rows).known & ((part.codes >= 0) | (module.codes >= 0))]
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    process, node = launches.process(launches.call(rows)), node_numbers(events, rows)
    _, first = np.unique(np.stack([process, node.value]), axis=1, return_index=True)
    first = np.sort(first)
    rows, process = rows[first], process[first]
    columns = {
        "start_ns": events.start[rows],
        "process_id": process,
        "graph_node_id": narrow(node_numbers(events, rows), pa.int64()),
        "part": texts(events.frame, "label", rows).to_arrow(),
        "module": texts(events.frame, "module_path", rows).to_arrow(),
        "phase": texts(events.frame, "autograd_phase", rows).map_texts(
            lambda word: word if word == _BACKWARD else None
        ),
    }
    return table("graph_nodes", columns)
