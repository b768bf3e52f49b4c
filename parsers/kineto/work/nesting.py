"""Nesting of host operations, and the operation that caused each call and each allocation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traceviz.parsers.kineto.categories import CODES, ON_THREADS, Role
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.shared.arrays.nesting import enclosing, nearest
from traceviz.parsers.shared.arrays.operations import (
    NONE,
    Array,
    at,
    by_key,
    by_start,
    inverted,
    looked_up,
    positions,
    stretches,
    take,
)

_OP = CODES["op"]
_STAND_INS = (CODES["annotation"], CODES["input"], CODES["compile"])
"""Categories that stand in for an operation if none is around."""
_STANDS_IN = np.array([code in _STAND_INS for code in (*range(len(CODES)), NONE)])


@dataclass(frozen=True)
class Forest:
    """The events on the threads of a capture, nested per thread. A *node* is an event, in order of start.

    Args:
        events: The events.
        order: Position of the event of each node (int32): by start, then the longer first, then operations before
            calls, then as in the file.
        parent: Node of the innermost event around each node (int32), :data:`NONE` at the top.
        overlapping: Number of events that lie neither within the event before them on their thread nor after it.
    """

    events: Events
    order: Array
    parent: Array
    overlapping: int

    @classmethod
    def of(cls, events: Events, thread_id: Array, threads: int) -> Forest:
        """Nest the events on threads; ``thread_id`` is that of each event (int32)."""
        order = by_start(events.start, events.has(*ON_THREADS))
        start = take(events.start, order)
        same = start[1:] == start[:-1]
        if same.any():  # events that start together: the longer first, then by role and place in the file
            tied = positions(np.r_[same, False] | np.r_[False, same])
            rows, start = take(order, tied), take(start, tied)
            order[tied] = rows[np.lexsort((rows, take(events.role, rows), -events.extent(rows), start))]
        _, grouped = by_key(take(thread_id, order), max(threads, 1))
        rows = take(order, grouped)
        line, start, end = take(thread_id, rows), take(events.start, rows), events.extent(rows)
        above = enclosing(line, start, end)
        end += start
        is_frame = take(events.category, rows) == CODES["python"]
        del rows
        overlapping = _count_overlaps(line, start, end, above, is_frame)
        del line, start, end
        parent = take(take(grouped, above), inverted(grouped, grouped.size))
        return cls(events, order, parent, overlapping)

    @cached_property
    def role(self) -> Array:
        """Role of each node (int8)."""
        return take(self.events.role, self.order)

    @cached_property
    def category(self) -> Array:
        """Host category of each node (int8), :data:`NONE` if it is not an operation of the host."""
        return np.where(self.role == Role.HOST, take(self.events.category, self.order), np.int8(NONE))

    @cached_property
    def op_node(self) -> Array:
        """Nodes that are rows of table ``host_ops`` (int32), by ``op_id``."""
        return positions(self.role == Role.HOST)

    @cached_property
    def op_rows(self) -> Array:
        """Events that are rows of table ``host_ops`` (int32), by ``op_id``."""
        return at(self.order, self.op_node)

    @cached_property
    def op_parent(self) -> Array:
        """``op_id`` of the innermost operation around each operation (int32), :data:`NONE` at the top."""
        around = nearest(self.parent, self.role == Role.HOST)
        return take(around, at(self.parent, self.op_node))

    @cached_property
    def causes(self) -> Array:
        """Event (int32) of the operation that caused each event on a thread, :data:`NONE` without one.

        That is the innermost ``op`` around it, else the innermost annotation, input or compilation.
        """
        operation = self._nearest(self.category == _OP)
        return self._events_of(np.where(operation >= 0, operation, self._nearest(looked_up(_STANDS_IN, self.category))))

    def around(self, selected: Array) -> Array:
        """Return the event (int32) of the innermost operation around each event on a thread that is ``selected``.

        ``selected`` has a bool per event. :data:`NONE` if there is none.
        """
        return self._events_of(self._nearest(take(selected, self.order) & (self.role == Role.HOST)))

    def _events_of(self, node: Array) -> Array:
        """Return, by event, the event of each node's linked node; :data:`NONE` for events on no thread."""
        event = np.full(self.events.role.size, NONE, np.int32)
        event[self.order] = take(self.order, node)
        return event

    def _nearest(self, selected: Array) -> Array:
        """Return each node itself if selected, else its nearest selected ancestor."""
        return take(positions(selected), nearest(self.parent, selected))

    @cached_property
    def op_id(self) -> Array:
        """``op_id`` of each event (int32), :data:`NONE` if it is not an operation."""
        return inverted(self.op_rows, self.events.role.size)


def _count_overlaps(line: Array, start: Array, end: Array, parent: Array, is_frame: Array) -> int:
    """Count spans, sorted by line and start, that start within the sibling before them and end after it.

    A range and the Python frame that opens or closes it do so by nature, and are not counted::

        with record_function("range"):      |--__enter__--|          |--__exit__--|
                                                 |--------- range --------|
    """
    _, siblings = by_key(parent + np.int32(1), parent.size + 1)
    overlaps = 0
    for part in stretches(siblings.size - 1):
        left, right = siblings[:-1][part], siblings[1:][part]
        comparable = (line[left] == line[right]) & (parent[left] == parent[right]) & (is_frame[left] == is_frame[right])
        overlaps += int((comparable & (start[right] < end[left])).sum())
    return overlaps
