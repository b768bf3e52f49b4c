"""The command line. Each command reads its options, calls :mod:`traceviz.api`, and prints.

Nothing heavy is imported before a command runs: ``traceviz --help`` must answer at once.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceviz import __version__
from traceviz.cli.archive.group import archive
from traceviz.cli.compare import compare
from traceviz.cli.gate_options import gate_options
from traceviz.cli.options import (
    Time,
    analysis_options,
    output_options,
    page_options,
    page_width,
    part_options,
    progress_bar_on_stderr,
    reading,
    reading_options,
    wants_color,
    without_pandas,
    write,
)
from traceviz.errors import CommandNotFoundError, NotExecutableError, NoVerdictError, TracevizError

if TYPE_CHECKING:
    from traceviz.collectors.collect import Outcome
    from traceviz.collectors.run.plan import CollectOptions
    from traceviz.collectors.run.record import Prepared
    from traceviz.gates.gates import Gates
    from traceviz.report import Report

INTERRUPTED = 130
OWN_FAILURE = 125
"""`collect` ends with the program's code; this one says that it failed itself, as with `env` and `timeout`."""

Command = TypeVar("Command", bound=Callable[..., Any])


class _Commands(click.Group):
    """Commands in the order of use; turns our errors into messages on stderr and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order of declaration."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that speak to a person end it without a traceback."""
        try:
            return super().invoke(ctx)
        except TracevizError as error:
            _complain(error)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("Interrupted; nothing was left behind.", err=True)
            ctx.exit(INTERRUPTED)


def _complain(error: TracevizError) -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(error.what, err=True)
    for line in (*error.why.splitlines(), *error.fix.splitlines()):
        click.echo(f"  {line}", err=True)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="traceviz")
def main() -> None:
    """Where did the time go, and what should I change?

    Reads what a profiler wrote, turns it into typed Parquet tables, and prints one report with a verdict.
    """


@main.command()
@reading
@click.option("--section", "sections", multiple=True, metavar="SLUG", help="Only this section; may be repeated.")
@output_options
@part_options
@click.option(
    "--basis", default="traceviz", metavar="NAME", help="Classes of step time: traceviz, xprof, tensorboard, kineto."
)
@page_options
@click.option("--require-verdict", is_flag=True, help="Exit with 4 where the input cannot be judged.")
@gate_options()
def report(
    traces: tuple[Path, ...], reader: str | None, run: str | None, sections: tuple[str, ...], **options: Any
) -> None:
    """Print what TRACE says: verdict, step breakdown, CUDA time share, kernels, findings.

    Several traces are those of the ranks of one job: they are put on one clock and compared. So are those of a folder.

    TRACE is a trace of torch.profiler (.pt.trace.json, .json.gz); a TensorBoard log folder, an .xplane.pb or
    trace.json.gz file (TensorFlow, JAX); a .nsys-rep, .qdrep, .qdstrm, an nsys SQLite or Parquet export; what nvprof
    wrote (.nvvp, .nvprof, .sql, CSV); or a folder made by `traceviz collect` or `traceviz convert`.

    Exits with 1 where a gate fails (--fail-on, --budget, --budgets), and with 4 where one cannot be judged.
    """
    from traceviz import api
    from traceviz.cli import gate_options as cli_gates
    from traceviz.files import check_file_free, check_not_source
    from traceviz.render.registry import renderer

    renderer(options["format_name"])  # an unknown name is reported before the work, not after
    gates: Gates = options["gates"]
    cli_gates.check_format(options["format_name"], gates)
    output = options["output"]
    if output:
        for trace in traces:
            check_not_source(trace, output)
        check_file_free(output, force=options["force"])
    with progress_bar_on_stderr() as progress:
        found = api.report_on(
            *traces,
            sections=cli_gates.sections_needed(sections, gates),
            options=analysis_options(options["step_marker"], options["input_range"], options["basis"]),
            selection=api.Selection(options["start"], options["end"], options["device"], options["rank"]),
            reader=reader,
            run=run,
            max_size=options["max_size"],
            progress=progress,
        )
    layout = api.RenderOptions(options["width"] or page_width(), wants_color(output), options["top"])
    found, results = cli_gates.judged(found, gates, sections)
    write(api.to_text(found, options["format_name"], layout), output, force=options["force"])
    cli_gates.conclude(found, results, options["format_name"])
    if options["require_verdict"]:
        _require_verdict(found)


main.add_command(compare)
main.add_command(archive)


@main.command()
@reading
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Folder to create.")
@click.option("--force", is_flag=True, help="Replace an existing traceviz folder.")
@click.option("--keep-private", is_flag=True, help="Store command line and host name too.")
def convert(
    traces: tuple[Path, ...],
    reader: str | None,
    run: str | None,
    max_size: int | None,
    output: Path,
    *,
    force: bool,
    keep_private: bool,
) -> None:
    """Write TRACE, or the traces of several ranks as one, as a folder of Parquet tables."""
    from traceviz import api
    from traceviz.tables import read_manifest

    with progress_bar_on_stderr() as progress:
        api.convert(
            traces,
            output,
            reader=reader,
            keep_private=keep_private,
            force=force,
            run=run,
            max_size=max_size,
            progress=progress,
        )
    counts = {name: count for name, count in read_manifest(output)["tables"].items() if count}
    click.echo(f"{output}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()))


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


@main.command(cls=_Prefix, context_settings={"allow_interspersed_args": False})
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


@main.command()
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


@main.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File or folder to create.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
@without_pandas
def scrub(trace: Path, output: Path, *, force: bool) -> None:
    """Copy TRACE without secrets and personal data.

    Removes environment, arguments, host and user names, addresses, paths, captured output and the names of other
    processes from an nsys SQLite or Parquet export, an nvprof database, an XPlane capture, a JSON trace of PyTorch,
    TensorFlow or JAX, a traceviz folder, a run folder, or a folder of such files; and verifies on the raw bytes that
    what was found is gone. What was removed is listed in scrubbed.json, in the output or beside it.
    """
    from traceviz.scrub import scrub as remove_private

    done = remove_private(trace, output, force=force)
    click.echo(f"{output}: scrubbed, {done.verified_bytes:,} bytes verified. Removed:")
    for what, count in done.removed:
        click.echo(f"  {count:>7,}  {what}")
    for name, why in done.left_out:
        click.echo(f"  left out  {name}: {why}")


@main.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Print the reasoning behind finding CODE (or its name); without CODE, list all."""
    from traceviz.render.rules import explain_rule, list_rules
    from traceviz.rules import RULES, rule

    click.echo(explain_rule(rule(code), page_width()) if code else list_rules(RULES, page_width()), nl=False)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL, for example: eval "$(traceviz completion bash)"."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "traceviz", "_TRACEVIZ_COMPLETE").source())


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
    import shlex

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
    import shlex

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


def _require_verdict(found: Report) -> None:
    if found.verdict.code in {"cannot-judge", "partial"}:
        raise NoVerdictError("No verdict on the input pipeline is possible.", found.verdict.sentence)


if __name__ == "__main__":
    main()
