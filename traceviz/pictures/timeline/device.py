"""Lanes of devices: streams with kernels, copies, fills and graphs, and the operations recorded around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from traceviz.analyses.derived.launch.join import graph_name
from traceviz.core.arrays.nested import Codes
from traceviz.pictures.timeline.names import always
from traceviz.pictures.timeline.sources import Lanes, Making, Source, by_group, numbers, spans_of
from traceviz.pictures.timeline.spans import Seat, Spans
from traceviz.report.pictures.values import Family
from traceviz.trace import schema
from traceviz.trace.names.kernel_names import UNKNOWN, classify, family_label

NO_STREAM = -1
_PLACED = ("start_ns", "dur_ns", "process_id", "device_id", "stream")
_COPIES = {
    "h2d": ("copy host to device", Family("copy_h2d", "Copies to the device")),
    "d2h": ("copy device to host", Family("copy_d2h", "Copies to the host")),
}
_OTHER_COPIES = Family("copy", "Other copies")
_MEMSET = Family("memset", "Memory fills")
_GRAPH = Family("device_compute", "CUDA graphs")
_KINDS = {
    "module": Family("module", "Modules"),
    "step": Family("step", "Steps"),
    "scope": Family("range", "Ranges"),
    "async_op": Family("copy", "Asynchronous operations"),
}
_OTHERS = Family("other", "Other")
_PLURALS = {"module": "modules", "step": "steps", "scope": "scopes", "async_op": "asynchronous operations"}


def kernel_families(names: Sequence[str]) -> list[Family]:
    """Return the family of each kernel. Kernels that copy within the device count as movement, not as copies."""
    found = (one.family for one in classify(names))
    return [
        Family("movement" if key == "copy" else key, "Other kernels" if key == UNKNOWN else family_label(key))
        for key in found
    ]


def device_sources(making: Making) -> Iterator[Source]:
    """Return the sources of streams, and of the operations around them."""
    tables = making.trace.tables
    present = [name for name in schema.DEVICE_WORK if tables.rows(name)]
    if present:
        frames = {name: making.trace.frame(name, *_PLACED) for name in present}
        yield Source.of("device", list(frames.values()), lambda first: _streams(making, frames, first))
    if tables.rows("device_ops"):
        frame = making.trace.frame("device_ops", "start_ns", "dur_ns", "process_id", "device_id", "name", "kind")
        yield Source.of("device_ops", [frame], lambda first: _operations(making, frame, first))


def _streams(making: Making, frames: dict[str, pl.DataFrame], first: int) -> Lanes:
    parts, owners = [], []
    for name, frame in frames.items():
        parts.append(spans_of(frame, _names(making, name), first))
        owners.append([numbers(frame["process_id"]), numbers(frame["device_id"]), numbers(frame["stream"], NO_STREAM)])
        first += frame.height
    columns = ("starts", "durations", "names", "origins")
    joined = Spans(*(np.concatenate([getattr(part, column) for part in parts]) for column in columns))
    groups = [np.concatenate(column) for column in zip(*owners, strict=True)]
    for place, ((process, device, stream), spans) in enumerate(by_group(joined, groups)):
        label = making.owners.device(device)
        label += " work" if stream == NO_STREAM else f" stream {stream}"
        yield Seat(f"device-{process}-{device}-{stream}", label, "device", process, place=place), spans


def _names(making: Making, table: str) -> Codes:
    frame, names = making.trace.frame, making.names
    match table:
        case "kernels":
            return names.of_column(frame(table, "name")["name"], kernel_families)
        case "memcpy":
            kinds = frame(table, "kind", "src_memory", "dst_memory")
            return names.of_groups(kinds.get_columns(), _copy_names)
        case "memset":
            return names.of_groups(
                [frame(table, "memory")["memory"]], lambda rows: [(f"fill {kind}", _MEMSET) for (kind,) in rows.rows()]
            )
        case _:
            return names.of_column(frame(table, "graph_id").select(graph_name())["name"], always(_GRAPH))


def _copy_names(kinds: pl.DataFrame) -> list[tuple[str, Family]]:
    named = []
    for kind, source, target in kinds.iter_rows():
        words, family = _COPIES.get(kind, (f"copy {kind}", _OTHER_COPIES))
        host = source if kind == "h2d" else target if kind == "d2h" else "unknown"
        named.append((words if host == "unknown" else f"{words}, {host}", family))
    return named


def _operations(making: Making, frame: pl.DataFrame, first: int) -> Lanes:
    names = making.names.of_groups(
        [frame["name"], frame["kind"]], lambda rows: [_operation(*row) for row in rows.rows()]
    )
    kinds = frame["kind"].cast(pl.String)
    known = sorted(set(kinds.unique()))
    kind_numbers = kinds.replace_strict(known, range(len(known)), return_dtype=pl.Int64).to_numpy()
    groups = [numbers(frame["process_id"]), numbers(frame["device_id"]), kind_numbers]
    for place, ((process, device, number), spans) in enumerate(by_group(spans_of(frame, names, first), groups)):
        label = f"{making.owners.device(device)} {_PLURALS.get(known[number], known[number])}"
        yield Seat(f"device_ops-{process}-{device}-{known[number]}", label, "device_ops", process, place=place), spans


def _operation(name: str, kind: str) -> tuple[str, Family]:
    return name, _KINDS.get(kind, _OTHERS)
