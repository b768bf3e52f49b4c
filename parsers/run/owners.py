"""Choice of the source of each table of a run, so that nothing recorded twice is counted twice.

::

    device work, CUDA calls   nsys, else the profiler of a framework       one owner, since they belong together
    steps, memory             the profiler of a framework, else nsys       one owner each
    NVTX, system calls        nsys, else any other source                  one owner each
    operations                the profilers of all frameworks              each sees its own framework only
    stacks                    py-spy, the sampler in the program, nsys     one owner of stacks and their frames
    phases, metrics           hooks in the program, else py-spy            one owner
    samples, overhead         all                                          each has its own metrics
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from traceviz.parsers.run.sources import Source, count_rows
from traceviz.trace import schema

DEVICE_TABLES = (*schema.DEVICE_WORK, "graph_nodes", "cuda_api", "sync", "device_ops", "collectives")
"""Tables about devices that refer to each other: all are taken from one source."""
SHARED = ("host_ops", "op_args", "samples", "overhead", "totals")
"""Tables that are taken from every source: each has other rows."""

_NSYS, _FRAMEWORKS = ("nsys",), ("torch", "tensorflow", "jax")
_DEVICE_FIRST = (*_NSYS, *_FRAMEWORKS)
_FRAMEWORK_FIRST = (*_FRAMEWORKS, *_NSYS)
_ORDERS = {
    "nvtx": _DEVICE_FIRST,
    "os_calls": _DEVICE_FIRST,
    "stacks": ("py-spy", "stacks", *_NSYS),
    "phases": ("stacks", "py-spy"),
    "metrics": ("stacks",),
}
"""Orders of trust by table; of other tables, :data:`_FRAMEWORK_FIRST`."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The collectors that each table is taken from.

    Args:
        of: Names of the collectors by table.
        device: The collector that recorded device work; ``None`` if none did.
    """

    of: Mapping[str, tuple[str, ...]]
    device: str | None

    def takes(self, collector: str, table: str) -> bool:
        """Return whether rows of ``table`` are taken from ``collector``."""
        return collector in self.of.get(table, ())

    def describe(self) -> str:
        """Return one sentence, with collectors in the order of their first table."""
        by_collectors: dict[tuple[str, ...], list[str]] = {}
        for table, collectors in self.of.items():
            by_collectors.setdefault(collectors, []).append(table)
        parts = [f"{', '.join(tables)} from {' and '.join(names)}" for names, tables in by_collectors.items()]
        return f"Tables were taken as follows: {'; '.join(parts)}."


def choose_owners(sources: Sequence[Source]) -> Owners:
    """Choose the owner of each table that any of ``sources`` has; sources with rows come before more trusted ones."""
    # The owner of device tables recorded device work, else calls, else could have recorded any.
    candidates = [source for source in sources if any(name in source.tables for name in DEVICE_TABLES)]
    device = _first(candidates, DEVICE_TABLES, _DEVICE_FIRST) if candidates else None
    for tables in (schema.DEVICE_WORK, ("cuda_api",), DEVICE_TABLES):
        with_rows = [source for source in candidates if any(count_rows(source.tables, name) for name in tables)]
        if with_rows:
            device = _first(with_rows, tables, _DEVICE_FIRST)
            break
    present = {name for source in sources for name in source.tables}
    of = {}
    for name in schema.TABLES:
        if name not in present or name in {*schema.REQUIRED, "settings", "windows"}:
            continue
        candidates = [source for source in sources if name in source.tables]
        if name in SHARED:
            of[name] = _in_order({source.collector for source in candidates}, _FRAMEWORK_FIRST)
        elif name not in DEVICE_TABLES:
            of[name] = (_first(candidates, (name,), _ORDERS.get(name, _FRAMEWORK_FIRST)),)
        elif any(source.collector == device for source in candidates):
            of[name] = (str(device),)
    if "stacks" in of and "stack_frames" in of:  # they refer to each other
        of["stack_frames"] = of["stacks"]
    return Owners(of, device)


def in_order_of_trust(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the sources in order of trust, the most trusted first, independent of the given order."""
    place = {name: number for number, name in enumerate(_DEVICE_FIRST)}
    return tuple(
        sorted(sources, key=lambda source: (place.get(source.collector, len(place)), source.collector, source.name))
    )


def _first(sources: Sequence[Source], tables: Sequence[str], order: Sequence[str]) -> str:
    """Return the most trusted collector whose sources have rows in ``tables``, else the most trusted of all."""
    full = {source.collector for source in sources if any(count_rows(source.tables, name) for name in tables)}
    return _in_order(full or {source.collector for source in sources}, order)[0]


def _in_order(collectors: Iterable[str], order: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(collectors, key=lambda name: (order.index(name) if name in order else len(order), name)))
