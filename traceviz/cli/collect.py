"""``traceviz collect``: run a program and record it."""

from __future__ import annotations

import contextlib
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceviz.cli.options import Time
from traceviz.errors import CommandNotFoundError, NotExecutableError, TracevizError

if TYPE_CHECKING:
    from traceviz.collectors.collect import Outcome
    from traceviz.collectors.run.plan import CollectOptions
    from traceviz.collectors.run.prepared import Prepared

OWN_FAILURE = 125
"""`collect` ends with the program's code; this one says that it failed itself, as with `env` and `timeout`."""


class _PrefixUsageError(click.UsageError):
    exit_code = OWN_FAILURE


class _Prefix(click.Command):
    """A command in front of the user's: its own failures have a code of their own, as those of ``env`` have."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options; what is wrong with them ends with the code of our own failures."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise _PrefixUsageError(error.format_message(), error.ctx) from error


@click.command(cls=_Prefix, context_settings={"allow_interspersed_args": False})
@click.option(
    "--with",
    "wanted",
    default="auto",
    metavar="NAMES",
    help="Collectors, separated by commas: jax, nsys, nvtx, resources, tensorflow, torch; or auto: all that are ready.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="RUN", help="Run folder to create.")
@click.option("--name", default="", help="Name of the run, instead of the program's.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A fact to find the run by; may be repeated.")
@click.option("--steps", metavar="FIRST:END", help="Steps to record, counted from 0, up to END (10:30); nsys sees all.")
@click.option("--delay", type=Time(), help="Begin so long after the start, e.g. 30s, instead of at a step.")
@click.option("--duration", type=Time(), help="Record so long, e.g. 10s, instead of a number of steps.")
@click.option(
    "--nvtx", type=click.Choice(["auto", "off"]), default="auto", help="NVTX ranges around steps and input, for nsys."
)
@click.option("--rate", type=click.FloatRange(0.1, 100.0), default=10.0, help="Samples of resources per second (10).")
@click.option("--nsys-args", default="", metavar="ARGS", help="Flags for `nsys profile`; they win over ours.")
@click.option("--keep-raw/--no-keep-raw", default=True, help="Keep what the profilers wrote beside the tables.")
@click.option("--keep-private", is_flag=True, help="Store command line and host name too.")
@click.option("--force", is_flag=True, help="Replace an existing run folder.")
@click.option("--dry-run", is_flag=True, help="Print what would run, and create nothing.")
@click.option("--report/--no-report", "verdict", default=True, help="Print the verdict once the program has ended.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.pass_context
def collect(ctx: click.Context, /, command: tuple[str, ...], *, dry_run: bool, verdict: bool, **options: Any) -> None:
    """Run COMMAND and record it: profiles of its steps, and the machine's resources all along.

    The program needs no change. Its input, output, signals and exit code are its own; what is recorded is left in RUN
    (traceviz-runs/NAME-TIME), whatever way the program ends, and `traceviz report RUN` says where its time went.

    Exits with the program's code (128 + n for signal n); 125 where recording fails, 126 where COMMAND cannot be
    executed, 127 where it is not found.
    """
    from traceviz.collectors import collect as recording

    try:
        asked = _collect_options(**options)
        if dry_run:
            click.echo(_preview(recording.prepare(asked, command)), nl=False)
            return
        outcome = recording.collect(asked, command, verdict=verdict, tell=_tell)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is one moment's work, and the code is the program's
    except TracevizError as error:
        for part in filter(None, (error.what, error.why, error.fix)):
            _tell(part)
        ctx.exit(error.exit_code if isinstance(error, CommandNotFoundError | NotExecutableError) else OWN_FAILURE)
    _tell_outcome(outcome)
    ctx.exit(outcome.exit_code)


def _collect_options(
    *,
    wanted: str,
    tags: tuple[str, ...],
    steps: str | None,
    delay: int | None,
    duration: int | None,
    nvtx: str,
    rate: float,
    nsys_args: str,
    **same: Any,
) -> CollectOptions:
    from traceviz.collectors.run.plan import AUTO, CollectOptions, parse_tags, split_arguments, window_of

    names = tuple(name.strip() for name in wanted.split(",") if name.strip())
    delay_s, duration_s = (None if time is None else time / 1e9 for time in (delay, duration))
    return CollectOptions(
        collectors=None if names == (AUTO,) else names,
        tags=parse_tags(tags),
        window=window_of(steps, delay_s, duration_s),
        nvtx=nvtx != "off",
        rate_hz=rate,
        nsys_args=split_arguments(nsys_args),
        **same,
    )


def _preview(run: Prepared) -> str:
    """What ``--dry-run`` prints: the plan, and the command as it could be typed."""
    plan, window = run.plan, run.plan.window
    lines = [f"folder       {plan.folder}"]
    for name, state in run.states.items():
        use = "on" if name in plan.collectors else "off, not asked for" if state.is_ready else f"off, {state.state}"
        lines.append(f"collector    {name:<11} {use}: {state.detail}{f' Fix: {state.fix}' if state.fix else ''}")
    if window.delay_s is None:
        end = "" if window.steps is None else window.first_step + window.steps
        lines.append(f"steps        {window.first_step}:{end}")
    else:
        lasting = "" if window.duration_s is None else f", {window.duration_s:g} s long"
        lines.append(f"window       {window.delay_s:g} s after the start{lasting}")
    lines.extend(f"environment  {name}={shlex.quote(value)}" for name, value in run.added.items())
    return "\n".join((*lines, f"command      {shlex.join(run.typed)}", ""))


def _tell(line: str) -> None:
    """A line for the user beside the program's output, never in its stdout; a terminal that is gone is no error."""
    with contextlib.suppress(OSError):
        click.echo(f"traceviz: {line}", err=True)


def _tell_outcome(outcome: Outcome) -> None:
    for problem in outcome.problems:
        _tell(f"{problem.message}{f' {problem.fix}' if problem.fix else ''}")
    for line in outcome.verdict:
        _tell(line)
    folder, here = outcome.folder, Path.cwd()
    shown = shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))
    if outcome.tables:
        _tell(f"the run is in {shown}; to see where its time went: traceviz report {shown}")
    else:
        _tell(f"the run is in {shown}; no table was made of it")
