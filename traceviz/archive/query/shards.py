"""Queries answered by workers: in two halves (over parts of the traces, then over their results), or as a whole.

::

    --per-part  SELECT framework, name, sum(dur_ns) AS ns FROM cuda_api JOIN traces USING (trace_id) GROUP BY ALL
    SQL         SELECT framework, name, sum(ns) AS ns FROM parts GROUP BY ALL ORDER BY ns DESC

    worker 1: traces 1 to 50    --.
    worker 2: traces 51 to 100  --+-- work/query-.../*.parquet --> table `parts` --> SQL here
    worker 1: traces 101 to 150 --'

The first half is correct if it does not relate traces, or if its results can be combined. Counts, sums, minima and
maxima can; a median cannot. The query text does not show this, so the user gives both halves. Workers read the tables
near the archive, and send back only their results.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.catalogue.columns import CATALOGUE
from traceviz.archive.query.answer import first, parquet
from traceviz.archive.query.engine import MEMORY_SHARE, ROWS, Engine, explain_errors, machine_memory
from traceviz.archive.query.views import catalogue_table
from traceviz.archive.runners.base import Runner, RunnerError
from traceviz.archive.runners.choose import run_one
from traceviz.archive.storage.store import WORK, Store
from traceviz.core.errors import WorkerError
from traceviz.core.process.cores import usable_cores
from traceviz.parsers.base import Progress, silent

PARTS = "parts"
"""Table of the workers' results."""
TRACES_PER_PART = 50
BYTES_PER_PART = 256 << 20
"""Maximum size of the sources of a part, in bytes. Larger sources make parts of fewer traces."""
_ANSWER = "answer.parquet"
_ROWS = "catalogue.parquet"
_HUGE = pa.decimal128(38, 0)
"""Arrow type of sums of whole numbers: 128 bits."""


@dataclass(frozen=True, slots=True)
class PartQuery:
    """A query for one worker.

    Args:
        store: The archive.
        query: The query.
        folder: Folder of the answer, below ``work``.
        number: Position of the answer among the parts.
        ids: Traces to query, with the catalogue rows stored in ``folder``; ``None``: the whole archive in its current
            state.
        most: Maximum number of rows in the answer; ``None``: all.
        memory: Memory limit in bytes before the engine spills to disk; by default this core's share of the machine.
    """

    store: Store
    query: str
    folder: str
    number: int = 0
    ids: tuple[str, ...] | None = None
    most: int | None = None
    memory: int | None = None

    @property
    def answer(self) -> tuple[str, str, str]:
        """Folder of the answer in the archive."""
        return WORK, self.folder, f"{self.number:06}"


class PartsEngine(Engine):
    """An engine with the answers of the parts as an additional table."""

    def __init__(
        self,
        store: Store,
        rows: pl.DataFrame,
        answers: pa.RecordBatchReader,
        missing: Sequence[str] = (),
        memory: int | None = None,
    ) -> None:
        super().__init__(store, rows, memory=memory)
        self._missing = frozenset(missing)
        names = ((field, '"' + field.name.replace('"', '""') + '"') for field in answers.schema)
        columns = ", ".join(f"{name}::HUGEINT AS {name}" if field.type == _HUGE else name for field, name in names)
        with explain_errors():
            self._connection.register("given", answers)
            self._connection.execute(f"CREATE TABLE {PARTS} AS SELECT {columns} FROM given")  # noqa: S608 (quoted)
            self._connection.unregister("given")

    @property
    def missing(self) -> tuple[str, ...]:
        """Ids of ready traces of the catalogue whose folders were missing during the query."""
        return tuple(sorted({*super().missing, *self._missing}))


@contextmanager
def engine_over_parts(
    store: Store,
    query: str,
    runner: Runner,
    *,
    rows: pl.DataFrame | None = None,
    size: int = TRACES_PER_PART,
    memory: int | None = None,
    progress: Progress = silent,
) -> Iterator[Engine]:
    """Yield an engine with the additional table ``parts``: the answers of all parts, in the order of trace ids.

    Args:
        store: The archive.
        query: The query on each part.
        runner: Runner that queries the parts.
        rows: Rows of the catalogue of the traces to query; by default all.
        size: Maximum number of traces in a part. It is the same for all runners, so the answer is, too.
        memory: Memory limit of each process in bytes, before it spills to disk.
        progress: Receives progress.

    Raises:
        UsageError: there is no archive, or the query cannot be run.
        WorkerError: the worker of a part died.
        OutputError: the archive, which stores the answers, cannot be written.
    """
    schema = _schema(store, query)
    known = catalogue.read(store) if rows is None else rows
    with _folder(store) as folder:
        parts = [
            PartQuery(store, query, folder, number, ids, memory=memory)
            for number, ids in enumerate(divide(known, size))
        ]
        buffer = io.BytesIO()  # a snapshot: all parts see the same archive during adds
        pq.write_table(catalogue_table(known), buffer, compression="zstd")
        store.write(buffer.getvalue(), WORK, folder, _ROWS)
        missing = _ask(parts, runner, progress)
        engine = PartsEngine(store, known, _read_answers(parts, schema), missing, memory)
    with engine:
        yield engine


class RemoteEngine:
    """Answers queries as :class:`traceviz.archive.query.engine.Engine` does. One worker answers a whole query.

    The worker reads the tables and the catalogue, and sends back only the answer.

    Args:
        store: The archive.
        runner: Runner with the workers.
        most: Maximum number of rows in an answer; ``None``: all.
        memory: Memory limit of the worker in bytes, before it spills to disk.
    """

    def __init__(self, store: Store, runner: Runner, *, most: int | None = None, memory: int | None = None) -> None:
        self._store = store
        self._runner = runner
        self._most = most
        self._memory = memory
        self.missing: tuple[str, ...] = ()

    @contextmanager
    def answer(self, text: str) -> Iterator[pa.RecordBatchReader]:
        """Yield the answer to a query in batches.

        Raises:
            UsageError: there is no archive, or the query cannot be run.
            DamagedTraceError: a table of the archive cannot be read.
            WorkerError: there is no such cluster, or the worker died.
            OutputError: the archive, which stores the answer, cannot be written.
        """
        schema = _schema(self._store, text)
        with _folder(self._store) as folder:
            request = PartQuery(self._store, text, folder, most=self._most, memory=self._memory)
            self.missing = run_one(self._runner, answer_one, request)
            yield _read_answers([request], schema)


def answer_one(request: PartQuery) -> tuple[str, ...]:
    """Run a query, and write the answer into the archive; runs on a worker of the runner.

    Returns:
        Ids of missing traces.

    Raises:
        UsageError: the query cannot be run.
        DamagedTraceError: a table of the archive cannot be read.
        OutputError: the archive cannot be written.
    """
    rows = None
    if request.ids is not None:
        stored = io.BytesIO(request.store.read(WORK, request.folder, _ROWS))
        rows = _frame(pq.read_table(stored, filters=[("trace_id", "in", request.ids)]))
    memory = request.memory or int(machine_memory() * MEMORY_SHARE / usable_cores())
    threads = None if request.ids is None else 1  # parts run concurrently
    with Engine(request.store, rows, memory=memory, threads=threads) as engine:
        with engine.answer(request.query) as batches, request.store.new_folder(*request.answer) as folder:
            wanted_batches = batches if request.most is None else first(batches, request.most)
            parquet(wanted_batches, folder / _ANSWER, narrow=False)
        return engine.missing


def divide(rows: pl.DataFrame, size: int = TRACES_PER_PART, most_bytes: int = BYTES_PER_PART) -> list[tuple[str, ...]]:
    """Divide the ids of all ready traces, in order, into parts.

    Args:
        rows: Rows of the catalogue.
        size: Maximum number of traces in a part.
        most_bytes: Maximum bytes of their sources, unless one trace exceeds it.
    """
    traces = catalogue.ready(rows).select("trace_id", "source_bytes").unique("trace_id").sort("trace_id")
    parts: list[list[str]] = []
    held = 0
    for trace_id, size_of_source in traces.iter_rows():
        held += size_of_source or 0
        if not parts or len(parts[-1]) == size or held > most_bytes:
            parts.append([])
            held = size_of_source or 0
        parts[-1].append(trace_id)
    return [tuple(part) for part in parts]


def _schema(store: Store, query: str) -> pa.Schema:
    """Return the columns of the answer. A wrong query is rejected before it is sent to a worker.

    Raises:
        UsageError: there is no archive, or the query cannot be run.
    """
    with Engine(store, _frame(CATALOGUE.empty_table())) as engine:
        return engine.schema(query)


@contextmanager
def _folder(store: Store) -> Iterator[str]:
    """Yield the name of a folder in ``work``, which is removed at the end."""
    name = f"query-{uuid.uuid4().hex}"
    try:
        yield name
    finally:
        store.remove(WORK, name)


def _frame(table: pa.Table) -> pl.DataFrame:
    rows = pl.from_arrow(table)
    assert isinstance(rows, pl.DataFrame)
    return rows


def _ask(parts: Sequence[PartQuery], runner: Runner, progress: Progress) -> list[str]:
    """Run all parts; return the ids of missing traces.

    Raises:
        TracevizError: a part raised it.
        WorkerError: the worker of a part died.
    """
    missing: list[str] = []
    with closing(runner.map(answer_one, parts)) as results:
        for done, (part, result) in enumerate(results, start=1):
            if isinstance(result, RunnerError):
                ids = part.ids or ("",)
                raise result.cause or WorkerError(
                    f"{len(ids)} traces from {ids[0]} on cannot be queried.", result.message
                )
            missing += result
            progress("querying traces", done, len(parts))
    return missing


def _read_answers(parts: Sequence[PartQuery], schema: pa.Schema) -> pa.RecordBatchReader:
    """Read the answers of all parts, one after another."""

    def batches() -> Iterator[pa.RecordBatch]:
        for part in parts:
            with part.store.open(*part.answer, _ANSWER) as file:
                for batch in pq.ParquetFile(file).iter_batches(ROWS):
                    yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())
