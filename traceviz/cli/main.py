"""The command line: a table of commands. Each reads its options, calls :mod:`traceviz.api`, and prints.

Nothing heavy is imported before a command runs: ``traceviz --help`` must answer at once.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from traceviz import interrupts
from traceviz.cli.lazy import CommandEntry, LazyGroup
from traceviz.errors import TracevizError
from traceviz.version import __version__

INTERRUPTED = 130

_COMMANDS = (
    CommandEntry(
        "report",
        "traceviz.cli.report:report",
        "Print what TRACE says: verdict, step breakdown, CUDA time share, kernels, findings.",
    ),
    CommandEntry(
        "compare",
        "traceviz.cli.compare:compare",
        "Say whether NEW is faster than BASE, by how much, how certainly, and where the difference lies.",
    ),
    CommandEntry(
        "archive",
        "traceviz.cli.archive.group:archive",
        "Keep many traces as one collection, and query it.",
    ),
    CommandEntry(
        "convert",
        "traceviz.cli.convert:convert",
        "Write TRACE as a folder of Parquet tables; traces of several ranks become one folder.",
    ),
    CommandEntry(
        "collect",
        "traceviz.cli.collect:collect",
        "Run COMMAND and record it: profiles of its steps, and the machine's resources throughout.",
    ),
    CommandEntry(
        "doctor",
        "traceviz.cli.doctor:doctor",
        "Say what can be recorded here and how to enable the rest; with TRACE, what it can and cannot answer.",
    ),
    CommandEntry("scrub", "traceviz.cli.scrub:scrub", "Copy TRACE without secrets and personal data."),
    CommandEntry(
        "explain",
        "traceviz.cli.explain:explain",
        "Print the reasoning behind the finding CODE (or its name); without CODE, list all findings.",
    ),
    CommandEntry(
        "completion",
        "traceviz.cli.completion:completion",
        'Print the completion script of SHELL, for example: eval "$(traceviz completion bash)".',
    ),
)


class _Commands(LazyGroup):
    """Turns our errors into messages on stderr and exit codes."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Read the arguments and run what they ask for; a help text may not find its way, either."""
        try:
            return super().main(*args, **kwargs)
        except TracevizError as error:
            _complain(error)
            sys.exit(error.exit_code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that speak to a person end it without a traceback."""
        try:
            return super().invoke(ctx)
        except TracevizError as error:
            interrupts.check()
            _complain(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("Interrupted; nothing was left behind.", err=True)
            ctx.exit(INTERRUPTED)


def _complain(error: TracevizError) -> None:
    """Print an error on stderr."""
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(error.what, err=True)
    for line in (*error.why.splitlines(), *error.fix.splitlines()):
        click.echo(f"  {line}", err=True)


@click.group(
    cls=_Commands,
    entries=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", prog_name="traceviz")
def main() -> None:
    """Where did the time go, and what should I change?

    Reads what a profiler wrote, turns it into typed Parquet tables, and prints one report with a verdict.
    """


if __name__ == "__main__":
    main()
