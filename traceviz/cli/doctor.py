"""``traceviz doctor``: which recordings are possible here, and which questions a trace can answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from traceviz.cli.options import (
    PAGE_WIDTH,
    WIDTH_HELP,
    Source,
    page_width,
    progress_bar_on_stderr,
    reading_options,
    wants_color,
)
from traceviz.parsers.base import ReadOptions


@click.command()
@click.argument("trace", required=False, type=Source())
@click.option(
    "--with", "collectors", default="auto", metavar="NAMES", help="Collectors that must be ready (default: auto)."
)
@click.option("--python", metavar="PROGRAM", help="The Python that runs the program (default: python on PATH).")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["terminal", "json"]),
    default="terminal",
    help="Format of the checks (default: terminal).",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--width", type=PAGE_WIDTH, help=WIDTH_HELP)
@reading_options
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    *,
    trace: Path | None,
    collectors: str,
    python: str | None,
    width: int | None,
    read: ReadOptions,
    format_name: str,
    as_json: bool,
) -> None:
    """Say what can be recorded here and how to enable the rest; with TRACE, what it can and cannot answer.

    Exits with 3 if a collector named by --with cannot record: tensorflow, jax and torch need their framework in the
    Python that runs the program.
    """
    from traceviz.doctor.doctor import examine_machine, examine_trace, to_json, to_text

    _check_question(ctx, about_machine=trace is None)
    if trace is None:
        diagnosis = examine_machine((name.strip() for name in collectors.split(",") if name.strip()), python)
    else:
        from traceviz import api

        with progress_bar_on_stderr() as progress:
            tables = api.open_trace(trace, read=replace(read, progress=progress))
        diagnosis = examine_trace(tables, trace.name)
    is_json = as_json or format_name == "json"
    text = to_json(diagnosis) if is_json else to_text(diagnosis, width or page_width(), color=wants_color())
    click.echo(text, nl=False)
    ctx.exit(diagnosis.exit_code)


def _check_question(ctx: click.Context, *, about_machine: bool) -> None:
    """Refuse options that belong to the other question: ignoring them would hide a mistake."""
    about_trace = {
        "--reader": "reader",
        "--run": "run",
        "--max-size": "max_size",
        "--max-memory": "max_memory",
        "--no-cache": "cache",
    }
    unused = about_trace if about_machine else {"--with": "collectors", "--python": "python"}
    for option, name in unused.items():
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            subject = "a TRACE, and none is named" if about_machine else "this machine, not about TRACE"
            raise click.UsageError(f"{option} is about {subject}.", ctx)
