"""``traceviz runs``: the runs that ``traceviz collect`` has recorded."""

from __future__ import annotations

from pathlib import Path

import click

from traceviz.cli.archive.options import PageOptions, page_options
from traceviz.cli.options import Source

_FOR_PEOPLE = frozenset({"terminal", "markdown"})
_RUNS_FOR_PEOPLE = 20
_SENTENCES = 10


@click.command()
@click.argument("folder", required=False, type=Source(), metavar="[FOLDER]")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="Only runs with this tag; may be repeated.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Runs at most (default: 20 in terminal and markdown, else all)."
)
@page_options("terminal, csv, html, json or markdown (default: terminal).")
def runs(folder: Path | None, *, tags: tuple[str, ...], limit: int | None, page: PageOptions) -> None:
    """List the runs below FOLDER (traceviz-runs), the newest first: what ran, how long, how it ended, its verdict.

    Of the command, options with plain values are known (--batch-size 64); … stands for what looks private. The verdict
    is that of the last `traceviz report RUN` of this user, else that of the moment in which the run ended.
    """
    from traceviz.collectors.run.plan import parse_tags
    from traceviz.core.files import check_file_free
    from traceviz.render.registry import check_format
    from traceviz.runs.recorded_runs import RUNS, listing

    check_format(page.format_name)
    if page.output is not None:
        check_file_free(page.output, force=page.force)
    is_for_people = page.format_name in _FOR_PEOPLE
    most = limit or (_RUNS_FOR_PEOPLE if is_for_people else None)
    sentences = most if limit or not is_for_people else _SENTENCES
    page.print(listing(folder or Path(RUNS), tags=parse_tags(tags), limit=most, verdicts=sentences))
