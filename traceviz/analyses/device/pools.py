"""Pools of memory: their use after every event, and their live allocations at a moment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.frames import having, knowing
from traceviz.analyses.derived.view import TraceView

HOST_MEMORY = ("pageable", "pinned")
"""Kinds of memory on the host."""

NO_OP = "(null)"
"""Op that XLA's allocators state if they know of none."""


@dataclass(frozen=True, slots=True)
class Pool:
    """One allocator of one process, on one device or on the host.

    Args:
        process_id: The process.
        device_id: The device; ``None`` on the host or if the trace does not state it.
        on_device: True if its memory is that of a device.
        label: Its name for readers.
        fixed: True if its capacity never changes. Loaded programs reduce the capacity of a TPU, so a peak from before
            the capture cannot be compared with the capacity seen in it.
        device_bytes: Memory of its device; ``None`` on the host or if the trace does not state it.
        counted: True if its use is added up from amounts, because the trace does not state it. It is then a lower
            bound: memory in use since before the capture is not known.
    """

    process_id: int
    device_id: int | None
    on_device: bool
    label: str
    fixed: bool = True
    device_bytes: int | None = None
    counted: bool = False


_COLUMNS = (
    *("start_ns", "process_id", "device_id", "kind", "memory", "pool", "address", "bytes", "op"),
    *("in_use_bytes", "peak_bytes", "available_bytes", "reserved_bytes"),
)
_KEYS = ("process_id", "device_id", "pool", "memory")


def pool_events(trace: TraceView) -> list[tuple[Pool, pl.DataFrame]]:
    """Return events of each pool by time. ``in_use_bytes`` is filled in if the trace has only amounts.

    If use is not recorded, it is counted from the first event on, by address. 0 then means *unknown before*.
    """
    frame = trace.frame("memory_events", *_COLUMNS)
    frame = frame.with_columns(pl.col("kind", "memory", "pool", "op").cast(pl.String))
    frame = frame.with_columns(pl.col("op").replace(NO_OP, None))
    parts = frame.sort("start_ns", maintain_order=True).partition_by(*_KEYS, as_dict=True, maintain_order=True)
    owners, names, tpus = _owners(trace), device_names(trace), _tpus(trace)
    sizes = _device_bytes(trace)
    pools = []
    for key, part in parts.items():
        pool = _pool(key, names, tpus, owners)
        size = sizes.get(pool.device_id) if pool.device_id is not None else None
        is_counted = bool(part["in_use_bytes"].null_count())
        pools.append((replace(pool, device_bytes=size, counted=is_counted), _with_use(part) if is_counted else part))
    return sorted(pools, key=lambda item: (item[0].process_id, item[0].label))


def _owners(trace: TraceView) -> dict[int, str]:
    """Return text that distinguishes the pools of several processes: ranks if known; empty for a single process."""
    processes = trace.frame("processes", "process_id", "rank")
    owners = trace.frame("memory_events", "process_id")["process_id"].n_unique()
    if owners < 2 and not processes["rank"].count() > 1:
        return {}
    return {
        process: f"process {process}" if rank is None else f"rank {rank}" for process, rank in processes.iter_rows()
    }


def _device_bytes(trace: TraceView) -> dict[int, int]:
    """Return the memory of the devices that state it, by ``device_id``."""
    return dict(trace.frame("devices", "device_id", "memory_bytes").drop_nulls().iter_rows())


def _tpus(trace: TraceView) -> list[int]:
    devices = trace.frame("devices", "device_id", "kind").filter(pl.col("kind").cast(pl.String) == "tpu")
    return devices["device_id"].to_list()


def _pool(key: tuple[object, ...], names: dict[int, str], tpus: list[int], owners: dict[int, str]) -> Pool:
    process, device, pool, memory = key
    assert isinstance(process, int)
    device_id = device if isinstance(device, int) else None
    unnamed = "allocator not named" if memory == "unknown" else f"{memory} memory"
    where = names[device_id] if device_id is not None else unnamed
    label = str(pool) if pool else where
    if owners:
        label = f"{label}, {owners[process]}"
    on_device = device_id is not None or memory not in {*HOST_MEMORY, "unknown"}
    return Pool(process, device_id, on_device, label, fixed=device_id not in tpus)


def _with_use(events: pl.DataFrame) -> pl.DataFrame:
    """Return the events of a pool with ``in_use_bytes`` from amounts, where the trace does not state it."""
    allocated = pl.col("kind") == "alloc"
    sizes = events.with_columns(
        pl.when(allocated).then("bytes").fill_null(strategy="forward").over("address").alias("size")
    )
    change = pl.when(allocated).then("bytes").otherwise(-pl.coalesce("bytes", "size")).fill_null(0)
    use = sizes.select(change.cum_sum())["bytes"]
    lowest = min(int(use.min() or 0), 0)  # type: ignore[arg-type]
    return events.with_columns(pl.coalesce("in_use_bytes", use - lowest).alias("in_use_bytes"))


def live_at(events: pl.DataFrame, at: int) -> pl.DataFrame:
    """Return allocations up to event ``at`` (included) that were not released by then: ``op, bytes``.

    The last event of each address decides. An address is live if that event is an allocation. Without addresses,
    releases cannot be matched, and the result has no rows.
    """
    seen = knowing(events.head(at + 1), "address")
    last = seen.unique("address", keep="last", maintain_order=True)
    return having(last, "kind", "alloc")[["op", "bytes"]]


def highest_use(trace: TraceView) -> float | None:
    """Return the highest use of a device pool as a share of its capacity, in or (if that is fixed) before the capture.

    ``None`` if not recorded.

    The capacity is the memory in use plus the memory available, at any event of the pool. If the trace does not state
    available memory, the capacity is the memory of the device. All that the pool holds of it then counts as used.
    """
    events = knowing(trace.frame("memory_events", *_COLUMNS), "in_use_bytes")
    own = events.filter(pl.col("device_id").is_not_null() | ~pl.col("memory").is_in([*HOST_MEMORY, "unknown"]))
    of_device = pl.col("device_id").replace_strict(_device_bytes(trace), default=None, return_dtype=pl.Int64)
    capacity = pl.coalesce(pl.col("in_use_bytes") + pl.col("available_bytes"), of_device)
    earlier = pl.when(~pl.col("device_id").is_in(_tpus(trace)).fill_null(value=False)).then("peak_bytes")
    held = pl.coalesce("reserved_bytes", "in_use_bytes")
    highest = pl.max_horizontal(held, earlier).max() / capacity.max()
    shares = own.filter(capacity > 0).group_by(_KEYS).agg(highest.alias("share"))["share"]
    return min(float(shares.max()), 1.0) if shares.len() else None  # type: ignore[arg-type]
