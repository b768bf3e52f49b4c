"""What commands have in common: options that read traces, types of their values, where text goes."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from traceviz.errors import OutputError

PIPED_WIDTH = 100
Command = TypeVar("Command", bound=Callable[..., Any])


class Time(click.ParamType[int]):
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


class Size(click.ParamType[int]):
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


class Source(click.Path):
    """A trace, run or report; an empty text, as of a variable of the shell that is not set, is not this folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of ``value``."""
        return super().convert(value, param, ctx) if value else self.fail("An empty text names nothing.", param, ctx)


def reading(command: Command) -> Command:
    """The traces and options that commands that read traces have."""
    traces = click.argument("traces", nargs=-1, required=True, type=Source(), metavar="TRACE...")
    return traces(reading_options(command))


def reading_options(command: Command) -> Command:
    """Options of commands that read traces."""
    reader = click.option("--reader", metavar="NAME", help="Format of TRACE, instead of recognising it by its content.")
    run = click.option("--run", metavar="NAME", help="Run to read, where TRACE is a log folder of several (newest).")
    size = click.option("--max-size", type=Size(), help="The longest JSON to read, unpacked, e.g. 200GB.")
    return reader(run(size(without_pandas(command))))


def without_pandas(command: Command) -> Command:
    """The command, in a process that does not import pandas."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from traceviz.without_pandas import skip_pandas

        skip_pandas()
        return command(*args, **kwargs)

    return cast("Command", run)


_OUTPUT = (
    click.option(
        *("--format", "format_name"),
        default="terminal",
        metavar="NAME",
        help="terminal, csv, github, json, junit or markdown.",
    ),
    click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout."),
    click.option("--force", is_flag=True, help="Replace an existing output file."),
)
_PART = (
    click.option("--device", type=int, help="Only the device with this number."),
    click.option("--rank", type=int, help="Only this rank (process)."),
    click.option("--from", "start", type=Time(), help="Begin of the window analysed, e.g. 1.5s."),
    click.option("--to", "end", type=Time(), help="End of the window analysed, e.g. 20s."),
    click.option("--step-marker", metavar="REGEX", help="Ranges or annotations that are training steps."),
    click.option("--input-range", metavar="REGEX", help="Ranges or annotations in which input is loaded."),
)
_PAGE = (
    click.option("--top", type=click.IntRange(min=1), help="Rows per table (10, small ones folded)."),
    click.option(
        "--width", type=click.IntRange(min=40), help="Columns of the page (the terminal's, or 100 when piped)."
    ),
)


def output_options(command: Command) -> Command:
    """Options of commands that print a report: its format, and where it goes."""
    return _with(command, _OUTPUT)


def part_options(command: Command) -> Command:
    """Options of commands that analyse traces: which part of them, and what the user knows of the program."""
    return _with(command, _PART)


def page_options(command: Command) -> Command:
    """Options of commands that print a page of tables."""
    return _with(command, _PAGE)


def _with(command: Command, options: Iterable[Callable[[Command], Command]]) -> Command:
    """The command with these options, which its help lists in this order."""
    for option in reversed([*options]):
        command = option(command)
    return command


def analysis_options(step_marker: str | None, input_range: str | None, basis: str) -> Any:
    """What the user says about the program.

    Raises:
        UsageError: a pattern is none, or there is no such basis.
    """
    from traceviz.analyses.derived.steps import valid_pattern
    from traceviz.analyses.options import check_basis
    from traceviz.api import AnalysisOptions
    from traceviz.errors import UsageError

    for option, pattern in (("--step-marker", step_marker), ("--input-range", input_range)):
        if pattern is not None and not (pattern and valid_pattern(pattern)):
            raise UsageError(f"{option} {pattern!r} is not a regular expression.")
    check_basis(basis)  # an unknown name is reported before the work, not after
    return AnalysisOptions(step_marker, input_range, basis)


def write(text: str, output: Path | None, *, force: bool) -> None:
    """Print to stdout, or write the whole file or none.

    Raises:
        OutputError: neither is possible.
    """
    from traceviz.files import new_file

    if output is None:
        try:
            click.echo(_printable(text), nl=False)
        except BrokenPipeError:
            raise  # `| head`: click ends quietly
        except OSError as error:
            raise OutputError("The report cannot be written to stdout.", f"{error.strerror}.") from error
        return
    with new_file(output, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _printable(text: str) -> str:
    """The text with question marks for what the encoding of stdout lacks: a page with gaps is better than none."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def wants_color(output: Path | None = None) -> bool:
    """Whether the page goes to a terminal that shows colours, and nobody asked for none (https://no-color.org)."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return output is None and sys.stdout.isatty() and not is_plain


def page_width() -> int:
    """Columns of the terminal; of a pipe, :data:`PIPED_WIDTH`."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return PIPED_WIDTH
    return max(40, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns)


def progress_bar_on_stderr() -> Any:
    """A bar on stderr where somebody watches it, else nothing."""
    from traceviz.cli.progress import progress_bar

    return progress_bar(enabled=sys.stderr.isatty())
