"""Adding traces to an archive: each item once, regardless of failures of other items.

A converted trace survives an interruption. Its folder holds its catalogue rows, so that a later add resumes from it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from traceviz.archive.catalogue import packs
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.rows import with_times
from traceviz.archive.ingest.ingest import Ingested, IngestOptions, ingest, quarantine
from traceviz.archive.runners.base import Runner, RunnerError
from traceviz.archive.sources.discover import items
from traceviz.archive.sources.exported_reports import EXPORTED
from traceviz.archive.sources.hashes import Item, Refused
from traceviz.archive.storage import layout
from traceviz.archive.storage.leases import ABANDONED_S, Lease, lease
from traceviz.archive.storage.spool import SPOOL
from traceviz.archive.storage.store import WORK, Store
from traceviz.archive.upkeep import removal
from traceviz.core.errors import OutputError
from traceviz.parsers.base import Progress, silent
from traceviz.version import __version__

FLUSH_TRACES = 64
FLUSH_S = 30.0
"""Rows are written to the catalogue after this many traces or seconds."""
NO_TRACE = "no-trace"
"""Code of files in the sources that are not traces."""
_REMOVED = "Another program removed it from the archive at the same time. Add it again."


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A trace that cannot be read.

    Args:
        trace_id: Its id.
        source: Its display name.
        error: The error.
    """

    trace_id: str
    source: str
    error: str


@dataclass(frozen=True, slots=True)
class Added:
    """The results of an add.

    Args:
        added: Traces that were added.
        taken_up: The added traces that an interrupted add had already converted.
        mended: Traces in the catalogue whose folder was missing or damaged, and was written again.
        known: Traces that the archive already had.
        known_private: The known traces that hold private data, although this add does not keep private data.
        quarantined: Traces that cannot be read.
        still_quarantined: Traces that an earlier add could not read, and that were not retried.
        refused: Items that were not read, with the reason.
        left_out: Reports of nsys that were replaced by their export in the same folder.
        ignored: Files that are not traces.
        removed: Kinds and counts of private data that was removed from the added traces.
        ids: Ids of the traces that were added, in order.
    """

    added: int = 0
    taken_up: int = 0
    mended: int = 0
    known: int = 0
    known_private: int = 0
    quarantined: tuple[Quarantined, ...] = ()
    still_quarantined: tuple[Quarantined, ...] = ()
    refused: tuple[Refused, ...] = ()
    left_out: tuple[Refused, ...] = ()
    ignored: int = 0
    removed: Mapping[str, int] = field(default_factory=dict)
    ids: tuple[str, ...] = ()

    @property
    def has_traces(self) -> bool:
        """True if any traces were found, readable or not."""
        return bool(self.added or self.mended or self.known or self.quarantined or self.still_quarantined)

    @property
    def is_complete(self) -> bool:
        """True if every trace is in the archive."""
        return not (self.quarantined or self.still_quarantined or self.refused)


def add(
    store: Store,
    sources: Sequence[str],
    options: IngestOptions,
    runner: Runner,
    *,
    retry: bool = False,
    progress: Progress = silent,
) -> Added:
    """Add all traces in ``sources``. Traces that the archive already has are not converted again.

    Args:
        store: The archive; created if it does not exist.
        sources: Files, folders, patterns, archive files, URLs.
        options: Options of the add.
        runner: Runner that does the work.
        retry: Retry traces that could not be read before. Another version of traceviz always retries them.
        progress: Receives progress.

    Raises:
        UsageError: the location of the archive holds something else; a source does not exist.
        OutputError: the archive cannot be written (the disk is full). Traces added before are kept.
    """
    layout.check_location(store)
    discovery = _Discovery(items(sources, options.limits))
    try:
        if not discovery.has_items():  # do not create an archive without traces
            return _Adding(store, catalogue.read(store), keep_private=options.keep_private).outcome(discovery)
        layout.create(store)
        _sweep(store)
        with lease(store) as held:
            before = catalogue.read(store)
            failed = before.filter((pl.col("state") == "quarantined") & (pl.col("traceviz_version") == __version__))
            skipped = frozenset[str]() if retry else frozenset(failed["trace_id"])
            options = replace(options, now_ns=options.now_ns or time.time_ns(), quarantined=skipped)
            adding = _Adding(store, before, keep_private=options.keep_private, held=held)
            try:
                _work(runner, adding, discovery, options, progress)
            except BaseException as error:
                with suppress(OutputError):  # the folders hold the rows, too
                    adding.flush()
                with suppress(OutputError):  # remove temporary files of terminated workers
                    _sweep(store)
                if isinstance(error, OutputError):
                    raise adding.with_count(error) from error
                raise
    finally:
        SPOOL.release()
    catalogue.merge(store)
    packs.pack(store, catalogue.read(store))
    return adding.outcome(discovery)


def _sweep(store: Store) -> None:
    for name in layout.leftovers(store, ABANDONED_S, store.now()):
        store.remove(WORK, name)


def _work(runner: Runner, adding: _Adding, discovery: _Discovery, options: IngestOptions, progress: Progress) -> None:
    """Ingest all items; quarantine those whose worker failed."""
    store = adding.store

    def take(item: Item, result: Ingested | RunnerError) -> str:
        why = adding.take(discovery.position_of(item), item, result)
        if not why:
            discovery.report_done(progress)
        return why

    with closing(runner.map(partial(ingest, store=store, options=options), discovery)) as results:
        failed = [(item, why) for item, result in results if (why := take(item, result))]
    if failed:
        with closing(runner.map(partial(quarantine, options=options), failed)) as results_of_failed:
            lost = [(item, why) for (item, _), result in results_of_failed if (why := take(item, result))]
        adding.refused += [Refused(item.name, "unreadable", why) for item, why in lost]
    if renamed := adding.renamed():
        with closing(runner.map(partial(ingest, store=store, options=replace(options, anew=True)), renamed)) as results:
            for item, result in results:
                if isinstance(result, Ingested) and result.outcome == "added":
                    adding.take(discovery.position_of(item), item, result)
    adding.flush()


class _Discovery:
    """Items in the order of discovery; refusals are collected separately."""

    def __init__(self, items_and_refusals: Iterator[Item | Refused]) -> None:
        self._items_and_refusals = items_and_refusals
        self._first: Item | None = None
        self._positions: dict[Item, int] = {}
        self._done = 0
        self._is_all = False
        self.refused: list[Refused] = []

    def has_items(self) -> bool:
        """Return whether there are any items; discovers the first one."""
        self._first = next(self._items(), None)
        return self._first is not None

    def __iter__(self) -> Iterator[Item]:
        if self._first is not None:
            yield self._note_position(self._first)
        for item in self._items():
            yield self._note_position(item)
        self._is_all = True

    def position_of(self, item: Item) -> int:
        """Return the number of items before this one."""
        return self._positions[item]

    def report_done(self, progress: Progress) -> None:
        """Report that one more item is done. The total is known once the sources are exhausted."""
        self._done += 1
        progress("adding traces", self._done, len(self._positions) if self._is_all else None)

    def _items(self) -> Iterator[Item]:
        for item in self._items_and_refusals:
            if isinstance(item, Refused):
                self.refused.append(item)
            else:
                yield item

    def _note_position(self, item: Item) -> Item:
        self._positions[item] = len(self._positions)
        return item


class _Adding:
    """Results so far, and rows that are not in the catalogue yet."""

    def __init__(self, store: Store, before: pl.DataFrame, *, keep_private: bool, held: Lease | None = None) -> None:
        self.store = store
        self._lease = held
        self._keep_private = keep_private
        self._private: set[str] = set()
        self._ready = frozenset(catalogue.ready(before)["trace_id"])
        bad = before.filter(pl.col("state") == "quarantined").select("trace_id", "error")
        self._errors: dict[str, str] = dict(bad.iter_rows())
        self._changed: dict[str, int] = dict(before.select("trace_id", "changed_ns").iter_rows())
        present = before.filter(pl.col("state") != "removed").select("trace_id", "added_ns")
        self._added_ns: dict[str, int] = dict(present.iter_rows())
        self._waiting: list[pa.Table] = []
        self._taken_up: dict[str, Refused] = {}
        self._flushed_s = time.monotonic()
        self._counts: Counter[str] = Counter()
        self._removed: Counter[str] = Counter()
        self._ids: set[str] = set()
        self._first: dict[str, tuple[int, Item]] = {}
        self._written: dict[str, int] = {}
        self._quarantined: dict[str, Quarantined] = {}
        self._still: dict[str, Quarantined] = {}
        self.refused: list[Refused] = []

    def take(self, position: int, item: Item, result: Ingested | RunnerError) -> str:
        """Record the result of an item. If its worker failed, return the reason for its quarantine.

        Raises:
            OutputError: the archive cannot be written.
        """
        if isinstance(result, RunnerError):
            if isinstance(result.cause, OutputError):
                raise result.cause
            return f"{result.code}: {result.message}"
        if self._lease is not None:
            self._lease.renew()
        self._note(position, item, result)
        if result.outcome == "known" and not self._keep_private:
            private = result.rows.filter(pc.field("private"))
            self._private.update(map(str, private.column("trace_id").to_pylist()))
        if len(self._waiting) >= FLUSH_TRACES or time.monotonic() - self._flushed_s > FLUSH_S:
            self.flush()
        return ""

    def renamed(self) -> list[Item]:
        """Return the first items of traces that have several names and were not written under the first one.

        The order in which workers finish is random, but the name and job of a trace must be deterministic.
        """
        return [
            self._first[trace_id][1]
            for trace_id, position in self._written.items()
            if self._first[trace_id][0] < position
        ]

    def with_count(self, error: OutputError) -> OutputError:
        """Return the error that ends the add, extended by the number of traces added before."""
        count = len(self._ids)
        done = f"{count:,} trace{'s were' if count != 1 else ' was'} added before."
        return OutputError(error.what, error.why, f"{error.fix} {done}".strip())

    def flush(self) -> None:
        """Write the pending rows.

        Raises:
            OutputError: the archive cannot be written.
        """
        self._flushed_s = time.monotonic()
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            catalogue.append(self.store, rows)
            self._waiting.clear()
            self._drop_removed(rows)

    def _drop_removed(self, written: pa.Table) -> None:
        """Remove traces that were added while another program was removing them."""
        if not self._taken_up:
            return
        rows = pl.from_arrow(written)
        assert isinstance(rows, pl.DataFrame)
        rows = rows.filter(pl.col("trace_id").is_in([*self._taken_up]))
        folders = rows.select("format", "trace_id").unique().iter_rows()
        gone = [trace_id for format_name, trace_id in folders if removal.is_gone(self.store, format_name, trace_id)]
        if gone:
            removal.write_off(self.store, rows.filter(pl.col("trace_id").is_in(gone)))
            self.refused += [self._taken_up[trace_id] for trace_id in gone]
            self._counts["taken up"] -= len(gone)
            self._ids -= {*gone}
        self._taken_up.clear()

    def outcome(self, discovery: _Discovery) -> Added:
        """Return the results of the add."""
        refused = (*discovery.refused, *self.refused)
        return Added(
            added=self._counts["added"] + self._counts["taken up"],
            taken_up=self._counts["taken up"],
            mended=self._counts["mended"],
            known=self._counts["known"],
            known_private=len(self._private),
            quarantined=tuple(self._quarantined[trace_id] for trace_id in sorted(self._quarantined)),
            still_quarantined=tuple(self._still[trace_id] for trace_id in sorted(self._still)),
            refused=tuple(refusal for refusal in refused if refusal.code not in {NO_TRACE, EXPORTED}),
            left_out=tuple(refusal for refusal in refused if refusal.code == EXPORTED),
            ignored=sum(refusal.code == NO_TRACE for refusal in refused),
            removed=dict(sorted(self._removed.items())),
            ids=tuple(sorted(self._ids)),
        )

    def _note(self, position: int, item: Item, result: Ingested) -> None:
        if result.refused is not None:
            self.refused.append(result.refused)
            return
        first = result.rows.slice(0, 1).to_pylist()[0]
        trace_id = first["trace_id"]
        is_first = position <= self._first.get(trace_id, (position, item))[0]
        if is_first:
            self._first[trace_id] = position, item
        if result.outcome == "known-quarantined":
            if is_first:
                self._still[trace_id] = Quarantined(trace_id, first["source"], self._errors[trace_id])
        elif result.outcome == "quarantined":
            if is_first:
                self._quarantined[trace_id] = Quarantined(trace_id, first["source"], first["error"])
                self._keep(result.rows, trace_id)
        elif trace_id in self._ids and result.outcome == "added":  # again, under the name that was found first
            self._written[trace_id] = position
            self._keep(result.rows, trace_id)
        elif trace_id in self._ids or (result.outcome == "known" and trace_id in self._ready):
            self._counts["known"] += 1
        else:
            kinds = {"known": "taken up", "added": "mended" if trace_id in self._ready else "added"}
            self._counts[kinds[result.outcome]] += 1
            self._removed.update(result.removed)
            self._ids.add(trace_id)
            if result.outcome == "known":
                self._taken_up[trace_id] = Refused(first["source"], "removed", _REMOVED)
            else:
                self._written[trace_id] = position
            self._keep(result.rows, trace_id)

    def _keep(self, rows: pa.Table, trace_id: str) -> None:
        """Collect rows for the catalogue, with a later time than the trace's existing rows, even if clocks differ."""
        changed = max(time.time_ns(), self._changed.get(trace_id, 0) + 1)
        self._changed[trace_id] = changed
        self._waiting.append(with_times(catalogue.with_added(rows), changed, self._added_ns.get(trace_id)))
