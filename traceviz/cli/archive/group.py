"""``traceviz archive``: many traces as one collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceviz.cli.archive.query import query
from traceviz.cli.archive.report import report, trend
from traceviz.cli.options import Size, page_width, progress_bar_on_stderr, wants_color, write
from traceviz.errors import GateFailedError, UnknownFormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from traceviz.archive.ingest.add import Added, Quarantined
    from traceviz.archive.sources.item import Refused
    from traceviz.archive.storage.store import Store
    from traceviz.archive.upkeep.verify import Repaired, Verified
    from traceviz.report import Report

_INTERRUPTED = 130
_LISTED = 20
"""So many traces of a kind are named at the end of an add; of more, the others are counted."""


class _InOrder(click.Group):
    """Commands in the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order of declaration."""
        return list(self.commands)


@click.group(cls=_InOrder)
def archive() -> None:
    """Keep many traces as one collection, and ask it.

    ARCHIVE is a folder, or a URL such as s3://bucket/prefix: tables of every trace, its report, and a catalogue with a
    row for each trace and rank. The first `add` makes it.
    """


def _where(command: Callable[..., Any]) -> Callable[..., Any]:
    condition = click.option(
        "--where", "condition", metavar="SQL", help="Only traces of which this is true, e.g. \"format = 'kineto'\"."
    )
    return condition(command)


def _page(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of commands that print a document."""
    names = "terminal, csv, json or markdown."
    name = click.option("--format", "format_name", default="terminal", metavar="NAME", help=names)
    output = click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file, not to stdout.")
    force = click.option("--force", is_flag=True, help="Replace an existing output.")
    width = click.option("--width", type=click.IntRange(min=40), help="Columns of the page.")
    return name(output(force(width(command))))


@archive.command(short_help="Add traces: files, folders, .zip, .tar, URLs.")
@click.argument("place", metavar="ARCHIVE")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--workers", type=click.IntRange(min=1), help="Processes that convert (one for every core).")
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers convert, e.g. tcp://host:8786.")
@click.option("--keep-private", is_flag=True, help="Store what is private, too: names of hosts, command lines, paths.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A fact to find these traces by; repeatable.")
@click.option("--job", metavar="NAME", help="Job whose ranks these traces are.")
@click.option("--retry", is_flag=True, help="Try traces again that could not be read before.")
@click.option("--max-size", type=Size(), help="The longest JSON to read, unpacked, e.g. 200GB.")
@click.option("--strict", is_flag=True, help="Exit with 1 where a trace could not be added.")
def add(place: str, sources: tuple[str, ...], *, tags: tuple[str, ...], strict: bool, **options: Any) -> None:
    """Add traces: files, folders, patterns, .zip, .tar, .tar.gz and .tar.zst files, URLs; whatever is in them.

    A trace that is there is not added twice, whatever its name. One that cannot be read is quarantined with the reason.
    What is private is removed first. An add that was interrupted goes on where it was.
    """
    from traceviz.archive.ingest.add import add as add_traces
    from traceviz.archive.ingest.ingest import IngestOptions
    from traceviz.archive.runners.choose import runner_for
    from traceviz.archive.storage.store import Store
    from traceviz.collectors.run.plan import parse_tags

    store = Store.at(place)
    told = IngestOptions(options["keep_private"], parse_tags(tags), options["job"], max_size=options["max_size"])
    runner = runner_for(options["workers"], options["scheduler"], store, sources)
    try:
        with progress_bar_on_stderr() as progress:
            done = add_traces(store, sources, told, runner, retry=options["retry"], progress=progress)
    except KeyboardInterrupt:
        click.echo("Interrupted. What was added until now stays; add again to go on.", err=True)
        click.get_current_context().exit(_INTERRUPTED)
    click.echo(_summary(place, done), nl=False)
    if not done.has_traces:
        why = "All of them were refused." if done.refused else "They hold other files, or nothing."
        raise UnknownFormatError("No trace was found in the sources.", why, "Name traces, or folders of them.")
    if strict and not done.is_complete:
        raise GateFailedError("Not every trace was added.", "--strict asks for all of them.")


@archive.command("list", short_help="List traces with their figures and verdicts.")
@click.argument("place", metavar="ARCHIVE")
@_where
@click.option("--columns", metavar="NAMES", help="Columns of the catalogue, separated by commas; `all` for all.")
@click.option(
    "--sort", metavar="NAMES", help="Columns to sort by; -NAME: largest first. A last --: --sort=-input_share."
)
@click.option("--limit", type=click.IntRange(min=1), help="Most rows.")
@_page
def list_traces(
    place: str, condition: str | None, columns: str | None, sort: str | None, limit: int | None, **options: Any
) -> None:
    """List traces, a row for each rank."""
    from traceviz.archive.catalogue.columns import COLUMNS
    from traceviz.archive.catalogue.listing import listing

    shown = tuple(one.name for one in COLUMNS) if columns == "all" else _names(columns)
    if columns is not None and not shown:
        raise UsageError("--columns names no column.", fix="Name some, separated by commas, or leave it out.")
    store, rows = _opened(place)
    _print(listing(store, _filtered(rows, condition), shown, _names(sort), limit), **options)


@archive.command(short_help="Print the report of a trace.")
@click.argument("place", metavar="ARCHIVE")
@click.argument("trace_id", metavar="ID")
@click.option("--section", "sections", multiple=True, metavar="SLUG", help="Only this section; may be repeated.")
@click.option("--top", type=click.IntRange(min=1), help="Rows per table (10, small ones folded).")
@_page
def show(place: str, trace_id: str, sections: tuple[str, ...], top: int | None, **options: Any) -> None:
    """Print the report of the trace ID, as it was when the trace was added; its first digits are enough.

    It is what `traceviz report` says of the trace.
    """
    from traceviz.archive.catalogue.listing import saved_report
    from traceviz.archive.query.where import full_id

    store, rows = _opened(place)
    wanted = full_id(rows, trace_id)
    row = next(row for row in rows.to_dicts() if row["trace_id"] == wanted)
    _print(saved_report(store, row), sections=sections or None, top=top, **options)


@archive.command(short_help="Check that everything is there and whole.")
@click.argument("place", metavar="ARCHIVE")
@click.option("--quick", is_flag=True, help="Compare names and sizes only, not contents.")
@click.option("--repair", is_flag=True, help="Mend what can be mended without the sources.")
def verify(place: str, *, quick: bool, repair: bool) -> None:
    """Compare every file with its manifest, and all traces with the catalogue.

    Exits with 1 where something is wrong, and says what. --repair makes rows of the catalogue again, takes out traces
    of which a file is missing or damaged (adding their sources brings them back), and removes what is left over.
    """
    from traceviz.archive.storage.store import Store
    from traceviz.archive.upkeep import verify as verifying

    store = Store.at(place)
    with progress_bar_on_stderr() as progress:
        found = verifying.verify(store, quick=quick, progress=progress)
    click.echo(_verified(place, found), nl=False)
    if repair and found.faults:
        mended = verifying.repair(store, found.faults)
        click.echo(_repaired(mended), nl=False)
        found = verifying.verify(store, quick=quick)
    if found.faults:
        fix = "" if repair else f"Mend it: traceviz archive verify --repair {_called(place)}"
        raise GateFailedError(f"{_called(place)} has {_count(len(found.faults), 'fault')}.", fix=fix)


@archive.command(short_help="Take traces out.")
@click.argument("place", metavar="ARCHIVE")
@click.argument("trace_ids", nargs=-1, metavar="[ID]...")
@_where
def remove(place: str, trace_ids: tuple[str, ...], condition: str | None) -> None:
    """Remove the traces ID..., or those of a condition. Nothing is asked, and nothing can be taken back."""
    from traceviz.archive.query.where import select_ids
    from traceviz.archive.upkeep.removal import remove as remove_traces

    store, rows = _opened(place)
    count = remove_traces(store, select_ids(rows, trace_ids, condition))
    click.echo(f"{_called(place)}: {_count(count, 'trace')} removed.")


@archive.command(short_help="Copy traces out, or one table of all of them.")
@click.argument("place", metavar="ARCHIVE")
@click.argument("trace_ids", nargs=-1, metavar="[ID]...")
@_where
@click.option("--table", metavar="NAME", help="Write this table of all these traces as one Parquet file.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder to write to, or file.")
@click.option("--force", is_flag=True, help="Replace what an earlier export wrote.")
def export(
    place: str, trace_ids: tuple[str, ...], condition: str | None, table: str | None, output: Path, *, force: bool
) -> None:
    """Copy traces as traceviz folders OUTPUT/ID, which `traceviz report` reads; or one table of all of them."""
    from traceviz.archive.query.where import select_ids
    from traceviz.archive.upkeep.export import export_folders, export_table

    store, rows = _opened(place)
    ids = select_ids(_ready(rows) if condition else rows, trace_ids, condition)
    with progress_bar_on_stderr() as progress:
        if table is None:
            folders = export_folders(store, rows, ids, output, force=force, progress=progress)
            said = _count(len(folders), "trace")
        else:
            count = export_table(store, rows, ids, table, output, force=force, progress=progress)
            said = f"{_count(count, 'row')} of {table} of {_count(len(ids), 'trace')}"
    click.echo(f"{output}: {said}.")


for _command in (query, report, trend):
    archive.add_command(_command)


def _opened(place: str) -> tuple[Store, pl.DataFrame]:
    """An archive and the rows of its catalogue that count, without those of traces that were removed.

    Raises:
        UsageError: there is no archive.
    """
    import polars as pl

    from traceviz.archive.catalogue import segments as catalogue
    from traceviz.archive.storage import layout
    from traceviz.archive.storage.store import Store

    store = Store.at(place)
    layout.check(store)
    return store, catalogue.read(store).filter(pl.col("state") != "removed")


def _filtered(rows: pl.DataFrame, condition: str | None) -> pl.DataFrame:
    from traceviz.archive.query.where import where

    return where(rows, condition) if condition else rows


def _ready(rows: pl.DataFrame) -> pl.DataFrame:
    from traceviz.archive.catalogue.segments import ready

    return ready(rows)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for part in (text or "").split(",") if (name := part.strip()))


def _print(
    report: Report,
    *,
    format_name: str,
    output: Path | None,
    force: bool,
    width: int | None,
    sections: tuple[str, ...] | None = None,
    top: int | None = None,
) -> None:
    from traceviz.render.options import RenderOptions
    from traceviz.render.registry import renderer

    if format_name not in {"terminal", "csv", "json", "markdown"}:
        raise UsageError.unknown("output format", format_name, ("terminal", "csv", "json", "markdown"))
    layout = RenderOptions(width or page_width(), wants_color(output), top, sections)
    write(renderer(format_name).render(report, layout), output, force=force)


# What an add and a check say


def _summary(place: str, done: Added) -> str:
    """What became of everything, a line for each; traces that are not in, by name with the reason."""
    parts = [_count(done.added, "trace") + " added", f"{done.known:,} known", f"{done.mended:,} mended"]
    parts += [f"{len(done.quarantined) + len(done.still_quarantined):,} quarantined", f"{len(done.refused):,} refused"]
    said = [part for part in parts[1:] if not part.startswith("0 ")]
    lines = [f"{_called(place)}: {', '.join([parts[0], *said])}."]
    if done.taken_up:
        what = _count(done.taken_up, "trace")
        lines.append(f"  {what} of them had been converted by another add, or by one that was interrupted.")
    if done.known_private:
        what = f"{done.known_private:,} of them {'was' if done.known_private == 1 else 'were'}"
        lines.append(f"  {what} added with --keep-private, and what is private is still in there.")
        lines.append(f"  To have it removed: traceviz archive remove {_called(place)} --where private; then add again.")
    if done.left_out:
        them = "it" if len(done.left_out) == 1 else "them"
        lines.append(f"  left out: {_count(len(done.left_out), 'report')} whose export lies beside {them}.")
    if done.ignored:
        what = _count(done.ignored, "other file")
        lines.append(f"  left out: {what}, which {'is no trace' if done.ignored == 1 else 'are no traces'}.")
    if done.removed:
        lines.append("Removed since it is private:")
        lines += [f"  {count:>7,}  {what}" for what, count in done.removed.items()]
    lines += _named("Quarantined: not read, and kept out", done.quarantined)
    lines += _named("Quarantined before, not tried again (--retry does)", done.still_quarantined)
    lines += _refused(done.refused)
    return "\n".join((*lines, ""))


def _named(title: str, traces: Sequence[Quarantined]) -> list[str]:
    lines = [f"  {_line(one.source)} ({one.trace_id})\n    {_line(one.error)}" for one in traces[:_LISTED]]
    return _titled(title, lines, len(traces))


def _refused(refused: Sequence[Refused]) -> list[str]:
    lines = [f"  {_line(one.name)}\n    {one.code}: {_line(one.why)}" for one in refused[:_LISTED]]
    return _titled("Refused: not read", lines, len(refused))


def _titled(title: str, lines: list[str], count: int) -> list[str]:
    more = [f"  and {count - len(lines):,} more"] if count > len(lines) else []
    return [f"{title}:", *lines, *more] if lines else []


def _called(place: str) -> str:
    """An archive as it was named, without user and password."""
    from traceviz.archive.storage.addresses import shown

    return shown(place)


def _line(text: str) -> str:
    """Text of others on one line, with nothing in it that steers the terminal."""
    from traceviz.render.text import sentence

    return sentence(text)


def _verified(place: str, found: Verified) -> str:
    read = f", {found.bytes:,} bytes compared" if found.bytes else ""
    lines = [
        f"{_called(place)}: {_count(found.traces, 'trace')} looked at{read}, {_count(len(found.faults), 'fault')}."
    ]
    lines += [f"  {one.kind}: {_line(one.name)}: {_line(one.why)}" for one in found.faults]
    return "\n".join((*lines, ""))


def _repaired(mended: Repaired) -> str:
    lost = [f"  {_line(source)} ({trace_id})" for trace_id, source in mended.lost[:_LISTED]]
    title = "Taken out of the archive: add their sources again"
    return "\n".join((f"{_count(mended.count, 'fault')} mended.", *_titled(title, lost, len(mended.lost)), ""))


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
