"""``traceviz archive query``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceviz.cli.boundary import say
from traceviz.cli.options import PAGE_WIDTH, WIDTH_HELP, Size, page_width, progress_bar_on_stderr, wants_color, write
from traceviz.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from traceviz.archive.query.engine import Engine
    from traceviz.archive.query.shards import RemoteEngine

FORMATS = ("terminal", "csv", "json", "markdown", "parquet")
_FOR_PEOPLE = frozenset({"terminal", "markdown"})
_ROWS_FOR_PEOPLE = 50
_PIECE = 1 << 20
_IN_MEMORY = 64 << 20
"""Characters of an answer that is kept in memory until it is complete; longer ones go through a temporary file."""

_EXAMPLES = """\b
Examples:
  traceviz archive query runs "SELECT gpu, count(*) FROM traces GROUP BY gpu"
  traceviz archive query runs --scheduler tcp://host:8786 \\
    --per-part "SELECT name, sum(dur_ns) AS ns FROM kernels GROUP BY name" \\
    "SELECT name, sum(ns) AS total_ns FROM parts GROUP BY name"
"""


@click.command(epilog=_EXAMPLES, short_help="Query all traces at once, in SQL.")
@click.argument("archive", metavar="ARCHIVE")
@click.argument("sql", metavar="SQL")
@click.option(
    *("--format", "format_name"),
    default="terminal",
    metavar="NAME",
    help="terminal, csv, json, markdown or parquet (default: terminal).",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.option("--force", is_flag=True, help="Replace an existing output file.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Rows at most (default: 50 in terminal and markdown, else all)."
)
@click.option("--memory", type=Size(), help="Memory to use before spilling to disk, e.g. 16GB (default: half of all).")
@click.option("--per-part", metavar="SQL", help="Run this on every part of the traces; SQL then adds up.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="Processes for --per-part, else threads (default: one per core)."
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers answer, e.g. tcp://host:8786.")
@click.option("--width", type=PAGE_WIDTH, help=WIDTH_HELP)
def query(
    archive: str,
    sql: str,
    *,
    format_name: str,
    output: Path | None,
    force: bool,
    limit: int | None,
    memory: int | None,
    per_part: str | None,
    workers: int | None,
    scheduler: str | None,
    width: int | None,
) -> None:
    """Query ARCHIVE in SQL: one SELECT over the tables of all traces (kernels, cuda_api, steps ...) and the catalogue.

    SQL is DuckDB's; - reads it from stdin. Every table has trace_id. catalogue has a row for each trace and rank,
    traces a row for each trace; findings and tags are separate views.

    SHOW TABLES lists the tables, DESCRIBE kernels the columns of a table. A query reads only the archive and changes
    no trace.

    With --scheduler, one worker of a Dask cluster answers the whole SQL. To divide the work, --per-part counts in every
    part of the traces, and SQL adds up the table `parts` of these counts.
    """
    from traceviz.archive.query import answer as answers
    from traceviz.core.files import check_file_free

    if format_name not in FORMATS:
        raise UsageError.unknown("output format", format_name, FORMATS)
    if output is not None:
        check_file_free(output, force=force)
    elif format_name == "parquet":
        raise UsageError("Parquet cannot be printed.", fix="Name a file: -o answer.parquet.")
    text = sys.stdin.read() if sql == "-" else sql
    most = (limit or _ROWS_FOR_PEOPLE) + 1 if format_name in _FOR_PEOPLE else limit
    with _engine(archive, most, per_part=per_part, workers=workers, scheduler=scheduler, memory=memory) as engine:
        if format_name in _FOR_PEOPLE:
            with engine.answer(text) as batches:
                rows = answers.leading(batches, limit or _ROWS_FOR_PEOPLE)
            page = (
                answers.page(rows, width or page_width(), color=wants_color(output))
                if format_name == "terminal"
                else ""
            )
            write(page or answers.markdown(rows), output, force=force)
        else:
            with engine.answer(text) as batches:
                limited = batches if limit is None else answers.first(batches, limit)
                _export(limited, format_name, output, force=force)
        if missing := engine.missing:
            named = ", ".join(missing[:3]) + ", ..." * (len(missing) > 3)
            lack = f"{len(missing):,} {'trace is' if len(missing) == 1 else 'traces are'}"
            say(f"{lack} in the catalogue and not in the archive ({named}): see traceviz archive verify.")


@contextmanager
def _engine(
    archive: str,
    most: int | None,
    *,
    per_part: str | None,
    workers: int | None,
    scheduler: str | None,
    memory: int | None,
) -> Iterator[Engine | RemoteEngine]:
    """Yield the engine for the answer: an engine here, an engine over the results of workers, or a worker.

    Raises:
        UsageError: there is no archive, or both workers and a scheduler are named.
    """
    from traceviz.archive.query.engine import Engine
    from traceviz.archive.query.shards import RemoteEngine, engine_over_parts
    from traceviz.archive.runners.choose import runner_for
    from traceviz.archive.storage.store import Store

    store = Store.at(archive)
    if per_part is not None:
        runner = runner_for(workers, scheduler, store)
        with ExitStack() as stack:
            with progress_bar_on_stderr() as progress:  # removed before anything is printed
                over_parts = engine_over_parts(store, per_part, runner, memory=memory, progress=progress)
                engine = stack.enter_context(over_parts)
            yield engine
    elif scheduler is not None:
        yield RemoteEngine(store, runner_for(workers, scheduler, store), most=most, memory=memory)
    else:
        with Engine(store, memory=memory, threads=workers) as engine:
            yield engine


def _export(batches: pa.RecordBatchReader, format_name: str, output: Path | None, *, force: bool) -> None:
    """Write the answer in a machine-readable format: the file appears when complete, and stdout gets all or nothing."""
    from traceviz.archive.query import answer as answers
    from traceviz.core.files import new_file

    pieces = answers.csv(batches) if format_name == "csv" else answers.as_json(batches)
    if output is None:
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="") as whole:
            whole.writelines(pieces)
            whole.seek(0)
            while piece := whole.read(_PIECE):
                write(piece, None, force=False)
        return
    with new_file(output, force=force) as temporary:
        if format_name == "parquet":
            answers.parquet(batches, temporary)
            return
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
