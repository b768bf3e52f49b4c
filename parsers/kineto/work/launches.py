"""Which call set device work off, in which process, and on whose behalf."""

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
    """The calls of a capture, and what they set off.

    Args:
        events: The events.
        forest: Those on threads, nested.
        identity: Who is who.
    """

    events: Events
    forest: Forest
    identity: Identity

    @cached_property
    def _keyed(self) -> tuple[Array, Array]:
        """Correlation ids of the calls that have one, sorted, of equal ones by start; and the calls (int32)."""
        rows = self.events.rows(Role.API)
        stated = numbers(self.events.frame, "correlation", rows)
        known = stated.known & (stated.value > 0)
        rows, key = rows[known], stated.value[known]
        order = np.lexsort((self.events.start[rows], key))
        return key[order], rows[order]

    @cached_property
    def repeated(self) -> int:
        """Calls whose correlation id an earlier call of the capture has as well."""
        key, _ = self._keyed
        return int((key[1:] == key[:-1]).sum())

    def call(self, rows: Array) -> Array:
        """The call that each of ``rows`` belongs to (int32), :data:`NONE` where the capture does not hold it.

        Where several calls have its correlation id, it is the last that began before it.
        """
        key, call = self._keyed
        stated = numbers(self.events.frame, "correlation", rows)
        if not key.size:
            return np.full(rows.size, NONE, np.int32)
        first = np.searchsorted(key, stated.value, side="left")
        place = np.minimum(first, key.size - 1)
        has_call = stated.known & (stated.value > 0) & (key[place] == stated.value)
        if self.repeated:
            self._latest(stated.value, self.events.start[rows], first, place)
        return np.where(has_call, call[place], NONE).astype(np.int32)

    def correlation(self, rows: Array, call: Array) -> Arrow:
        """Column ``correlation_id`` of ``rows``, which belong to ``call``; zero and less stand for none.

        Ids are those of the file. Where it repeats an id, later calls and their work get a new one, since tables are
        joined by it.
        """
        stated = numbers(self.events.frame, "correlation", rows)
        value = np.where(stated.known & (stated.value > 0), stated.value, NONE)
        if self.repeated:
            own = take(self._own_ids, call)
            value = np.where(own > 0, own, value)
        return nullable(value, pa.int64())

    @cached_property
    def _own_ids(self) -> Array:
        """Id of each call that has one (int64, by event), :data:`NONE` of others; no two calls share one."""
        key, call = self._keyed
        again = np.r_[False, key[1:] == key[:-1]]
        largest = int(self.events.frame["correlation"].fill_null(0).to_numpy().max())
        own = np.full(self.events.role.size, NONE, np.int64)
        own[call] = np.where(again, largest + np.cumsum(again), key)
        return own

    def _latest(self, ids: Array, start: Array, first: Array, place: Array) -> None:
        """Move ``place`` on to the last call with the same id that began no later than ``start``.

        Calls and work are sorted together by id and time: the last call before a piece of work is the one::

            id 5:   call  work  work  call  call  work
                      ^-----'-----'           ^-----'
        """
        key, call = self._keyed
        rows = np.flatnonzero(np.searchsorted(key, ids, side="right") > first + 1)
        number = np.r_[np.arange(key.size), np.full(rows.size, NONE)]
        order = np.lexsort((number < 0, np.r_[self.events.start[call], start[rows]], np.r_[key, ids[rows]]))
        latest = np.empty(order.size, np.int64)
        latest[order] = np.maximum.accumulate(number[order])
        place[rows] = np.maximum(latest[key.size :], first[rows])

    @cached_property
    def _external(self) -> tuple[Array, Pairs]:
        """The operations that have an external id (int32), and their processes and ids."""
        rows = self.events.rows(Role.HOST)
        stated = numbers(self.events.frame, "external_id", rows)
        known = stated.known & (stated.value > 0) & (self.events.category[rows] != CODES["step"])
        rows = rows[known]
        return rows, Pairs(take(self.identity.process_of, take(self.identity.thread_id, rows)), stated.value[known])

    def behalf(self, rows: Array, call: Array) -> Array:
        """Operation (event, int32) on whose behalf each of ``rows`` ran, :data:`NONE` where it is not known.

        That is the operation around the call on its thread. Where the call is not known, or nothing is around it, it is
        the first operation of the process with the same external id, which the profiler notes at the call.
        """
        around = take(self.forest.behalf, call)
        operations, ids = self._external
        if not operations.size or (around >= 0).all():
            return around
        stated = numbers(self.events.frame, "external_id", rows)
        sought = Pairs(self.process(call), stated.value, stated.known & (around < 0))
        found = take(operations, first_rows(sought, ids))
        return np.where(around < 0, found, around).astype(np.int32)

    def op(self, rows: Array, call: Array) -> DictionaryArray:
        """Column ``op``: the name of the operation that :meth:`behalf` gives."""
        name = self.events.name
        return encoded(take(name.codes, self.behalf(rows, call)), name.words)

    def process(self, call: Array) -> Array:
        """Process of the calls (int32); where the call is not known, the process that did most."""
        thread = take(self.identity.thread_id, call)
        return take(self.identity.process_of, thread, self.identity.program)

    @cached_property
    def orphans(self) -> int:
        """Device work whose call the capture does not hold."""
        return int((self.call(self.events.rows(*DEVICE_ROLES)) < 0).sum())

    def stated(self, name: str, call: Array) -> Numbers:
        """Argument ``name`` of the calls."""
        known = call >= 0
        values = numbers(self.events.frame, name, np.maximum(call, 0).astype(np.int32))
        return Numbers(values.value, values.known & known)
