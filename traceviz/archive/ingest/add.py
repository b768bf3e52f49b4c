"""Adding traces to an archive: every item once, whatever becomes of the others.

What was converted is there, whatever happens next: the folder of a trace holds its rows of the catalogue, so that an
add that was interrupted is taken up where it was.
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

from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.rows import with_times
from traceviz.archive.ingest.ingest import Ingested, IngestOptions, ingest, quarantine
from traceviz.archive.runners.base import Runner, RunnerError
from traceviz.archive.sources.discover import items
from traceviz.archive.sources.exported_reports import EXPORTED
from traceviz.archive.sources.item import Item, Refused
from traceviz.archive.storage import layout
from traceviz.archive.storage.spool import SPOOL
from traceviz.archive.storage.store import WORK, Store
from traceviz.archive.upkeep import removal
from traceviz.archive.upkeep.verify import ABANDONED_S
from traceviz.errors import OutputError
from traceviz.parsers.base import Progress, silent
from traceviz.version import __version__

FLUSH_TRACES = 64
FLUSH_S = 30.0
"""After so many traces, or so long, rows are written to the catalogue."""
NO_TRACE = "no-trace"
"""Code of files that lie beside traces and are none."""
_REMOVED = "Another program removed it from the archive at the same time. Add it again."


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A trace that cannot be read.

    Args:
        trace_id: Its id.
        source: Its name.
        error: Why.
    """

    trace_id: str
    source: str
    error: str


@dataclass(frozen=True, slots=True)
class Added:
    """What became of everything that was to be added.

    Args:
        added: Traces that were added.
        taken_up: Those of them that an interrupted add had converted.
        mended: Traces that the catalogue had, and whose folder was missing or damaged.
        known: Traces that were there already.
        known_private: Those of them that were added with what is private in them, which this add was not to keep.
        quarantined: Traces that cannot be read.
        still_quarantined: Those that could not be read when they were added before, and were not tried again.
        refused: What was not read, and why.
        left_out: Reports of nsys whose export lies beside them and was added instead.
        ignored: Files that are no traces.
        removed: What was private in the traces that were added, and how often it was.
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
        """Whether any were found, readable or not."""
        return bool(self.added or self.mended or self.known or self.quarantined or self.still_quarantined)

    @property
    def is_complete(self) -> bool:
        """Whether every trace is in the archive."""
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
    """Add all traces that are found in ``sources``; those that are there already are not converted again.

    Args:
        store: The archive; made where there is none.
        sources: Files, folders, patterns, archive files, URLs.
        options: How traces are added.
        runner: Where the work is done.
        retry: Try traces again that could not be read before. Another version of traceviz tries them anyway.
        progress: Receives progress.

    Raises:
        UsageError: the place of the archive holds something else; a source does not exist.
        OutputError: the archive cannot be written (the disk is full). What was added until then stays.
    """
    layout.check_place(store)
    found = _Found(items(sources, options.limits))
    try:
        if not found.has_items():  # nothing is made for nothing
            return _Adding(store, catalogue.read(store), keep_private=options.keep_private).outcome(found)
        layout.create(store)
        _sweep(store)
        before = catalogue.read(store)
        failed = before.filter((pl.col("state") == "quarantined") & (pl.col("traceviz_version") == __version__))
        skipped = frozenset[str]() if retry else frozenset(failed["trace_id"])
        told = replace(options, now_ns=options.now_ns or time.time_ns(), quarantined=skipped)
        adding = _Adding(store, before, keep_private=told.keep_private)
        try:
            _work(runner, adding, found, told, progress)
        except BaseException as error:
            with suppress(OutputError):  # the folders hold the rows, too
                adding.flush()
            with suppress(OutputError):  # of workers that were ended
                _sweep(store)
            if isinstance(error, OutputError):
                raise adding.told_of(error) from error
            raise
    finally:
        SPOOL.release()
    catalogue.merge(store)
    return adding.outcome(found)


def _sweep(store: Store) -> None:
    for name in layout.leftovers(store, ABANDONED_S, store.now()):
        store.remove(WORK, name)


def _work(runner: Runner, adding: _Adding, found: _Found, options: IngestOptions, progress: Progress) -> None:
    """Have everything done that is found; what went wrong is tried again or taken down."""
    store = adding.store

    def done(one: Item, result: Ingested | RunnerError) -> str:
        why = adding.take(found.place_of(one), one, result)
        if not why:
            found.tell(progress)
        return why

    with closing(runner.map(partial(ingest, store=store, options=options), found)) as results:
        again = [(item, why) for item, one in results if (why := done(item, one))]
    if again:
        with closing(runner.map(partial(quarantine, options=options), again)) as taken_down:
            lost = [(item, why) for (item, _), one in taken_down if (why := done(item, one))]
        adding.refused += [Refused(item.name, "unreadable", why) for item, why in lost]
    if renamed := adding.renamed():
        with closing(runner.map(partial(ingest, store=store, options=replace(options, anew=True)), renamed)) as results:
            for item, one in results:
                if isinstance(one, Ingested) and one.outcome == "added":
                    adding.take(found.place_of(item), item, one)
    adding.flush()


class _Found:
    """Items as they are found; what is refused is kept apart."""

    def __init__(self, found: Iterator[Item | Refused]) -> None:
        self._found = found
        self._first: Item | None = None
        self._places: dict[Item, int] = {}
        self._done = 0
        self._is_all = False
        self.refused: list[Refused] = []

    def has_items(self) -> bool:
        """Whether there are any; looks for the first."""
        self._first = next(self._items(), None)
        return self._first is not None

    def __iter__(self) -> Iterator[Item]:
        if self._first is not None:
            yield self._noted(self._first)
        for one in self._items():
            yield self._noted(one)
        self._is_all = True

    def place_of(self, item: Item) -> int:
        """How many were found before it."""
        return self._places[item]

    def tell(self, progress: Progress) -> None:
        """Another one of the items is done; of how many is told once all are found."""
        self._done += 1
        progress("adding traces", self._done, len(self._places) if self._is_all else None)

    def _items(self) -> Iterator[Item]:
        for one in self._found:
            if isinstance(one, Refused):
                self.refused.append(one)
            else:
                yield one

    def _noted(self, item: Item) -> Item:
        self._places[item] = len(self._places)
        return item


class _Adding:
    """What was done until now, and rows that the catalogue does not have yet."""

    def __init__(self, store: Store, before: pl.DataFrame, *, keep_private: bool) -> None:
        self.store = store
        self._keep_private = keep_private
        self._private: set[str] = set()
        self._ready = frozenset(catalogue.ready(before)["trace_id"])
        bad = before.filter(pl.col("state") == "quarantined").select("trace_id", "error")
        self._errors: dict[str, str] = dict(bad.iter_rows())
        self._changed: dict[str, int] = dict(before.select("trace_id", "changed_ns").iter_rows())
        there = before.filter(pl.col("state") != "removed").select("trace_id", "added_ns")
        self._added_ns: dict[str, int] = dict(there.iter_rows())
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

    def take(self, place: int, item: Item, result: Ingested | RunnerError) -> str:
        """Note what became of an item; returns why it is to be quarantined, where whoever worked on it failed.

        Raises:
            OutputError: the archive cannot be written.
        """
        if isinstance(result, RunnerError):
            if isinstance(result.cause, OutputError):
                raise result.cause
            return f"{result.code}: {result.message}"
        self._note(place, item, result)
        if result.outcome == "known" and not self._keep_private:
            private = result.rows.filter(pc.field("private"))
            self._private.update(str(one) for one in private.column("trace_id").to_pylist())
        if len(self._waiting) >= FLUSH_TRACES or time.monotonic() - self._flushed_s > FLUSH_S:
            self.flush()
        return ""

    def renamed(self) -> list[Item]:
        """Of traces that were found under several names, and written under another than the first, the first.

        Who is done first is chance. What a trace is called, and of which job it is, must not be.
        """
        return [self._first[one][1] for one, place in self._written.items() if self._first[one][0] < place]

    def told_of(self, error: OutputError) -> OutputError:
        """The error that ends it, and what is in the archive all the same."""
        count = len(self._ids)
        done = f"{count:,} trace{'s were' if count != 1 else ' was'} added before."
        return OutputError(error.what, error.why, f"{error.fix} {done}".strip())

    def flush(self) -> None:
        """Write the rows that wait.

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
        """Take traces out again that were found converted, and that another program was just removing."""
        if not self._taken_up:
            return
        rows = pl.from_arrow(written)
        assert isinstance(rows, pl.DataFrame)
        rows = rows.filter(pl.col("trace_id").is_in([*self._taken_up]))
        places = rows.select("format", "trace_id").unique().iter_rows()
        gone = [trace_id for format_name, trace_id in places if removal.is_gone(self.store, format_name, trace_id)]
        if gone:
            removal.write_off(self.store, rows.filter(pl.col("trace_id").is_in(gone)))
            self.refused += [self._taken_up[one] for one in gone]
            self._counts["taken up"] -= len(gone)
            self._ids -= {*gone}
        self._taken_up.clear()

    def outcome(self, found: _Found) -> Added:
        """Everything that was done."""
        refused = (*found.refused, *self.refused)
        return Added(
            added=self._counts["added"] + self._counts["taken up"],
            taken_up=self._counts["taken up"],
            mended=self._counts["mended"],
            known=self._counts["known"],
            known_private=len(self._private),
            quarantined=tuple(self._quarantined[one] for one in sorted(self._quarantined)),
            still_quarantined=tuple(self._still[one] for one in sorted(self._still)),
            refused=tuple(one for one in refused if one.code not in {NO_TRACE, EXPORTED}),
            left_out=tuple(one for one in refused if one.code == EXPORTED),
            ignored=sum(one.code == NO_TRACE for one in refused),
            removed=dict(sorted(self._removed.items())),
            ids=tuple(sorted(self._ids)),
        )

    def _note(self, place: int, item: Item, result: Ingested) -> None:
        if result.refused is not None:
            self.refused.append(result.refused)
            return
        first = result.rows.slice(0, 1).to_pylist()[0]
        trace_id = first["trace_id"]
        is_first = place <= self._first.get(trace_id, (place, item))[0]
        if is_first:
            self._first[trace_id] = place, item
        if result.outcome == "known-quarantined":
            if is_first:
                self._still[trace_id] = Quarantined(trace_id, first["source"], self._errors[trace_id])
        elif result.outcome == "quarantined":
            if is_first:
                self._quarantined[trace_id] = Quarantined(trace_id, first["source"], first["error"])
                self._keep(result.rows, trace_id)
        elif trace_id in self._ids and result.outcome == "added":  # once more, under the name that was found first
            self._written[trace_id] = place
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
                self._written[trace_id] = place
            self._keep(result.rows, trace_id)

    def _keep(self, rows: pa.Table, trace_id: str) -> None:
        """Rows for the catalogue, newer than those that it has of the trace, whatever clock wrote those."""
        changed = max(time.time_ns(), self._changed.get(trace_id, 0) + 1)
        self._changed[trace_id] = changed
        self._waiting.append(with_times(catalogue.with_added(rows), changed, self._added_ns.get(trace_id)))
