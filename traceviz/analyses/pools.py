"""Pools of memory: which there are, how much of each was in use after every event, and what was live at a moment."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from traceviz.analyses.device_use import device_names
from traceviz.analyses.view import TraceView

HOST_MEMORY = ("pageable", "pinned")
"""Kinds of memory on the host."""

NO_OP = "(null)"
"""What XLA's allocators give as the op where they know of none."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One allocator of one process, on one device or on the host.

    Args:
        process_id: The process.
        device_id: The device; ``None`` on the host or where the trace does not say.
        on_device: Whether its memory is that of a device.
        label: Its name for people.
        fixed: Whether its capacity is the same all the time. That of a TPU shrinks by what loaded programs reserve, so
            that a peak from before the capture cannot be compared with the capacity seen in it.
    """

    process_id: int
    device_id: int | None
    on_device: bool
    label: str
    fixed: bool = True


_COLUMNS = (
    *("start_ns", "process_id", "device_id", "kind", "memory", "pool", "address", "bytes", "op"),
    *("in_use_bytes", "peak_bytes", "available_bytes"),
)
_KEYS = ("process_id", "device_id", "pool", "memory")


def pool_events(trace: TraceView) -> list[tuple[Pool, pl.DataFrame]]:
    """Events of each pool by time, ``in_use_bytes`` filled in where the trace has only amounts.

    Where it is not recorded, use is counted from the first event on, by address: 0 then means *unknown before*.
    """
    frame = trace.frame("memory_events", *_COLUMNS)
    frame = frame.with_columns(pl.col("kind", "memory", "pool", "op").cast(pl.String))
    frame = frame.with_columns(pl.col("op").replace(NO_OP, None))
    parts = frame.sort("start_ns").partition_by(*_KEYS, as_dict=True, maintain_order=True)
    several = trace.frame("processes", "process_id").height > 1
    names = device_names(trace)
    tpus = _tpus(trace)
    found = [(_pool(key, names, tpus, several=several), _counted(part)) for key, part in parts.items()]
    return sorted(found, key=lambda item: (item[0].process_id, item[0].label))


def _tpus(trace: TraceView) -> list[int]:
    devices = trace.frame("devices", "device_id", "kind").filter(pl.col("kind").cast(pl.String) == "tpu")
    return devices["device_id"].to_list()


def _pool(key: tuple[object, ...], names: dict[int, str], tpus: list[int], *, several: bool) -> Pool:
    process, device, pool, memory = key
    assert isinstance(process, int)
    device_id = device if isinstance(device, int) else None
    unnamed = "allocator not named" if memory == "unknown" else f"{memory} memory"
    where = names[device_id] if device_id is not None else unnamed
    label = str(pool) if pool else where
    if several:
        label = f"{label}, process {process}"
    on_device = device_id is not None or memory not in {*HOST_MEMORY, "unknown"}
    return Pool(process, device_id, on_device, label, fixed=device_id not in tpus)


def _counted(events: pl.DataFrame) -> pl.DataFrame:
    if not events["in_use_bytes"].null_count():
        return events
    allocated = pl.col("kind") == "alloc"
    sizes = events.with_columns(
        pl.when(allocated).then("bytes").fill_null(strategy="forward").over("address").alias("size")
    )
    change = pl.when(allocated).then("bytes").otherwise(-pl.coalesce("bytes", "size")).fill_null(0)
    use = sizes.select(change.cum_sum())["bytes"]
    lowest = min(int(use.min() or 0), 0)  # type: ignore[arg-type]
    return events.with_columns(pl.coalesce("in_use_bytes", use - lowest).alias("in_use_bytes"))


def live_at(events: pl.DataFrame, at: int) -> pl.DataFrame:
    """Allocations up to event ``at`` (included) that were not released by then: ``op, bytes``.

    The last event of each address decides: an address is live where that is an allocation. Without addresses nothing
    can be matched, and the result has no rows.
    """
    seen = events.head(at + 1).drop_nulls("address")
    last = seen.unique("address", keep="last", maintain_order=True)
    return last.filter(pl.col("kind") == "alloc").select("op", "bytes")


def highest_use(trace: TraceView) -> float | None:
    """Highest use of a device pool as a share of its capacity, in the capture or (where that is fixed) before it.

    ``None`` if not recorded.

    The capacity is what was in use plus what was available, at any event of the pool.
    """
    events = trace.frame("memory_events", *_COLUMNS).drop_nulls(["in_use_bytes", "available_bytes"])
    own = events.filter(pl.col("device_id").is_not_null() | ~pl.col("memory").is_in([*HOST_MEMORY, "unknown"]))
    capacity = pl.col("in_use_bytes") + pl.col("available_bytes")
    earlier = pl.when(~pl.col("device_id").is_in(_tpus(trace)).fill_null(value=False)).then("peak_bytes")
    highest = pl.max_horizontal("in_use_bytes", earlier).max() / capacity.max()
    shares = own.filter(capacity > 0).group_by(_KEYS).agg(highest.alias("share"))["share"]
    return float(shares.max()) if shares.len() else None  # type: ignore[arg-type]
