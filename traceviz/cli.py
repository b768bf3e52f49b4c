"""The command line. Each command reads its options, calls :mod:`traceviz.api`, and prints.

Nothing heavy is imported before a command runs: ``traceviz --help`` must answer at once.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceviz import __version__
from traceviz.errors import NoVerdictError, OutputError, TracevizError

if TYPE_CHECKING:
    from traceviz.report import Report

PIPED_WIDTH = 100
INTERRUPTED = 130

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
    for part in (error.why, error.fix):
        if part:
            click.echo(f"  {part}", err=True)


class _Time(click.ParamType[int]):
    """A time on the trace's clock: ``1.5`` or ``1.5s``, ``1500ms``, ``20us``; in nanoseconds."""

    name = "time"
    _units = (("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Nanoseconds of ``value``."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        for suffix, size in (*self._units, ("", 1_000_000_000)):
            if text.endswith(suffix):
                try:
                    return self._not_negative(round(float(text[: len(text) - len(suffix)]) * size))
                except (ValueError, OverflowError):
                    break
        return self.fail(f"{value!r} is not a time such as 1.5s, 1500ms or 20us", param, ctx)

    @staticmethod
    def _not_negative(nanoseconds: int) -> int:
        if nanoseconds < 0:
            raise ValueError
        return nanoseconds


class _Size(click.ParamType[int]):
    """A number of bytes: ``64GB``, ``500MB``, ``64GiB``, or without a unit."""

    name = "size"
    _number = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<prefix>[kKMGT]?)(?P<binary>i?)B)?")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes of ``value``."""
        if isinstance(value, int):
            return value
        match = self._number.fullmatch(str(value).strip())
        if match is None or (match["binary"] and not match["prefix"]):
            return self.fail(f"{value!r} is not a size such as 64GB or 500MB", param, ctx)
        base = 1024 if match["binary"] else 1000
        power = " KMGT".index((match["prefix"] or " ").upper())
        return int(float(match["number"]) * base**power)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="traceviz")
def main() -> None:
    """Where did the time go, and what should I change?

    Reads what a profiler wrote, turns it into typed Parquet tables, and prints one report with a verdict.
    """


def _reading(command: Command) -> Command:
    """Options that every command that reads traces has."""
    path = click.Path(path_type=Path)
    traces = click.argument("traces", nargs=-1, required=True, type=path, metavar="TRACE...")
    reader = click.option("--reader", metavar="NAME", help="Format of TRACE, instead of recognising it by its content.")
    run = click.option("--run", metavar="NAME", help="Run to read, where TRACE is a log folder of several (newest).")
    size = click.option("--max-size", type=_Size(), help="The longest JSON to read, unpacked, e.g. 200GB.")
    return traces(reader(run(size(command))))


@main.command()
@_reading
@click.option("--section", "sections", multiple=True, metavar="SLUG", help="Only this section; may be repeated.")
@click.option("--format", "format_name", default="terminal", metavar="NAME", help="terminal, json or markdown.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout.")
@click.option("--force", is_flag=True, help="Replace an existing output file.")
@click.option("--device", type=int, help="Only the device with this number.")
@click.option("--rank", type=int, help="Only this rank (process).")
@click.option("--from", "start", type=_Time(), help="Begin of the window analysed, e.g. 1.5s.")
@click.option("--to", "end", type=_Time(), help="End of the window analysed, e.g. 20s.")
@click.option("--step-marker", metavar="REGEX", help="Ranges or annotations that are training steps.")
@click.option("--input-range", metavar="REGEX", help="Ranges or annotations in which input is loaded.")
@click.option(
    "--basis", default="traceviz", metavar="NAME", help="Classes of step time: traceviz, xprof, tensorboard, kineto."
)
@click.option("--top", type=click.IntRange(min=1), help="Rows per table (10, small ones folded).")
@click.option("--width", type=click.IntRange(min=40), help="Columns of the page (the terminal's, or 100 when piped).")
@click.option("--require-verdict", is_flag=True, help="Exit with 4 where the input cannot be judged.")
def report(
    traces: tuple[Path, ...], reader: str | None, run: str | None, sections: tuple[str, ...], **options: Any
) -> None:
    """Print what TRACE says: verdict, step breakdown, CUDA time share, kernels, findings.

    Several traces are those of the ranks of one job: they are put on one clock and compared. So are those of a folder.

    TRACE is a trace of torch.profiler (.pt.trace.json, .json.gz); a TensorBoard log folder, an .xplane.pb or
    trace.json.gz file (TensorFlow, JAX); a .nsys-rep, .qdrep, .qdstrm, an nsys SQLite or Parquet export; what nvprof
    wrote (.nvvp, .nvprof, .sql, CSV); or a folder made by `traceviz convert`.
    """
    from traceviz import api
    from traceviz.files import check_file_free, check_not_source
    from traceviz.render.registry import renderer

    renderer(options["format_name"])  # an unknown name is reported before the work, not after
    output = options["output"]
    if output:
        for trace in traces:
            check_not_source(trace, output)
        check_file_free(output, force=options["force"])
    with _progress() as progress:
        found = api.report_on(
            *traces,
            sections=sections or None,
            options=_analysis_options(options["step_marker"], options["input_range"], options["basis"]),
            selection=api.Selection(options["start"], options["end"], options["device"], options["rank"]),
            reader=reader,
            run=run,
            max_size=options["max_size"],
            progress=progress,
        )
    color = output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    layout = api.RenderOptions(width=options["width"] or _width(), color=color, top=options["top"])
    _write(api.to_text(found, options["format_name"], layout), output, force=options["force"])
    if options["require_verdict"]:
        _require_verdict(found)


@main.command()
@_reading
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

    with _progress() as progress:
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


@main.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File or folder to create.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
def scrub(trace: Path, output: Path, *, force: bool) -> None:
    """Copy TRACE without secrets and personal data.

    Removes environment, arguments, host and user names, paths, captured output and the names of other processes from
    an nsys SQLite export, an XPlane capture or a traceviz folder, and verifies on the raw bytes that what was found is
    gone.
    """
    from traceviz.scrub import scrub as remove_private

    done = remove_private(trace, output, force=force)
    click.echo(f"{output}: scrubbed, {done.verified_bytes:,} bytes verified. Removed:")
    for what, count in done.removed:
        click.echo(f"  {count:>7,}  {what}")


@main.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Print the reasoning behind finding CODE (or its name); without CODE, list all."""
    from traceviz.render.rules import explain_rule, list_rules
    from traceviz.rules import RULES, rule

    click.echo(explain_rule(rule(code), _width()) if code else list_rules(RULES, _width()), nl=False)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL, for example: eval "$(traceviz completion bash)"."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "traceviz", "_TRACEVIZ_COMPLETE").source())


def _analysis_options(step_marker: str | None, input_range: str | None, basis: str) -> Any:
    from traceviz.analyses.foreign_basis import basis_named
    from traceviz.analyses.stepping import valid_pattern
    from traceviz.api import AnalysisOptions
    from traceviz.errors import UsageError

    for option, pattern in (("--step-marker", step_marker), ("--input-range", input_range)):
        if pattern is not None and not (pattern and valid_pattern(pattern)):
            raise UsageError(f"{option} {pattern!r} is not a regular expression.")
    basis_named(basis)  # an unknown name is reported before the work, not after
    return AnalysisOptions(step_marker, input_range, basis)


def _require_verdict(found: Report) -> None:
    if found.verdict.code in {"cannot-judge", "partial"}:
        raise NoVerdictError("No verdict on the input pipeline is possible.", found.verdict.sentence)


def _write(text: str, output: Path | None, *, force: bool) -> None:
    from traceviz.files import new_file

    if output is None:
        try:
            click.echo(text, nl=False)
        except BrokenPipeError:
            raise  # `| head`: click ends quietly
        except OSError as error:
            raise OutputError("The report cannot be written to stdout.", f"{error.strerror}.") from error
        return
    with new_file(output, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _width() -> int:
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return PIPED_WIDTH
    return max(40, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns)


def _progress() -> Any:
    """A bar on stderr where somebody watches it, else nothing."""
    from traceviz.progress import progress_bar

    return progress_bar(enabled=sys.stderr.isatty())


if __name__ == "__main__":
    main()
