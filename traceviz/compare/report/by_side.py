"""Tables with all sides: shares of the CUDA API, and resources of the host.

Pairs show changes from the base. Studies of several frameworks print these tables, with a figure of each side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traceviz.compare.attribution import classes_of, mean_classes
from traceviz.compare.changes.by_name import NEVER, NOTABLE, api_shares
from traceviz.compare.changes.whole_runs import parts_of
from traceviz.compare.sides.sides import Side
from traceviz.core.units import Unit
from traceviz.report import CLASSES_OF_SIDES, PARTS_OF_SIDES, Block, Column, Grid, Row

_SIDES_BESIDE = 3
"""Most sides with bars in a table of 80 columns. The others follow in further tables of the same functions."""
_LEAST = 2
"""Fewest sides with a figure for a table."""
SHARE = "share."
"""Prefix of the name of a side's column."""

_HOST: tuple[tuple[str, str, Unit, int], ...] = (
    ("cpu_mean", "CPU", "ratio", 0),
    ("busy_cores", "Busy cores", "number", 2),
    ("steady_busy_cores", "Busy cores, steady", "number", 4),
    ("rss_max", "Memory", "bytes", 0),
    ("threads_max", "Threads", "count", 1),
    ("processes_max", "Processes", "count", 3),
    ("gpu_mean", "GPU", "ratio", 2),
)
"""Facts of section ``host`` that studies compare: key, heading, unit, importance."""


def api_by_side(sides: Sequence[Side]) -> list[Block]:
    """Return the shares of CUDA API time over the whole captures, a column per side; for machines, a row per share.

    Args:
        sides: All sides. Sides that did not record the CUDA API are left out; they are not zero.

    Returns:
        Functions that take 1 % on any side; nothing if fewer than two sides recorded any call.
    """
    shares = {side.label: of_side for side in sides if (of_side := api_shares(side))}
    if len(shares) < _LEAST:
        return []
    names = {name for of_side in shares.values() for name in of_side}
    most = {name: max(of_side.get(name, NEVER)[1] for of_side in shares.values()) for name in names}
    notable = sorted((name for name in most if most[name] >= NOTABLE), key=lambda name: (-most[name], name))
    labels = list(shares)
    return [*(_share_table(shares, part, notable) for part in _tables(labels)), _every_share(shares)]


def _tables(labels: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the sides of each table, about equally many in all."""
    count = -(-len(labels) // _SIDES_BESIDE)
    for place in range(count):
        yield labels[place * len(labels) // count : (place + 1) * len(labels) // count]


def _share_table(
    shares: Mapping[str, Mapping[str, tuple[str, float]]], labels: Sequence[str], names: Sequence[str]
) -> Grid:
    columns = (
        Column("name", "Function", "text", 0),
        *(Column(f"{SHARE}{label}", label, "ratio", 0, bar=True) for label in labels),
    )
    rows: tuple[Row, ...] = tuple((name, *(shares[label].get(name, NEVER)[1] for label in labels)) for name in names)
    return Grid(columns, rows, "share of CUDA API time on each side, over the whole captures", complete=True)


def _every_share(shares: Mapping[str, Mapping[str, tuple[str, float]]]) -> Grid:
    columns = (
        Column("side", "Side", "text", 0),
        Column("name", "Function", "text", 0),
        Column("domain", "Domain", "text", 1),
        Column("share_of_api", "Share", "ratio", 0, additive=True),
    )
    rows = tuple(
        (label, name, domain, share) for label, of_side in shares.items() for name, (domain, share) in of_side.items()
    )
    return Grid(columns, rows, "share of every function on every side", audience="machine")


def host_by_side(sides: Sequence[Side]) -> list[Block]:
    """Return CPU, memory and threads of each side, mean over its runs.

    It is empty if fewer than two sides recorded any.
    """
    rows = tuple((side.label, *(side.mean("host", key) for key, *_ in _HOST)) for side in sides)
    if sum(any(value is not None for value in row[1:]) for row in rows) < _LEAST:
        return []
    columns = (Column("side", "Side", "text", 0), *(Column(*figure) for figure in _HOST))
    return [Grid(columns, rows, "each side, mean over its runs", complete=True)]


# Composition of the times of all sides, for machines ------------------------------------------------------------------


def classes_by_side(sides: Sequence[Side]) -> Iterator[Grid]:
    """Yield the mean time of every class of step time, for machines, for each side that lists its steps.

    The classes add up to the step. A class that a side does not measure is ``None``; its time is in later classes.
    """
    keys = classes_of(sides)
    labels = {key: label for side in reversed(sides) for key, label in side.class_labels.items()}
    rows: list[Row] = []
    for side in sides:
        if side.classes and side.steps:
            means = mean_classes(side, keys)[1:]
            times = ((key, mean if key in side.measured else None) for key, mean in zip(keys, means, strict=True))
            rows += [(side.label, key, labels.get(key, key), time) for key, time in times]
    if rows:
        yield _of_machines("class", rows, CLASSES_OF_SIDES)


def parts_by_side(sides: Sequence[Side]) -> Iterator[Grid]:
    """Yield the mean time of every exclusive part of the whole runs, for each side that reports them, for machines."""
    told = {side.label: parts_of(side) for side in sides}
    rows = [(label, key, words, time) for label, parts in told.items() for key, (words, time) in parts.items()]
    if rows:
        yield _of_machines("part", rows, PARTS_OF_SIDES)


def _of_machines(name: str, rows: Sequence[Row], title: str) -> Grid:
    columns = (Column("side", "Side"), Column(name, "Key"), Column("label", "Label"), Column("mean_ns", "Mean", "ns"))
    return Grid(columns, tuple(rows), title, audience="machine")
