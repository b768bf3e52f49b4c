"""``traceviz archive``: many traces as one collection."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceviz.cli.archive.options import PageOptions, page_options, where_option
from traceviz.cli.archive.query import query
from traceviz.cli.archive.report import report, trend
from traceviz.cli.boundary import say
from traceviz.cli.options import Size, SourceName, in_lean_process, print_lines, progress_bar_on_stderr
from traceviz.core.errors import GateFailedError, UnknownFormatError, UsageError
from traceviz.core.process.interrupts import Stopped
from traceviz.core.sanitize import bounded, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from traceviz.archive.ingest.add import Added, Quarantined
    from traceviz.archive.sources.hashes import Refused
    from traceviz.archive.storage.store import Store
    from traceviz.archive.upkeep.verify import Repaired, Verified
    from traceviz.report import Report

_FORMATS = ("terminal", "csv", "html", "json", "markdown")
_INTERRUPTED = "Interrupted. Traces added so far stay; run the same command to go on."
_LISTED = 20
"""Traces of a kind that are named at the end of an add; further ones are only counted."""


class _Commands(click.Group):
    """Commands in the order of use. They all make Arrow tables, which does not need pandas."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, which will run without pandas."""
        assert cmd.callback is not None
        cmd.callback = in_lean_process(cmd.callback)
        super().add_command(cmd, name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of declaration."""
        return list(self.commands)


@click.group(cls=_Commands)
def archive() -> None:
    """Keep many traces as one collection, and query it.

    ARCHIVE is a folder, or a URL such as s3://bucket/prefix: tables of every trace, its report, and a catalogue with a
    row for each trace and rank. The first `add` creates it.
    """


_page = page_options("terminal, csv, html, json or markdown (default: terminal).")


@archive.command(short_help="Add traces: files, folders, .zip, .tar, URLs.")
@click.argument("location", metavar="ARCHIVE")
@click.argument("sources", nargs=-1, required=True, type=SourceName(), metavar="SOURCE...")
@click.option("--workers", type=click.IntRange(min=1), help="Processes that convert (default: one per core).")
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers convert, e.g. tcp://host:8786.")
@click.option("--keep-private", is_flag=True, help="Store private data too: host names, command lines, paths.")
@click.option(
    "--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag to find these traces by; may be repeated."
)
@click.option("--job", metavar="NAME", help="Job whose ranks these traces are.")
@click.option("--retry", is_flag=True, help="Try again to read quarantined traces.")
@click.option("--max-size", type=Size(), help="Largest JSON to read, by its unpacked size, e.g. 200GB.")
@click.option(
    "--max-memory", type=Size(), help="Memory limit of a worker for reading, e.g. 8GB (default: all free memory)."
)
@click.option("--strict", is_flag=True, help="Exit with 1 where a trace could not be added.")
def add(
    location: str,
    sources: tuple[str, ...],
    *,
    workers: int | None,
    scheduler: str | None,
    keep_private: bool,
    tags: tuple[str, ...],
    job: str | None,
    retry: bool,
    max_size: int | None,
    max_memory: int | None,
    strict: bool,
) -> None:
    """Add traces: files, folders, patterns, .zip, .tar, .tar.gz and .tar.zst files, URLs; whatever is in them.

    A trace is not added twice, whatever its name. A trace that cannot be read is quarantined with the reason. Private
    data is removed first. An interrupted add continues when it is started again.
    """
    from traceviz.archive.ingest.add import add as add_traces
    from traceviz.archive.ingest.ingest import IngestOptions
    from traceviz.archive.runners.choose import runner_for
    from traceviz.archive.storage.store import Store
    from traceviz.collectors.run.plan import parse_tags

    store = Store.at(location)
    options = IngestOptions(keep_private, parse_tags(tags), job, max_size=max_size, max_memory=max_memory)
    runner = runner_for(workers, scheduler, store, sources)
    try:
        with progress_bar_on_stderr() as progress:
            done = add_traces(store, sources, options, runner, retry=retry, progress=progress)
    except Stopped as stopped:
        stopped.message = _INTERRUPTED
        raise
    except KeyboardInterrupt:
        say(_INTERRUPTED)
        click.get_current_context().exit(Stopped(signal.SIGINT).exit_code)
    print_lines(_describe_add(location, done))
    if not done.has_traces:
        why = "All files were refused." if done.refused else "They hold other files, or nothing."
        raise UnknownFormatError("No trace was found in the sources.", why, "Name traces, or folders of them.")
    if strict and not done.is_complete:
        raise GateFailedError("Not every trace was added.", "--strict requires all of them.")


@archive.command("list", short_help="List traces with their figures and verdicts.")
@click.argument("location", metavar="ARCHIVE")
@where_option
@click.option("--columns", metavar="NAMES", help="Columns of the catalogue, separated by commas; `all` for all.")
@click.option("--sort", metavar="NAMES", help="Columns to sort by; -NAME: largest first, e.g. --sort=-input_share.")
@click.option("--limit", type=click.IntRange(min=1), help="Rows at most.")
@_page
def list_traces(
    location: str,
    *,
    condition: str | None,
    columns: str | None,
    sort: str | None,
    limit: int | None,
    page: PageOptions,
) -> None:
    """List traces, a row for each rank."""
    from traceviz.archive.catalogue.columns import COLUMNS
    from traceviz.archive.catalogue.listing import listing
    from traceviz.archive.query.where import where

    shown = tuple(column.name for column in COLUMNS) if columns == "all" else _names(columns)
    if columns is not None and not shown:
        raise UsageError("--columns names no column.", fix="Name some, separated by commas, or leave it out.")
    store, rows = _open(location)
    _print(listing(store, where(rows, condition or None), shown, _names(sort), limit), page)


@archive.command(short_help="Print the report of a trace.")
@click.argument("location", metavar="ARCHIVE")
@click.argument("trace_id", metavar="ID")
@click.option("--all", "everything", is_flag=True, help="All sections, not only the first screen.")
@click.option("--top", type=click.IntRange(min=1), help="Rows per table (default: 10, with small ones folded).")
@page_options("terminal, csv, html, json or markdown (default: terminal).", has_sections=True)
def show(location: str, trace_id: str, *, everything: bool, top: int | None, page: PageOptions) -> None:
    """Print the report of the trace ID, saved when the trace was added; the first digits are enough.

    It is the report that `traceviz report` prints for the trace.
    """
    from traceviz.archive.catalogue.listing import saved_report
    from traceviz.archive.query.where import full_id

    store, rows = _open(location)
    found_id = full_id(rows, trace_id)
    row = next(row for row in rows.to_dicts() if row["trace_id"] == found_id)
    _print(saved_report(store, row), page, top, first_screen=not everything)


@archive.command(short_help="Check that every file is there and intact.")
@click.argument("location", metavar="ARCHIVE")
@click.option("--quick", is_flag=True, help="Compare names and sizes only, not contents.")
@click.option("--repair", is_flag=True, help="Repair what can be repaired without the sources.")
def verify(location: str, *, quick: bool, repair: bool) -> None:
    """Compare every file with its manifest, and all traces with the catalogue.

    Exits with 1 where something is wrong, and says what. --repair rebuilds rows of the catalogue, removes traces with a
    missing or damaged file (adding their sources brings them back), and removes leftover files.
    """
    from traceviz.archive.storage.store import Store
    from traceviz.archive.upkeep import verify as verifying

    store = Store.at(location)
    with progress_bar_on_stderr() as progress:
        verified = verifying.verify(store, quick=quick, progress=progress)
    print_lines(_describe_check(location, verified))
    if repair and verified.faults:
        mended = verifying.repair(store, verified.faults)
        print_lines(_describe_repair(mended))
        verified = verifying.verify(store, quick=quick)
    if verified.faults:
        fix = "" if repair else f"Repair it: traceviz archive verify --repair {_called(location)}"
        raise GateFailedError(f"{_called(location)} has {_count(len(verified.faults), 'fault')}.", fix=fix)


@archive.command(short_help="Remove traces.")
@click.argument("location", metavar="ARCHIVE")
@click.argument("trace_ids", nargs=-1, metavar="[ID]...")
@where_option
def remove(location: str, trace_ids: tuple[str, ...], condition: str | None) -> None:
    """Remove the traces ID..., or those that meet a condition, without asking. This cannot be undone."""
    from traceviz.archive.query.where import select_ids
    from traceviz.archive.upkeep.removal import remove as remove_traces

    store, rows = _open(location)
    count = remove_traces(store, select_ids(rows, trace_ids, condition))
    print_lines([f"{_called(location)}: {_count(count, 'trace')} removed."])


@archive.command(short_help="Copy traces, or one table of all of them, out of the archive.")
@click.argument("location", metavar="ARCHIVE")
@click.argument("trace_ids", nargs=-1, metavar="[ID]...")
@where_option
@click.option("--table", metavar="NAME", help="Write this table of all these traces as one Parquet file.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder or file to write.")
@click.option("--force", is_flag=True, help="Replace what an earlier export wrote.")
def export(
    location: str, trace_ids: tuple[str, ...], condition: str | None, table: str | None, output: Path, *, force: bool
) -> None:
    """Copy traces to folders OUTPUT/ID, which `traceviz report` reads; or one table of all of them to a file."""
    from traceviz.archive.catalogue.segments import ready
    from traceviz.archive.query.where import select_ids
    from traceviz.archive.upkeep.export import export_folders, export_table

    store, rows = _open(location)
    ids = select_ids(ready(rows) if condition else rows, trace_ids, condition)
    with progress_bar_on_stderr() as progress:
        if table is None:
            folders = export_folders(store, rows, ids, output, force=force, progress=progress)
            exported = _count(len(folders), "trace")
        else:
            count = export_table(store, rows, ids, table, output, force=force, progress=progress)
            exported = f"{_count(count, 'row')} of {table} of {_count(len(ids), 'trace')}"
    print_lines([f"{output}: {exported}."])


for _command in (query, report, trend):
    archive.add_command(_command)


def _open(location: str) -> tuple[Store, pl.DataFrame]:
    """Open an archive, and return it with the rows of its catalogue, without those of removed traces.

    Raises:
        UsageError: there is no archive.
    """
    from traceviz.archive.catalogue.segments import read_kept
    from traceviz.archive.storage.store import Store

    store = Store.at(location)
    return store, read_kept(store)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for part in (text or "").split(",") if (name := part.strip()))


def _print(report: Report, page: PageOptions, top: int | None = None, *, first_screen: bool = False) -> None:
    """Print a document in one of the formats that all documents have.

    Raises:
        UsageError: there is no such format.
    """
    if page.format_name not in _FORMATS:
        raise UsageError.unknown("output format", page.format_name, _FORMATS)
    page.print(report, top, first_screen=first_screen)


# Texts of an add and a check


def _describe_add(location: str, done: Added) -> list[str]:
    """Return the results of an add as lines, and the traces that could not be added, by name with the reason."""
    parts = [_count(done.added, "trace") + " added", f"{done.known:,} known", f"{done.mended:,} mended"]
    parts += [f"{len(done.quarantined) + len(done.still_quarantined):,} quarantined", f"{len(done.refused):,} refused"]
    counts = [parts[0], *(part for part in parts[1:] if not part.startswith("0 "))]
    lines = [f"{_called(location)}: {', '.join(counts)}."]
    if done.taken_up:
        taken_up = _count(done.taken_up, "trace")
        lines.append(f"  {taken_up} of them had been converted by another add, or by one that was interrupted.")
    if done.known_private:
        private = f"{done.known_private:,} of them {'was' if done.known_private == 1 else 'were'}"
        lines.append(f"  {private} added with --keep-private, and what is private is still in there.")
        lines.append(
            f"  To have it removed: traceviz archive remove {_called(location)} --where private; then add again."
        )
    if done.left_out:
        them = "it" if len(done.left_out) == 1 else "them"
        lines.append(f"  left out: {_count(len(done.left_out), 'report')} whose export lies beside {them}.")
    if done.ignored:
        ignored = _count(done.ignored, "other file")
        lines.append(f"  left out: {ignored}, which {'is no trace' if done.ignored == 1 else 'are no traces'}.")
    if done.removed:
        lines.append("Removed since it is private:")
        lines += [f"  {count:>7,}  {kind}" for kind, count in done.removed.items()]
    lines += _list_quarantined("Quarantined: not read, and kept out", done.quarantined)
    lines += _list_quarantined("Quarantined before, not tried again (--retry does)", done.still_quarantined)
    lines += _list_refused(done.refused)
    return lines


def _list_quarantined(title: str, traces: Sequence[Quarantined]) -> list[str]:
    lines = [
        line
        for trace in traces[:_LISTED]
        for line in (f"  {_line(trace.source)} ({trace.trace_id})", f"    {_line(trace.error)}")
    ]
    return _add_title(title, lines, len(traces))


def _list_refused(refused: Sequence[Refused]) -> list[str]:
    lines = [
        line for item in refused[:_LISTED] for line in (f"  {_line(item.name)}", f"    {item.code}: {_line(item.why)}")
    ]
    return _add_title("Refused: not read", lines, len(refused))


def _add_title(title: str, lines: list[str], count: int) -> list[str]:
    more = [f"  and {count - _LISTED:,} more"] if count > _LISTED else []
    return [f"{title}:", *lines, *more] if lines else []


def _called(location: str) -> str:
    """Return the name that the user gave the archive, without user and password."""
    from traceviz.archive.storage.addresses import display_address

    return display_address(location)


def _line(text: str) -> str:
    """Return foreign text on one line, without characters that control the terminal."""
    return sentence(bounded(text))


def _describe_check(location: str, verified: Verified) -> list[str]:
    read = f", {verified.bytes:,} bytes compared" if verified.bytes else ""
    traces, faults = _count(verified.traces, "trace"), _count(len(verified.faults), "fault")
    lines = [f"{_called(location)}: {traces} looked at{read}, {faults}."]
    lines += [f"  {fault.kind}: {_line(fault.name)}: {_line(fault.why)}" for fault in verified.faults]
    if count := len(verified.arriving):
        is_are = "is" if count == 1 else "are"
        lines.append(f"  {_count(count, 'trace')} {is_are} not in the catalogue yet: an add at work will list them.")
    return lines


def _describe_repair(mended: Repaired) -> list[str]:
    lost = [f"  {_line(source)} ({trace_id})" for trace_id, source in mended.lost[:_LISTED]]
    title = "Taken out of the archive: add their sources again"
    return [f"{_count(mended.count, 'fault')} mended.", *_add_title(title, lost, len(mended.lost))]


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
