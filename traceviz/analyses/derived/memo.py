"""Results that are computed once, by the first thread that needs them: analyses of a large trace run concurrently."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from concurrent.futures import Future
from threading import Lock, get_ident
from typing import Any, Generic, Self, TypeVar, cast, overload

import numpy as np
import polars as pl

Owner = TypeVar("Owner")
T = TypeVar("T")


_NOTHING = object()
"""Marker for an unknown result, since any value may be a result."""


class Kept:
    """Results by key. If another thread already computes a result, the caller waits for it.

    A computation may request other results, unless one of them requests it in turn.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._results: dict[Hashable, tuple[int, Future[Any]]] = {}
        self._done: dict[Hashable, Any] = {}

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result of ``key``; the first caller computes it with ``compute``.

        Raises:
            RecursionError: A result requires itself.
        """
        done = self._done.get(key, _NOTHING)  # fast path without a lock, since most results are known
        if done is not _NOTHING:
            return cast("T", done)
        with self._lock:
            known = self._results.get(key)
            if known is None:
                future: Future[Any] = Future()
                self._results[key] = (get_ident(), future)
        if known is None:
            try:
                result = compute()
            except BaseException as error:
                with self._lock:
                    del self._results[key]
                future.set_exception(error)
                raise
            self._done[key] = result
            future.set_result(result)
            return result
        thread, future = known
        if thread == get_ident() and not future.done():
            raise RecursionError(f"{key!r} asks for itself.")
        return cast("T", future.result())

    def evict(self, least: int, of: object, needed: Collection[Hashable] = ()) -> frozenset[Hashable]:
        """Evict results of at least ``least`` bytes; they are computed again on request.

        Args:
            least: Minimum bytes of numbers and texts in a result.
            of: Owner of the results; it and what it refers to do not count as part of any result.
            needed: Keys of results to keep.

        Returns:
            The evicted keys. Results being computed stay.
        """
        with self._lock:
            known = {key: future for key, (_, future) in self._results.items() if key not in needed and future.done()}
        large = frozenset(key for key, future in known.items() if held(future, of) >= least)
        with self._lock:
            for key in large:
                self._results.pop(key, None)
                self._done.pop(key, None)
        return large


def held(value: object, apart_from: object = None) -> int:
    """Return the bytes of numbers and texts in ``value`` and the values it refers to, except ``apart_from``."""
    seen = {id(apart_from)}
    found, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            found += one.nbytes
        elif isinstance(one, pl.DataFrame | pl.Series):
            found += int(one.estimated_size())
        else:
            waiting += _parts(one)
    return found


def _parts(value: object) -> Iterable[object]:
    """Return the parts of a traceviz object or of a collection."""
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, tuple | list | set | frozenset):
        return value
    if isinstance(value, Future):
        return (value.result(),) if value.done() else ()
    if not type(value).__module__.startswith(_OURS):
        return ()
    slots = (getattr(value, name) for name in getattr(type(value), "__slots__", ()) if hasattr(value, name))
    return [*slots, *getattr(value, "__dict__", {}).values()]


_OURS = __name__.partition(".")[0]


class kept_property(Generic[Owner, T]):  # noqa: N801 (as ``property`` and ``cached_property``)
    """A property that is computed once per object, which must have a :class:`Kept` named ``kept``."""

    def __init__(self, function: Callable[[Owner], T]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type[Owner], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Owner]) -> Self: ...
    @overload
    def __get__(self, instance: Owner, owner: type[Owner]) -> T: ...
    def __get__(self, instance: Owner | None, owner: type[Owner]) -> Self | T:
        if instance is None:
            return self
        kept: Kept = instance.kept  # type: ignore[attr-defined]
        result = kept.get(self._name, lambda: self._function(instance))
        vars(instance)[self._name] = result  # from now on found before this property
        return result
