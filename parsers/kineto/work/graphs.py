"""Nodes of CUDA graphs: their numbers, and the program's names for parts of a graph.

PyTorch copies annotations from the capture of a graph to the arguments of its work (``torch.cuda.graph_annotations``,
exported with ``cuda_graph_annotations``): ``name`` of the part, by frameworks on top ``module_fqn``, the path of the
module, and ``autograd_phase``. With ``graph_lanes`` the work is shown on another stream than the one it ran on.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from traceviz.parsers.kineto.categories import Role
from traceviz.parsers.kineto.columns import narrow, texts
from traceviz.parsers.kineto.work.device import node_numbers, on_a_device
from traceviz.parsers.kineto.work.launches import Launches
from traceviz.parsers.shared.events.columns import table

_BACKWARD = "backward"


def graph_nodes(launches: Launches) -> pa.Table:
    """Return table ``graph_nodes``: the annotated nodes, each once."""
    events = launches.events
    rows = on_a_device(launches, events.rows(Role.KERNEL, Role.COPY, Role.FILL))
    part, module = texts(events.frame, "label", rows), texts(events.frame, "module_path", rows)
    stated = node_numbers(events, rows).known & ((part.codes >= 0) | (module.codes >= 0))
    rows = rows[stated]
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    process, node = launches.process(launches.call(rows)), node_numbers(events, rows)
    _, first = np.unique(np.stack([process, node.value]), axis=1, return_index=True)
    first = np.sort(first)
    rows, process = rows[first], process[first]
    columns = {
        "start_ns": events.start[rows],
        "process_id": process,
        "graph_node_id": narrow(node_numbers(events, rows), pa.int64()),
        "part": texts(events.frame, "label", rows).arrow(),
        "module": texts(events.frame, "module_path", rows).arrow(),
        "phase": texts(events.frame, "autograd_phase", rows).mapped(lambda word: word if word == _BACKWARD else None),
    }
    return table("graph_nodes", columns)
