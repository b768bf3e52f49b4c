"""Collectives by name: message sizes, and the bandwidths that nccl-tests defines.

For a message of ``S`` bytes in time ``t`` among ``n`` ranks, nccl-tests calls ``S / t`` the *algorithm bandwidth*. Its
product with a factor of the collective is the *bus bandwidth*. It can be compared with the speed of the links for any
``n``. ``S`` is the larger of the bytes that a rank sends and receives. Times are those of the kernels. They include the
wait for late ranks, so that bandwidths are lower bounds.

Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

import re
from functools import cache

import polars as pl

from traceviz.analyses.derived.device.work import exposed
from traceviz.analyses.derived.statistics import CALLS, DURATION_COLUMNS, TOTAL, totals_by
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.report import Column
from traceviz.trace import schema

ELEMENT_BYTES = {
    **dict.fromkeys(("double", "long", "int64", "uint64", "f64", "float64", "i64", "u64", "complexfloat"), 8),
    **dict.fromkeys(("float", "int", "int32", "uint32", "f32", "float32", "i32", "u32", "complexhalf"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "int16", "uint16", "f16", "float16", "bf16", "i16", "u16"), 2),
    **dict.fromkeys(("byte", "char", "bool", "int8", "uint8", "i8", "u8", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "f8e4m3", "f8e5m2"), 1),
    "complexdouble": 16,
}
"""Bytes of an element by the name of its type in lower case, as PyTorch and NCCL write them."""

_FACTORS: tuple[tuple[str, float, float], ...] = (
    ("allreduce", 2.0, -2.0),
    ("reducescatter|allgather|alltoall|gather|scatter", 1.0, -1.0),
    ("broadcast|reduce|send|recv", 1.0, 0.0),
)
"""Factor ``a + b / n`` of the bus bandwidth, by pattern of the name without underscores. The first match counts."""

_KEYS = ("name", "group", "group_size", "dtype")
_READ = ("start_ns", "dur_ns", "device_id", *_KEYS, "in_elements", "out_elements")


def bus_factor(name: str, ranks: int | None) -> float | None:
    """Return the bus bandwidth of a collective over its algorithm bandwidth.

    Args:
        name: Name of the collective, for example ``allreduce`` or ``_allgather_base``.
        ranks: Ranks that take part.

    Returns:
        The factor. ``None`` if the collective is not known, or if it depends on an unknown number of ranks.
    """
    plain = name.lower().replace("_", "")
    for pattern, whole, part in _FACTORS:
        if re.search(pattern, plain):
            return None if part and not ranks else whole + part / (ranks or 1)
    return None


def collective_times(trace: TraceView, compute: dict[int, IntervalSet]) -> pl.DataFrame:
    """Return one row per collective, group and type, the largest total first; no rows if none were described.

    Args:
        trace: The trace.
        compute: Time in which each device runs kernels that are not communication.

    Returns:
        :data:`COLUMNS` by their names. Sizes and bandwidths are null if the trace does not state sizes and types.
    """
    calls = trace.frame("collectives", *_READ)
    return _summed(calls, compute) if calls.height else _nothing()


@cache
def _nothing() -> pl.DataFrame:
    """Return :func:`collective_times` of a trace without any: the same for all such traces."""
    calls = pl.from_arrow(schema.table("collectives").empty())
    assert isinstance(calls, pl.DataFrame)
    return _summed(calls.select(_READ), {})


def _summed(calls: pl.DataFrame, compute: dict[int, IntervalSet]) -> pl.DataFrame:
    """Return :func:`collective_times` of ``calls``: rows of their table with the columns :data:`_READ`."""
    calls = calls.with_columns(pl.col("name", "group", "dtype").cast(pl.String))
    width = {dtype: ELEMENT_BYTES.get(dtype.lower()) for dtype in calls["dtype"].drop_nulls().unique()}
    size = pl.col("dtype").replace_strict(width, default=None, return_dtype=pl.Int64)  # null if it is not known
    sized = calls.with_columns((pl.max_horizontal("in_elements", "out_elements") * size).alias("bytes"))
    hidden = {
        key: sum(part.total for part in exposed(own, compute).values())
        for key, own in sized.partition_by(_KEYS, as_dict=True).items()
    }
    grouped = totals_by(sized, *_KEYS, also=_SIZES)
    alone = [hidden[key] for key in grouped.select(_KEYS).iter_rows()]
    factors = [bus_factor(name, ranks) for name, ranks in grouped[["name", "group_size"]].iter_rows()]
    return grouped.with_columns(
        pl.Series("exposed_ns", alone, pl.Int64),
        (pl.col("algorithm_bandwidth") * pl.Series(factors, dtype=pl.Float64)).alias("bus_bandwidth"),
    )


_WAS_TIMED = pl.col("dur_ns") > 0
_TIMED_BYTES = pl.col("bytes").filter(_WAS_TIMED).sum()
_TIMED_NS = pl.col("dur_ns").filter(_WAS_TIMED & pl.col("bytes").is_not_null()).sum()
_SIZES = (
    pl.col("bytes").mean().alias("mean_bytes"),
    pl.when(_TIMED_NS > 0).then(_TIMED_BYTES * 1e9 / _TIMED_NS).alias("algorithm_bandwidth"),
)

COLUMNS: tuple[Column, ...] = (
    Column("name", "Collective", "text", 0),
    Column("group", "Group", "text", 3),
    Column("group_size", "Ranks", "count", 2),
    Column("dtype", "Type", "text", 3),
    CALLS,
    Column("mean_bytes", "Mean size", "bytes", 1),
    TOTAL,
    Column("exposed_ns", "Exposed", "ns", 1, additive=True),
    Column("algorithm_bandwidth", "Algorithm bandwidth", "bytes/s", 3),
    Column("bus_bandwidth", "Bus bandwidth", "bytes/s", 2),
    *DURATION_COLUMNS,
)
"""Report columns of :func:`collective_times`."""
