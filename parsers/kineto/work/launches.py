"""Links from device work to its call, its process, and the operation that caused it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from traceviz.core.arrays.matching import Pairs, first_rows
from traceviz.parsers.kineto.categories import CODES, DEVICE_ROLES, Role
from traceviz.parsers.kineto.columns import numbers
from traceviz.parsers.kineto.events import Events
from traceviz.parsers.kineto.identity import Identity
from traceviz.parsers.kineto.work.nesting import Forest
from traceviz.parsers.shared.arrays.arrow import Array as Arrow
from traceviz.parsers.shared.arrays.arrow import DictionaryArray
from traceviz.parsers.shared.arrays.operations import NONE, Array, take
from traceviz.parsers.shared.events.columns import Numbers, encoded, nullable


@dataclass(frozen=True)
class Launches:
    """The calls of a capture, and the device work that they launched.

    Args:
        events: The events.
        forest: Those on threads, nested.
        identity: Processes, threads and devices.
    """

    events: Events
    forest: Forest
    identity: Identity

    @cached_property
    def _keyed(self) -> tuple[Array, Array]:
        """Sorted correlation ids of the calls that have one, equal ones by start; and the calls (int32)."""
        rows = self.events.rows(Role.API)
        stated = numbers(self.events.frame, "correlation", rows)
        known = stated.known & (stated.value > 0)
        rows, key = rows[known], stated.value[known]
        order = np.lexsort((self.events.start[rows], key))
        return key[order], rows[order]

    @cached_property
    def repeated(self) -> int:
        """Number of calls with the correlation id of an earlier call of the capture."""
        key, _ = self._keyed
        return int((key[1:] == key[:-1]).sum())

    def call(self, rows: Array) -> Array:
        """Return the call that each of ``rows`` belongs to (int32), :data:`NONE` if the capture does not hold it.

        If several calls have its correlation id, it is the last that started before it.
        """
        key, call = self._keyed
        stated = numbers(self.events.frame, "correlation", rows)
        if not key.size:
            return np.full(rows.size, NONE, np.int32)
        first = np.searchsorted(key, stated.value, side="left")
        place = np.minimum(first, key.size - 1)
        has_call = stated.known & (stated.value > 0) & (key[place] == stated.value)
        if self.repeated:
            # Sort calls and work together by id and time. Then the last call before a piece of work is its call:
            #
            #     id 5:   call  work  work  call  call  work
            #               ^-----'-----'           ^-----'
            several = np.flatnonzero(np.searchsorted(key, stated.value, side="right") > first + 1)
            number = np.r_[np.arange(key.size), np.full(several.size, NONE)]
            start = np.r_[self.events.start[call], self.events.start[rows[several]]]
            order = np.lexsort((number < 0, start, np.r_[key, stated.value[several]]))
            latest = np.empty(order.size, np.int64)
            latest[order] = np.maximum.accumulate(number[order])
            place[several] = np.maximum(latest[key.size :], first[several])
        return np.where(has_call, call[place], NONE).astype(np.int32)

    def correlation(self, rows: Array, call: Array) -> Arrow:
        """Return column ``correlation_id`` of ``rows``, which belong to ``call``; zero and negative ids stand for none.

        Ids are those of the file. If the file repeats an id, later calls and their work get a new one, because tables
        are joined by it.
        """
        stated = numbers(self.events.frame, "correlation", rows)
        value = np.where(stated.known & (stated.value > 0), stated.value, NONE)
        if self.repeated:
            own = take(self._own_ids, call)
            value = np.where(own > 0, own, value)
        return nullable(value, pa.int64())

    @cached_property
    def _own_ids(self) -> Array:
        """Id of each call that has one (int64, by event), :data:`NONE` for others; ids are unique."""
        key, call = self._keyed
        again = np.r_[False, key[1:] == key[:-1]]
        largest = int(self.events.frame["correlation"].fill_null(0).to_numpy().max())
        own = np.full(self.events.role.size, NONE, np.int64)
        own[call] = np.where(again, largest + np.cumsum(again), key)
        return own

    @cached_property
    def _external(self) -> tuple[Array, Pairs]:
        """Operations that have an external id (int32), and their processes and ids."""
        rows = self.events.rows(Role.HOST)
        stated = numbers(self.events.frame, "external_id", rows)
        known = stated.known & (stated.value > 0) & (self.events.category[rows] != CODES["step"])
        rows = rows[known]
        return rows, Pairs(take(self.identity.process_of, take(self.identity.thread_id, rows)), stated.value[known])

    def op(self, rows: Array, call: Array) -> DictionaryArray:
        """Return column ``op``: the name of the operation that caused each of ``rows``, null if unknown.

        That is the operation around the call on its thread. If the call is unknown, or no operation is around it, it is
        the first operation of the process with the same external id, which the profiler states at the call.
        """
        cause = take(self.forest.causes, call)
        operations, ids = self._external
        if operations.size and (cause < 0).any():
            stated = numbers(self.events.frame, "external_id", rows)
            sought = Pairs(self.process(call), stated.value, stated.known & (cause < 0))
            cause = np.where(cause < 0, take(operations, first_rows(sought, ids)), cause).astype(np.int32)
        name = self.events.name
        return encoded(take(name.codes, cause), name.words)

    def process(self, call: Array) -> Array:
        """Return the process of the calls (int32); for unknown calls, the process with most events."""
        thread = take(self.identity.thread_id, call)
        return take(self.identity.process_of, thread, self.identity.program)

    @cached_property
    def orphans(self) -> int:
        """Number of pieces of device work whose call the capture does not hold."""
        return int((self.call(self.events.rows(*DEVICE_ROLES)) < 0).sum())

    def argument_of_call(self, name: str, call: Array, axis: int | None = None) -> Numbers:
        """Return argument ``name`` of the calls; ``axis``: as in :func:`~traceviz.parsers.kineto.columns.numbers`."""
        values = numbers(self.events.frame, name, np.maximum(call, 0).astype(np.int32), axis)
        return Numbers(values.value, values.known & (call >= 0))
