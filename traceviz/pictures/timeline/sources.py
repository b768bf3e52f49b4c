"""Sources of the spans of a timeline: tables, and data derived from them, with the labels of their owners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from traceviz.analyses.derived.device.names import stated_ranks
from traceviz.analyses.derived.frames import without_nulls
from traceviz.analyses.derived.steps.search import training_thread
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.nested import Codes
from traceviz.pictures.timeline.names import Names
from traceviz.pictures.timeline.spans import Seat, Spans
from traceviz.report.pictures.values import Array

MACHINE = "machine"
"""Group of lanes that belong to no process."""
NOBODY = -1


class Owners:
    """Readable labels of the owners of lanes, and the order in which these are drawn.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: TraceView) -> None:
        self._trace = trace

    @cached_property
    def groups(self) -> dict[int, str]:
        """The group of each process, in drawing order: ranks first."""
        rows = {row["process_id"]: row for row in self._trace.tables.arrow("processes").to_pylist()}
        ranks = [process for process in self._trace.ranks if process in rows]
        has_ranks = bool(stated_ranks(self._trace))
        groups = {}
        for process in (*ranks, *(process for process in rows if process not in set(ranks))):
            row = rows[process]
            name = row["name"] or "process"
            pid = f" ({row['pid']})" if row["pid"] is not None else "" if row["name"] else f" {process}"
            groups[process] = f"rank {row['rank']}" if has_ranks and row["rank"] is not None else f"{name}{pid}"
        taken: set[str] = set()
        for process, group in groups.items():
            groups[process] = f"{group} #{process}" if group in taken else group
            taken.add(groups[process])
        return groups

    def group(self, process_id: int) -> str:
        """Return the group of a process, or the machine's for no process."""
        return self.groups.get(process_id, MACHINE)

    def place(self, process_id: int) -> int:
        """Return the position of the process's group; the machine's comes last."""
        return self._places.get(process_id, len(self._places))

    @cached_property
    def _places(self) -> dict[int, int]:
        return {process: place for place, process in enumerate(self.groups)}

    @cached_property
    def devices(self) -> dict[int, str]:
        """Kind and number of each device: ``GPU 0``."""
        rows = self._trace.tables.arrow("devices").to_pylist()
        return {
            int(row["device_id"]): f"{str(row['kind']).upper()} "
            f"{row['device_id'] if row['ordinal'] is None else row['ordinal']}"
            for row in rows
        }

    def device(self, device_id: int) -> str:
        """Return kind and number of a device."""
        return self.devices.get(device_id, f"device {device_id}")

    @cached_property
    def threads(self) -> dict[int, str]:
        """Name and number of each thread."""
        rows = self._trace.tables.arrow("threads").to_pylist()
        return {
            row["thread_id"]: f"{row['name']} ({row['tid']})" if row["name"] else f"thread {row['tid']}" for row in rows
        }

    def thread(self, thread_id: int) -> str:
        """Return name and number of a thread."""
        return self.threads.get(thread_id, f"thread {thread_id}")

    @cached_property
    def training(self) -> frozenset[int]:
        """Threads that run the training loop of a rank."""
        return frozenset(training_thread(self._trace, process) for process in self._trace.ranks)


Lanes = Iterator[tuple[Seat, Spans]]
Groups = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Events of one kind.

    Args:
        key: Name of the table, or of the derived data.
        starts: Start of each event, in the order in which they are numbered.
        end: End of the last event; 0 if there is none.
        lanes: Makes their lanes, given the number of the first event.
    """

    key: str
    starts: Array
    end: int
    lanes: Callable[[int], Lanes]

    @classmethod
    def of(cls, key: str, frames: Sequence[pl.DataFrame], lanes: Callable[[int], Lanes]) -> Source:
        """Create a source from frames with ``start_ns`` and ``dur_ns``, one frame after the other."""
        starts = [starts_of(frame) for frame in frames]
        end = max(int((starts_of(frame) + durations_of(frame)).max(initial=0)) for frame in frames)
        return cls(key, starts[0] if len(starts) == 1 else np.concatenate(starts), end, lanes)


@dataclass(frozen=True, slots=True)
class Making:
    """Data that all sources need.

    Args:
        trace: The trace.
        names: Names, which sources add to.
        owners: Labels.
    """

    trace: TraceView
    names: Names
    owners: Owners


def starts_of(frame: pl.DataFrame) -> Array:
    """Return column ``start_ns`` as an array."""
    return frame["start_ns"].to_numpy().astype(np.int64, copy=False)


def durations_of(frame: pl.DataFrame) -> Array:
    """Return column ``dur_ns`` as an array; 0 for an event that never ended, as in the whole report."""
    known: Array = without_nulls(frame["dur_ns"], 0).to_numpy().astype(np.int64, copy=False)
    return np.maximum(known, np.int64(0))


def spans_of(frame: pl.DataFrame, names: Codes, first: int) -> Spans:
    """Return the rows of a table as spans, numbered from ``first`` on."""
    return Spans(starts_of(frame), durations_of(frame), names, first + np.arange(frame.height))


def by_group(spans: Spans, groups: Sequence[Groups]) -> Iterator[tuple[tuple[int, ...], Spans]]:
    """Split spans by the values of all ``groups``; each part keeps its order."""
    if not spans.starts.size:
        return
    changing = [group for group in groups if group.min() != group.max()]
    if not changing:
        yield tuple(int(group[0]) for group in groups), spans
        return
    order = np.lexsort(changing[::-1])
    changes = np.zeros(order.size, bool)
    changes[0] = True
    for group in changing:
        ordered = group[order]
        changes[1:] |= ordered[1:] != ordered[:-1]
    bounds = np.flatnonzero(changes)
    for begin, end in zip(bounds, np.append(bounds[1:], order.size), strict=True):
        rows = order[begin:end]
        yield tuple(int(group[rows[0]]) for group in groups), spans.at(rows)


def numbers(column: pl.Series, missing: int = -1) -> Array:
    """Return a column of ids as an array, with ``missing`` for null."""
    return without_nulls(column, missing).to_numpy().astype(np.int64, copy=False)
