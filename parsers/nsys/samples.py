"""GPU metrics that nsys sampled, as time series.

Since schema 3.4 they are rows of GPU_METRICS, named by TARGET_INFO_GPU_METRICS; in 2021 and 2022 they were JSON objects
in GENERIC_EVENTS, one per sampling time, with a value per metric. Their type, or its source, identifies them. If their
time on the session's clock is missing, the raw time is used. The lowest byte of ``typeId`` is the number of the GPU.
Metric names carry their unit in brackets: ``SMs Active [Throughput %]``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.json as pj

from traceviz.parsers.shared.arrays.arrow import Array, DictionaryArray, pc
from traceviz.parsers.shared.events.columns import recoded
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.events.names import UNKNOWN
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.trace import schema
from traceviz.trace.plausible import since

_GPU_NUMBER = 0xFF
_WITH_UNIT = re.compile(r"^(?P<metric>.*\S)\s*\[(?P<unit>[^\[\]]*)\]$", re.DOTALL)
_OF_GPU_METRICS = re.compile(r"gpu ?metrics", re.IGNORECASE)
_TIMES = ("timestamp", "rawTimestamp")
_NUMBER = r"^-?[0-9]+(\.[0-9]+)?$"
_METRIC_COLUMNS = ("timestamp", "typeId", "metricId", "value")


Part = tuple[Array, Array, Array, DictionaryArray]
"""Raw times, types, values and labels of some samples."""


def has_samples(raw: RawTables) -> bool:
    """Return whether the capture sampled GPU metrics."""
    return raw.columns("GPU_METRICS") >= set(_METRIC_COLUMNS) or bool(_json_types(raw))


def read_samples(raw: RawTables, zero_ns: int, gpu_devices: Mapping[int, int]) -> pa.Table:
    """Return table ``samples``. Sampling can start before the first event: such times are negative.

    Args:
        raw: The export.
        zero_ns: Raw time that is zero on the trace's clock.
        gpu_devices: Device id by number of the GPU.
    """
    declared = schema.table("samples").arrow
    parts = _numbered(raw) if raw.columns("GPU_METRICS") >= set(_METRIC_COLUMNS) else _from_json(raw)
    tables = [_table(part, zero_ns, gpu_devices) for part in parts]
    return pa.concat_tables([declared.empty_table(), *tables]).unify_dictionaries()


def _numbered(raw: RawTables) -> Iterator[Part]:
    """Yield times, types, values and labels of batches of GPU_METRICS."""
    rows = raw.small("TARGET_INFO_GPU_METRICS", ("typeId", "metricId"), ("metricName",))
    names = {(row["typeId"], row["metricId"]): row["metricName"] or UNKNOWN for row in rows}
    labels = pa.array([*names.values(), UNKNOWN], pa.string())
    types = pa.array(sorted({kind for kind, _ in names if kind is not None}), pa.int64())
    keys = pa.array([_combine(types.index(kind).as_py(), metric) for kind, metric in names], pa.int64())
    for batch in raw.stream("GPU_METRICS", _METRIC_COLUMNS):
        timed = batch.filter(batch["timestamp"].is_valid())
        kind = pc.index_in(timed["typeId"], value_set=types).cast(pa.int64())
        codes = pc.index_in(_combine(kind, timed["metricId"]), value_set=keys).fill_null(len(labels) - 1)
        label = pa.DictionaryArray.from_arrays(codes, labels)
        yield timed["timestamp"], timed["typeId"], timed["value"].cast(pa.float64()), label


def _combine(kind: Array | int, metric: Array | int) -> Array:
    return pc.add(pc.multiply(kind, 1 << 32), metric)


def _json_types(raw: RawTables) -> list[int]:
    """Return the types of GENERIC_EVENTS that are GPU metrics, by their own text or that of their source."""
    columns = raw.columns("GENERIC_EVENTS")
    if not columns >= {"typeId", "data"} or columns.isdisjoint(_TIMES):
        return []
    sources = {
        row["sourceId"]
        for row in raw.small("GENERIC_EVENT_SOURCES", ("sourceId",), ("data",))
        if row["sourceId"] is not None and _OF_GPU_METRICS.search(row["data"] or "")
    }
    rows = raw.small("GENERIC_EVENT_TYPES", ("typeId", "sourceId"), ("data",))
    return [
        row["typeId"]
        for row in rows
        if row["typeId"] is not None and (row["sourceId"] in sources or _OF_GPU_METRICS.search(row["data"] or ""))
    ]


def _from_json(raw: RawTables) -> Iterator[Part]:
    """Yield times, types, values and labels of one metric after the other, from the JSON objects of GENERIC_EVENTS."""
    keep = Keep("typeId", tuple(_json_types(raw)))
    clocks = [name for name in _TIMES if name in raw.columns("GENERIC_EVENTS")]
    for batch in raw.stream("GENERIC_EVENTS", (*clocks, "typeId"), ("data",), keep):
        time = pc.coalesce(*(batch[name] for name in clocks))
        counts = pc.and_(time.is_valid(), batch["data"].is_valid())
        times, kinds = time.filter(counts), batch["typeId"].filter(counts)
        for name, values in _json_columns(raw, batch["data"].filter(counts)):
            there = values.is_valid()
            label = pa.array([name]).take(pa.array([0] * pc.sum(there).as_py(), pa.int32())).dictionary_encode()
            yield times.filter(there), kinds.filter(there), values.filter(there), label


def _json_columns(raw: RawTables, objects: Array) -> Iterator[tuple[str, Array]]:
    """Yield numeric members of JSON objects, as columns of doubles; numbers may be written as strings."""
    lines = pc.replace_substring(objects, b"\n", b" ")
    text = b"\n".join(lines.to_pylist())
    if not text:
        return
    try:
        table = pj.read_json(io.BytesIO(text), pj.ReadOptions(block_size=len(text) + 1))
    except pa.ArrowInvalid as error:
        raise raw.damaged("GENERIC_EVENTS", error) from error
    for name, values in zip(table.column_names, table.columns, strict=True):
        column = values.combine_chunks()
        if pa.types.is_string(column.type) and pc.all(pc.match_substring_regex(column, _NUMBER)).as_py():
            column = column.cast(pa.float64())
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            yield name, column.cast(pa.float64())


def _table(part: Part, zero_ns: int, gpu_devices: Mapping[int, int]) -> pa.Table:
    times, types, values, label = part
    names = label.dictionary.to_pylist()
    split = [_WITH_UNIT.match(name) for name in names]
    metrics = [match["metric"] if match else name for name, match in zip(names, split, strict=True)]
    stated = [match["unit"] if match else "" for match in split]
    units = ["%" if unit.endswith("%") else unit for unit in stated]
    gpus = pc.index_in(pc.bit_wise_and(types, _GPU_NUMBER), value_set=pa.array(list(gpu_devices), pa.int64()))
    columns = [
        since(zero_ns, times),
        pa.array(list(gpu_devices.values()), pa.int16()).take(gpus),
        pa.nulls(len(times), pa.int32()),
        recoded(metrics, label.indices),
        recoded(units, label.indices),
        values,
    ]
    return pa.table(columns, schema=schema.table("samples").arrow)
