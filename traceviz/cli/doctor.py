"""``traceviz doctor``: what can be recorded here, and what a trace can answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from traceviz.cli.options import page_width, progress_bar_on_stderr, reading_options, wants_color


@click.command()
@click.argument("trace", required=False, type=click.Path(path_type=Path))
@click.option("--with", "wanted", default="auto", metavar="NAMES", help="Collectors that must be ready.")
@click.option("--python", metavar="PROGRAM", help="The Python that runs the program (python on PATH).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--width", type=click.IntRange(min=40), help="Columns of the page (the terminal's, or 100 when piped).")
@reading_options
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    trace: Path | None,
    wanted: str,
    python: str | None,
    width: int | None,
    *,
    as_json: bool,
    **reading: Any,
) -> None:
    """Say what can be recorded here and what mends the rest; with TRACE, what that can and cannot answer.

    Exits with 3 where a collector named by --with cannot record: tensorflow, jax and torch take their framework in the
    Python that runs the program.
    """
    from traceviz.doctor import doctor as doctors

    _check_question(ctx, about_machine=trace is None)
    if trace is None:
        found = doctors.examine_machine((name.strip() for name in wanted.split(",") if name.strip()), python)
    else:
        from traceviz import api

        with progress_bar_on_stderr() as progress:
            found = doctors.examine_trace(api.open_trace(trace, progress=progress, **reading), trace.name)
    text = doctors.to_json(found) if as_json else doctors.to_text(found, width or page_width(), color=wants_color())
    click.echo(text, nl=False)
    ctx.exit(found.exit_code)


def _check_question(ctx: click.Context, *, about_machine: bool) -> None:
    """Options of the question that is not asked are a mistake, and not ignored."""
    idle = {"--reader": "reader", "--run": "run", "--max-size": "max_size"}
    idle = idle if about_machine else {"--with": "wanted", "--python": "python"}
    for option, name in idle.items():
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            subject = "a TRACE, and none is named" if about_machine else "this machine, not about TRACE"
            raise click.UsageError(f"{option} is about {subject}.", ctx)
