"""``traceviz collect``: run a program and record it."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from traceviz.cli.boundary import OWN_FAILURE, say
from traceviz.cli.options import Time, option_group, print_lines
from traceviz.core.errors import CommandNotFoundError, NotExecutableError, TracevizError, UsageError
from traceviz.core.sanitize import one_line

if TYPE_CHECKING:
    from traceviz.collectors.collect import Outcome
    from traceviz.collectors.run.plan import CollectOptions
    from traceviz.collectors.run.record import Prepared, Progress, Tell

_CELLS = 20
"""Width of the bar."""


class _PrefixUsageError(click.UsageError):
    exit_code = OWN_FAILURE


class _Prefix(click.Command):
    """A command in front of the user's: its own failures have their own exit code, as those of ``env`` do."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options; a mistake in them ends with the exit code of our own failures."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise _PrefixUsageError(error.format_message(), error.ctx) from error


@dataclass(frozen=True, slots=True)
class _Recording:
    """Subject and destination of the recording: the options of ``traceviz collect`` as they are typed."""

    collectors: str
    output: Path | None
    name: str
    tags: tuple[str, ...]
    steps: str | None
    delay: int | None
    duration: int | None
    nvtx: str
    rate: float
    stacks_rate: float
    nsys_args: str
    events: tuple[Path, ...]
    keep_raw: bool
    keep_private: bool
    force: bool
    time_limit: int | None

    def options(self) -> CollectOptions:
        """Return the parsed options, with separate names, tags, flags and window.

        Raises:
            UsageError: one of them is not valid, or two contradict each other.
        """
        from traceviz.collectors.run.plan import AUTO, CollectOptions, parse_tags, split_arguments, window_of

        names = tuple(name.strip() for name in self.collectors.split(",") if name.strip())
        delay_s, duration_s = (None if time is None else time / 1e9 for time in (self.delay, self.duration))
        return CollectOptions(
            collectors=None if names == (AUTO,) else names,
            output=self.output,
            name=self.name,
            tags=parse_tags(self.tags),
            window=window_of(self.steps, delay_s, duration_s),
            nvtx=self.nvtx != "off",
            rate_hz=self.rate,
            stacks_hz=self.stacks_rate,
            nsys_args=split_arguments(self.nsys_args),
            events=tuple(folder.absolute() for folder in self.events),
            keep_raw=self.keep_raw,
            keep_private=self.keep_private,
            force=self.force,
            limit_s=None if self.time_limit is None else self.time_limit / 1e9,
        )


_recording_options = option_group(
    "recording",
    _Recording,
    click.option(
        *("--with", "collectors"),
        default="auto",
        metavar="NAMES",
        help="Collectors, separated by commas: jax, nsys, nvtx, py-spy, resources, stacks, tensorflow, torch; "
        "or auto: all that are ready, but for py-spy (default: auto).",
    ),
    click.option("-o", "--output", type=click.Path(path_type=Path), metavar="RUN", help="Run folder to create."),
    click.option("--name", default="", help="Name of the run (default: the program's name)."),
    click.option(
        "--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag to find the run by; may be repeated."
    ),
    click.option(
        "--steps",
        metavar="FIRST:END",
        help="Steps to record, counted from 0, up to but without END; nsys records all (default: 10:30).",
    ),
    click.option("--delay", type=Time(), help="Start this long after the program, e.g. 30s, not at a step."),
    click.option("--duration", type=Time(), help="Record this long, e.g. 10s, not a number of steps."),
    click.option(
        "--nvtx",
        type=click.Choice(["auto", "off"]),
        default="auto",
        help="NVTX ranges around steps and input, for nsys (default: auto).",
    ),
    click.option(
        "--rate", type=click.FloatRange(0.1, 100.0), default=10.0, help="Resource samples per second (default: 10)."
    ),
    click.option(
        "--stacks-rate",
        type=click.FloatRange(0.0, 1000.0),
        default=100.0,
        help="Samples of Python's stacks per second at most; 0: none (default: 100).",
    ),
    click.option("--nsys-args", default="", metavar="ARGS", help="Flags for `nsys profile`; they override ours."),
    click.option(
        "--events",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder of TensorBoard's event files, if the hooks do not see it; may be repeated.",
    ),
    click.option("--keep-raw/--no-keep-raw", default=True, help="Keep the profilers' own files next to the tables."),
    click.option("--keep-private", is_flag=True, help="Store command line and host name too."),
    click.option("--force", is_flag=True, help="Replace an existing run folder."),
    click.option(
        "--time-limit",
        type=Time(),
        metavar="TIME",
        help="End the program after this long, e.g. 10min: SIGTERM, and SIGKILL 10 s later.",
    ),
)


@click.command(cls=_Prefix, context_settings={"allow_interspersed_args": False})
@_recording_options
@click.option("--dry-run", is_flag=True, help="Print what would run, and create nothing.")
@click.option("--report/--no-report", "verdict", default=True, help="Print the verdict once the program has ended.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.pass_context
def collect(
    ctx: click.Context, /, command: tuple[str, ...], recording: _Recording, *, dry_run: bool, verdict: bool
) -> None:
    """Run COMMAND and record it: profiles of its steps, and the machine's resources throughout.

    The program needs no change, and keeps its input, output, signals and exit code. However it ends, the recording
    stays in RUN (traceviz-runs/NAME-TIME), and `traceviz report RUN` says where the time went.

    Exits with the program's code (128 + n for signal n); with 124 if its time was over, 125 if recording fails, 126 if
    COMMAND cannot be executed, 127 if it is not found.
    """
    from traceviz.collectors import collect as collecting

    try:
        options = recording.options()
        if dry_run:
            print_lines(_preview(collecting.prepare(options, command)))
            return
        with _bar() as (progress, tell):
            outcome = collecting.collect(options, command, verdict=verdict, tell=tell, progress=progress)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the rest takes a moment, and the exit code is the program's
    except TracevizError as error:
        for part in filter(None, (error.what, error.why, error.fix)):
            _tell(part)
        ctx.exit(error.exit_code if isinstance(error, CommandNotFoundError | NotExecutableError) else OWN_FAILURE)
    _tell_outcome(outcome)
    ctx.exit(outcome.exit_code)


def read_options(words: Sequence[str], refused: Mapping[str, str]) -> CollectOptions:
    """Read options of ``traceviz collect`` in ``words``, which precede the command of another program.

    Args:
        words: The options.
        refused: Parameters of ``traceviz collect`` that are not allowed there, and what to do about each.

    Raises:
        UsageError: one of them is not valid, is refused, or two contradict each other; or a word is not an option, and
            would take the place of the command.
    """
    typed = shlex.join(words)
    try:
        contexts = [collect.make_context("collect", [*words, *rest]) for rest in ((), ("--", "true"))]
    except click.UsageError as error:
        raise UsageError(f"{typed!r} are no options of traceviz collect.", error.format_message()) from error
    except click.exceptions.Exit:
        raise UsageError(f"{typed!r} asks for help in the place of a recording.", fix="Leave --help out.") from None
    commands = [context.params["command"] for context in contexts]
    if commands != [(), ("true",)]:
        word = next(iter(commands[0]), "--")
        raise UsageError(
            f"{typed!r} are no options of traceviz collect alone: {word!r} would start the command.",
            fix="Leave it out: the command is stated by itself.",
        )
    for name, fix in refused.items():
        if contexts[0].get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = next(parameter for parameter in collect.params if parameter.name == name).opts[-1]
            raise UsageError(f"{option} cannot be an option of the runs of a sweep.", fix=fix)
    given = contexts[0].params
    return _Recording(**{field.name: given[field.name] for field in fields(_Recording)}).options()


def _preview(run: Prepared) -> list[str]:
    """Return the output of ``--dry-run``: the plan, and the command as it could be typed."""
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
    return [*lines, f"command      {shlex.join(run.typed)}"]


def _tell(line: str) -> None:
    """Print a line for the user on stderr, never in the program's stdout."""
    say(f"traceviz: {line}")


@contextmanager
def _bar() -> Iterator[tuple[Progress, Tell]]:
    """Yield a function that draws the progress of reading on one line of stderr, and a matching :func:`_tell`.

    The line shows only on a terminal, once the program has ended, and is removed. Rich would take 0.1 s to load.
    """
    if not sys.stderr.isatty():
        yield _no_progress, _tell
        return

    is_new = True

    def progress(stage: str, done: int, total: int | None) -> None:
        nonlocal is_new
        columns = shutil.get_terminal_size().columns
        if is_new:
            is_new = False
            # Moves to the next line if, and only if, the program has left the cursor within one.
            sys.stderr.write(f"{' ' * (columns - 1)}\r")
        share = done / total if total else 0.0
        cells = f" {'━' * round(share * _CELLS):<{_CELLS}} {share:4.0%}" if total else ""
        _draw(f"traceviz: {one_line(stage)}{cells} (Ctrl-C: do not wait)"[: max(columns - 1, 20)])

    def tell(line: str) -> None:
        if not is_new:
            _draw("")
        _tell(line)

    try:
        yield progress, tell
    finally:
        if not is_new:
            _draw("")


def _draw(line: str) -> None:
    with suppress(OSError, ValueError):  # the terminal has closed
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


def _no_progress(stage: str, done: int, total: int | None) -> None:
    """Show nothing: stderr is not a terminal."""


def _tell_outcome(outcome: Outcome) -> None:
    for line in outcome.verdict:
        _tell(line)
    for problem in outcome.problems:
        _tell(f"{problem.message}{f' {problem.fix}' if problem.fix else ''}")
    folder, here = outcome.folder, Path.cwd()
    shown = shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))
    if outcome.tables:
        _tell(f"the run is in {shown}; to see where its time went: traceviz report {shown}")
    else:
        _tell(f"the run is in {shown}; no table was made of it")
