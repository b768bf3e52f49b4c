"""The command line: a table of commands. Each reads its options, calls :mod:`traceviz.api`, and prints.

Nothing heavy is imported before a command runs: ``traceviz --help`` must answer at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

from traceviz.cli.boundary import OWN_FAILURE, complain_of_usage, conclude, say, warnings_as_messages
from traceviz.cli.lazy import CommandEntry, LazyGroup
from traceviz.core.process.interrupts import Stopped
from traceviz.version import __version__

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
        "sweep",
        "traceviz.cli.sweep:sweep",
        "Record a program under every setting that FILE names, several times each, and compare them.",
    ),
    CommandEntry(
        "runs",
        "traceviz.cli.runs:runs",
        "List the runs below FOLDER (traceviz-runs), the newest first: what ran, how long, how it ended, its verdict.",
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
    """Command group that turns errors into messages on stderr and exit codes."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> Any:
        """Read the arguments and run their command; output of a help text can fail, too."""
        self._typed = tuple(sys.argv[1:] if args is None else args)
        try:
            return super().main(self._typed, *others, **extra)
        except Exception as error:  # noqa: BLE001 (the one boundary: any error becomes a message)
            sys.exit(conclude(error, self, self._typed))

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the options before the command's name."""
        try:
            return super().make_context(*args, **extra)
        except click.ClickException as error:
            complain_of_usage(error)
            raise click.exceptions.Exit(error.exit_code) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors end it without a traceback."""
        try:
            with warnings_as_messages():
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            say("Interrupted; nothing half-written was left behind.")
            ctx.exit(128 + int(interrupt.args[0] if interrupt.args else signal.SIGINT))
        except click.ClickException as error:
            complain_of_usage(error)
            ctx.exit(error.exit_code)
        except (click.Abort, click.exceptions.Exit, BrokenPipeError, SystemExit, Stopped):
            raise
        except BaseException as error:  # noqa: BLE001 (the same; a panic of Polars is no Exception)
            code = conclude(error, self, self._typed)
            ctx.exit(OWN_FAILURE if ctx.invoked_subcommand == "collect" else code)


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
