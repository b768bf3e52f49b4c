"""SQL over an archive: each table combined over all traces, and the catalogue.

The engine is DuckDB, in memory and confined. It reads the tables of the archive, writes only its own temporary files,
loads no extensions, and has no network access.
"""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import duckdb
import polars as pl
import pyarrow as pa

from traceviz.archive.catalogue import packs
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.query.guard import tables_read
from traceviz.archive.query.views import CATALOGUE_VIEWS, PACKED, catalogue_table, files_by_trace, literal, views
from traceviz.archive.storage import layout
from traceviz.archive.storage.store import Store
from traceviz.core.errors import DamagedTraceError, MissingToolError, TracevizError, UsageError
from traceviz.core.process.cores import usable_cores
from traceviz.core.process.temporary import drop, note
from traceviz.core.sanitize import Lines, sentence
from traceviz.trace.schema import TABLES


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of DuckDB, and a query that shows its effect.

    Args:
        name: Its name in DuckDB.
        value: Its value, as SQL.
        trial: A statement that tests the effect.
        expected: Result of the trial if the setting has its effect, or the kind of error that it raises.
    """

    name: str
    value: str
    trial: str
    expected: object


# Trials take their values from rows: constants are computed elsewhere in DuckDB.
SETTINGS = (
    # Answers are the same on every machine.
    Setting("TimeZone", "'UTC'", "SELECT (TIMESTAMPTZ '2026-01-01 02:00:00+05')::VARCHAR", "2025-12-31 21:00:00+00"),
    # Division by zero is null, like everything unknown. It is neither an error nor infinity, which JSON lacks.
    Setting("error_on_division_by_zero", "false", "SELECT 1 % zero FROM range(1) AS t(zero)", None),
    Setting("ieee_floating_point_ops", "false", "SELECT 1 / zero FROM range(1) AS t(zero)", None),
    # The other settings are DuckDB's defaults, which docs/queries.md relies on.
    Setting("integer_division", "false", "SELECT 1 / (i + 2) FROM range(1) AS t(i)", 0.5),
    Setting("default_order", "'ASCENDING'", "SELECT list(i ORDER BY i) FROM range(2) AS t(i)", [0, 1]),
    Setting(
        "default_null_order",
        "'NULLS_LAST'",
        "SELECT list(x ORDER BY x) FROM (SELECT nullif(i, 0) AS x FROM range(2) AS t(i))",
        [1, None],
    ),
    Setting("default_collation", "''", "SELECT chr(97) = chr((65 + i)::INTEGER) FROM range(1) AS t(i)", False),
    # A query can read only tables of the archive.
    Setting("enable_external_access", "false", "FROM glob('/*')", duckdb.PermissionException),
    Setting("lock_configuration", "true", "SET threads = 1", duckdb.InvalidInputException),
)


def apply(connection: duckdb.DuckDBPyConnection, settings: Sequence[Setting] = SETTINGS) -> None:
    """Apply ``settings`` in order to ``connection`` and all its cursors, and test them.

    Raises:
        MissingToolError: a setting has no effect in this version of DuckDB.
    """
    for setting in settings:
        with suppress(duckdb.Error):  # a version without the setting may behave like this anyway: the trial decides
            connection.execute(f"SET GLOBAL {setting.name} = {setting.value}")
    with connection.cursor() as cursor:  # queries run on cursors
        for setting in settings:
            found: object
            try:
                row = cursor.execute(setting.trial).fetchone()
                found = row[0] if row else row
                shown = f"gives {found!r}"
            except duckdb.Error as error:
                found, shown = type(error), f"fails: {error}"
            if found != setting.expected:
                raise MissingToolError(
                    f"DuckDB {duckdb.__version__} does not apply {setting.name} = {setting.value}, "
                    "which queries depend on.",
                    f"Tried: {setting.trial} {shown}",
                    "Install another version of DuckDB. requirements/run.txt of traceviz names one that works.",
                )


Parameters = Sequence[object] | Mapping[str, object]

Result = TypeVar("Result")

ROWS = 50_000
"""Rows of a batch."""
WRONG = "The query cannot be run."
MEMORY_SHARE = 0.5
"""Default memory limit of a query, as a share of the machine's memory. Beyond it, the query spills to disk."""
_LOOK = 0.1
"""Seconds between two checks for signals in a waiting thread."""
_CONTAINER_MEMORY = Path("/sys/fs/cgroup/memory.max")
_KIND = re.compile(r"^[A-Z]\w*( \w+)* Error: ")
"""Kind of error at the start of DuckDB's messages."""
_POSITION = "\nLINE "
"""Text before the position in a query. The query line and a mark below it follow."""
_HUGE = pa.decimal128(38, 0)
"""DuckDB's type of sums of whole numbers: 128 bits."""


class Engine:
    """Answers queries over a snapshot of an archive, taken when the engine is created.

    A view of every table of :data:`traceviz.trace.schema.TABLES` holds the rows of all ready traces, with ``trace_id``
    as its first and ``format`` as its last column. ``catalogue`` has a row for each trace and rank, ``traces`` one for
    each trace, ``findings`` one for each finding, ``tags`` one for each tag of a trace.

    Args:
        store: The archive.
        rows: Its catalogue; by default read from the archive.
        memory: Memory limit in bytes before the engine spills to disk; by default half of the machine's memory.
        threads: Number of threads; by default one for each core that this process may use.

    Raises:
        UsageError: there is no archive.
        OutputError: it cannot be read.
    """

    def __init__(
        self, store: Store, rows: pl.DataFrame | None = None, *, memory: int | None = None, threads: int | None = None
    ) -> None:
        layout.check(store)
        self._store = store
        listed = catalogue.read(store) if rows is None else rows
        ready = catalogue.ready(listed).select("format", "trace_id").unique(maintain_order=True)
        self._traces: list[tuple[str, str]] = list(ready.iter_rows())
        self._folders: dict[str, frozenset[str]] | None = None
        self._packs: list[packs.Pack] = []
        self._packed: frozenset[str] = frozenset()
        self._opened: set[str] = set()
        spill = note(Path(tempfile.gettempdir()), "traceviz-query-")
        spill.mkdir(mode=0o700)
        self._remove_spill = weakref.finalize(self, drop, spill)
        self._connection = connect(str(spill), store, memory=memory, threads=threads)
        self._connection.execute("CREATE SCHEMA held")  # SHOW TABLES does not list its tables
        fill(self._connection, "held.rows", listed)
        self._define({**CATALOGUE_VIEWS, **views()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release memory and temporary files."""
        self._connection.close()
        self._remove_spill()

    @property
    def missing(self) -> tuple[str, ...]:
        """Ids of ready traces in the catalogue whose folders are missing; known after the first query of a table."""
        folders = self._folders
        return tuple(
            trace_id
            for format_name, trace_id in self._traces
            if folders is not None
            and trace_id not in self._packed
            and self._store.url_of(*layout.trace_parts(format_name, trace_id)) not in folders
        )

    def sql(self, text: str, parameters: Parameters | None = None) -> pa.Table:
        """Return the answer to a query, held in memory.

        128-bit integers (the type of sums) become 64-bit if they fit.

        Args:
            text: One ``SELECT``, in DuckDB's SQL.
            parameters: Values for its ``?``, or by name for its ``$name``.

        Raises:
            UsageError: the query is wrong, or does more than read tables of the archive.
            DamagedTraceError: a table of the archive cannot be read.
        """
        with self.answer(text, parameters) as batches, explain_errors():
            table = batches.read_all()
        for position, field in enumerate(table.schema):
            if field.type == _HUGE:
                table = table.set_column(position, *narrow(field.name, table.column(position)))
        return table

    @contextmanager
    def answer(self, text: str, parameters: Parameters | None = None) -> Iterator[pa.RecordBatchReader]:
        """Yield the answer in batches of :data:`ROWS`. Columns with equal names are numbered.

        Errors during reading of the batches are explained, too.

        Raises:
            UsageError: the query is wrong, or does more than read the tables of the archive.
            DamagedTraceError: a table of the archive cannot be read.
        """
        with self._connection.cursor() as cursor, _Patient(cursor) as patient:  # other answers may still be read
            with explain_errors(cursor, text, parameters):
                self._open(tables_read(cursor, text) & set(TABLES))
                relation = cursor.sql(text, params=parameters or None)
                reader = patient.wait(partial(relation.to_arrow_reader, ROWS))
            schema = pa.schema(
                [
                    field.with_name(name)
                    for field, name in zip(reader.schema, _distinct_names(reader.schema.names), strict=True)
                ]
            )
            renamed = (pa.record_batch(batch.columns, schema=schema) for batch in _read_batches(reader, patient))
            with pa.RecordBatchReader.from_batches(schema, renamed) as batches:
                yield batches

    def schema(self, text: str) -> pa.Schema:
        """Return names and types of an answer's columns, without reading any trace.

        Raises:
            UsageError: the query is wrong, or does more than read the tables of the archive.
        """
        with self._connection.cursor() as cursor, explain_errors(cursor, text):
            tables_read(cursor, text)
            relation = cursor.sql(text)
            types = relation.limit(0).to_arrow_reader(ROWS).schema.types
            return pa.schema(list(zip(_distinct_names(relation.columns), types, strict=True)))

    def _open(self, names: frozenset[str] | set[str]) -> None:
        """Connect the views of these tables to files. A view is empty until a query needs it."""
        new = sorted(names - self._opened)
        if new:
            if self._folders is None:
                self._folders = self._found()
            packed = {
                name: [pack.path(self._store, name) for pack in self._packs if name in pack.tables] for name in new
            }
            self._define(views(self._folders, new, packed))
            self._opened.update(new)

    def _found(self) -> dict[str, frozenset[str]]:
        """Return the files of the traces that are in no used pack, by folder. The other traces are read from packs.

        A pack is not used if most of its traces are not queried.
        """
        asked = {trace_id: format_name for format_name, trace_id in self._traces}
        if len(asked) >= packs.FEWEST:
            found = packs.packs(self._store)
            self._packs = [pack for pack in found if 2 * len(pack.ids & asked.keys()) >= len(pack.ids)]
        ids = {
            trace_id
            for pack in self._packs
            for format_name, trace_id in pack.traces
            if asked.get(trace_id) == format_name
        }
        self._packed = frozenset(ids)
        if self._packs:
            self._connection.register("given", pa.table({"trace_id": sorted(ids)}))
            self._connection.execute(f"CREATE TABLE {PACKED} AS FROM given")
            self._connection.unregister("given")
        return files_by_trace(self._store, [trace for trace in self._traces if trace[1] not in ids])

    def _define(self, queries: Mapping[str, str]) -> None:
        for name, query in queries.items():
            self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")


def connect(
    spill: str, store: Store | None = None, *, memory: int | None = None, threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that can read only the traces of ``store``, and its temporary folder ``spill``.

    Raises:
        MissingToolError: this version of DuckDB does not apply a setting that queries depend on.
    """
    connection = duckdb.connect(
        ":memory:",
        config={
            "allow_community_extensions": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "memory_limit": f"{memory or int(machine_memory() * MEMORY_SHARE)}B",
            "python_enable_replacements": False,
            "temp_directory": spill,
            "threads": threads or usable_cores(),
        },
    )
    if store is not None and not store.is_local:
        connection.register_filesystem(store.filesystem())
    connection.execute("SET allowed_directories = ?", [_reachable(store)])
    apply(connection)
    return connection


def fill(connection: duckdb.DuckDBPyConnection, name: str, rows: pl.DataFrame) -> None:
    """Create a table from rows of the catalogue."""
    connection.register("given", catalogue_table(rows))
    connection.execute(f"CREATE TABLE {name} AS FROM given")
    connection.unregister("given")


def narrow(name: str, values: pa.ChunkedArray[Any]) -> tuple[pa.Field[Any], pa.ChunkedArray[Any]]:
    """Convert 128-bit integers to 64-bit if all fit; otherwise leave them unchanged."""
    with suppress(pa.ArrowInvalid):
        values = values.cast(pa.int64())
    return pa.field(name, values.type), values


def _message(message: str) -> Lines:
    """Return a DuckDB message on one line (it may quote a trace) without its kind; a position adds two lines."""
    said, _, position = _KIND.sub("", message).rpartition(_POSITION)
    if not said:
        return Lines.of(sentence(position))
    shown, _, mark = position.partition("\n")
    return Lines.of(sentence(said), f"{_POSITION.lstrip()}{shown}", mark.rstrip())


def _reachable(store: Store | None) -> list[str]:
    """Return the folders of traces and packs in all spellings: of the archive, of its file system, and as patterns."""
    if store is None:
        return []
    urls = [store.url_of(layout.TRACES)]
    urls.append(store.url_of(packs.FOLDER) if store.is_local else store.filesystem().unstrip_protocol(urls[0]))
    return [f"{spelling}/" for address in urls for spelling in dict.fromkeys((address, literal(address)))]


def machine_memory() -> int:
    """Return the memory of the machine, or of the container of this process, in bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        bound = _CONTAINER_MEMORY.read_text(encoding="ascii").strip()
    except OSError:
        return physical
    return min(physical, int(bound)) if bound.isdigit() else physical


def _distinct_names(names: Sequence[str]) -> list[str]:
    """Make names distinct: the second ``name`` becomes ``name_2``."""
    distinct: list[str] = []
    for name in names:
        count, candidate = 1, name
        while candidate in distinct:
            count += 1
            candidate = f"{name}_{count}"
        distinct.append(candidate)
    return distinct


class _Patient:
    """Waits for DuckDB in another thread, so that Ctrl-C ends the query. DuckDB itself ignores it."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._thread = ThreadPoolExecutor(1, "traceviz-query")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def wait(self, work: Callable[[], Result]) -> Result:
        """Return the result of ``work``."""
        future = self._thread.submit(work)
        try:
            while not wait([future], _LOOK).done:  # a signal that another thread received does not wake this one
                pass
            return future.result()
        except BaseException:
            self._cursor.interrupt()
            raise


def _read_batches(reader: pa.RecordBatchReader, patient: _Patient) -> Iterator[pa.RecordBatch]:
    """Yield the batches of the reader.

    Raises:
        UsageError, DamagedTraceError, TracevizError: see :func:`explain_errors`.
    """
    with explain_errors():
        while (batch := patient.wait(partial(next, reader, None))) is not None:
            yield batch


@contextmanager
def explain_errors(
    connection: duckdb.DuckDBPyConnection | None = None, text: str = "", parameters: Parameters | None = None
) -> Iterator[None]:
    """Convert errors of DuckDB to errors of traceviz.

    Raises:
        UsageError: the query is wrong.
        DamagedTraceError: a file cannot be read.
        TracevizError: there is not enough memory.
    """
    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.BinderException, duckdb.CatalogException) as error:
        message = str(error) if connection is None else _with_position(connection, text, parameters, str(error))
        raise UsageError(
            WRONG, Lines.of(*(line for line in _KIND.sub("", message).splitlines() if line.strip()))
        ) from error
    except (duckdb.Error, OSError) as error:  # errors while rows are read come as OSError
        raise _cause(str(error)) from error


def _with_position(
    connection: duckdb.DuckDBPyConnection, text: str, parameters: Parameters | None, message: str
) -> str:
    """Return the message with the position in the query. Only executing the query gives the position."""
    with connection.cursor() as other:
        try:
            other.execute(text, parameters or None)
        except duckdb.Error as error:
            return str(error)
    return message


def _cause(message: str) -> TracevizError:
    """Return the traceviz error for a DuckDB message."""
    if message.startswith("Out of Memory Error"):
        return TracevizError(
            "The query needs more memory than its limit.", _message(message), "Give it more: --memory 16GB."
        )
    if message.startswith("INTERRUPT Error"):
        raise KeyboardInterrupt
    if ".parquet" in message:
        return DamagedTraceError(
            "A table of the archive cannot be read.",
            _message(message),
            "See what is damaged: traceviz archive verify ARCHIVE.",
        )
    return UsageError(WRONG, _message(message))
