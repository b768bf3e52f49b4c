"""What commands have in common: their options as typed values, types of option values, where text goes.

>>> @click.command()
... @traces_argument
... @reading_options
... def show(traces: tuple[Path, ...], reading: ReadingOptions) -> None: ...
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from traceviz.cli import standard_input
from traceviz.cli.figures import PICTURE_WIDTH_HELP, check_drawn, figure_option
from traceviz.cli.in_browser import OPEN_HELP, check_page, chosen_format, open_in_browser, temporary_page
from traceviz.core.errors import OutputError, UsageError
from traceviz.core.sanitize import visible
from traceviz.core.units import parse_bytes, parse_ns
from traceviz.render.options import LEAST_WIDTH, MOST_WIDTH

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from traceviz.analyses.options import AnalysisOptions
    from traceviz.parsers.base import Progress
    from traceviz.render.options import RenderOptions
    from traceviz.trace.selection import Selection

PIPED_WIDTH = 100
FORMATS_HELP = "terminal, csv, github, html, json, junit, markdown or svg."
PAGE_WIDTH = click.IntRange(LEAST_WIDTH, MOST_WIDTH)
WIDTH_HELP = "Columns of the page, up to 1000 (the terminal's, or 100 when piped)."
Command = TypeVar("Command", bound=Callable[..., Any])


class Time(click.ParamType[int]):
    """A time, as nanoseconds: ``1.5`` or ``1.5s``, ``1500ms``, ``20us``, ``10min``, ``2h``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Nanoseconds of ``value``."""
        if isinstance(value, int):
            return value
        nanoseconds = parse_ns(str(value))
        return (
            self.fail(f"{value!r} is not a time such as 1.5s, 1500ms or 20us", param, ctx)
            if nanoseconds is None
            else nanoseconds
        )


class Size(click.ParamType[int]):
    """A size, as bytes: ``64GB``, ``500MB``, ``64GiB``, or without a unit."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes of ``value``."""
        if isinstance(value, int):
            return value
        size = parse_bytes(str(value))
        return self.fail(f"{value!r} is not a size such as 64GB or 500MB", param, ctx) if size is None else size


class Source(click.Path):
    """A trace, run or report; ``-`` is standard input.

    An empty text, as an unset shell variable leaves it, does not mean this folder.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of ``value``."""
        if not value:
            self.fail("An empty text names nothing.", param, ctx)
        return super().convert(standard_input.file_for(value, ctx), param, ctx)


class SourceName(click.ParamType[str]):
    """The same as text: also a pattern or a URL."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """The path, pattern or URL of ``value``."""
        return standard_input.file_for(str(value), ctx)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How traces are read.

    Args:
        reader: Identifier of the format, instead of recognising it.
        run: Run to read, of a log folder of several.
        max_size: The longest JSON to read, unpacked, in bytes.
        max_memory: Most memory to take while reading, in bytes.
        cache: Whether exports of nsys are kept, and those that were kept are used.
    """

    reader: str | None
    run: str | None
    max_size: int | None
    max_memory: int | None
    cache: bool


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """The format of a report, and where it goes.

    Args:
        format_name: Name of the renderer.
        path: File to write; ``None`` for stdout.
        force: Whether the file may be replaced.
        opens: Whether the page is opened in a browser.
        figure: Name of the figure that an SVG shows; ``None`` for the one that says most.
    """

    format_name: str
    path: Path | None
    force: bool
    opens: bool
    figure: str | None = None

    def check(self, sources: Sequence[Path]) -> None:
        """Refuse an unknown format, and a file that cannot be written, before the work instead of after it.

        Raises:
            UsageError: there is no such format or figure, it cannot go there, or the file is one of the sources.
            OutputExistsError: the file exists, and may not be replaced.
        """
        from traceviz.core.files import check_file_free, check_not_source
        from traceviz.render.registry import check_format

        check_format(self.format_name)
        check_page(self.format_name, self.path, opens=self.opens)
        check_drawn(self.figure, self.format_name, self.path)
        if self.path is None:
            return
        for source in sources:
            check_not_source(source, self.path)
        check_file_free(self.path, force=self.force)

    def write(self, text: str) -> None:
        """Print a text, write it to the file, or open it in a browser: see :func:`show`."""
        show(text, self.path, force=self.force, opens=self.opens)


@dataclass(frozen=True, slots=True)
class PartOptions:
    """Which part of a trace is analysed, and what the user knows about the program.

    Args:
        device: Number of the only device.
        rank: The only rank.
        start: Begin of the window, in nanoseconds.
        end: End of the window, in nanoseconds.
        step_marker: Pattern of ranges that are training steps.
        input_range: Pattern of ranges in which input is loaded.
    """

    device: int | None
    rank: int | None
    start: int | None
    end: int | None
    step_marker: str | None
    input_range: str | None

    def selection(self) -> Selection:
        """The part of the trace."""
        from traceviz.trace.selection import Selection

        return Selection(self.start, self.end, self.device, self.rank)

    def analysis(self, basis: str = "traceviz") -> AnalysisOptions:
        """What the user knows about the program, and the classes of step time to use.

        Raises:
            UsageError: a pattern is not a regular expression, or there is no such basis.
        """
        from traceviz.analyses.options import AnalysisOptions, check_basis, is_pattern

        for option, pattern in (("--step-marker", self.step_marker), ("--input-range", self.input_range)):
            if pattern is not None and not is_pattern(pattern):
                raise UsageError(f"{option} {pattern!r} is not a regular expression.")
        check_basis(basis)  # an unknown name is reported before the work, not after
        return AnalysisOptions(self.step_marker, self.input_range, basis)


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How a page of tables looks.

    Args:
        top: Rows per table; ``None`` for ten, small ones folded.
        width: Columns of the page; ``None`` for those of the terminal.
    """

    top: int | None
    width: int | None

    def layout(self, output: Path | None, sections: tuple[str, ...] | None = None) -> RenderOptions:
        """The layout of a page that goes to ``output`` (``None``: stdout) and shows ``sections`` (``None``: all)."""
        from traceviz.render.options import RenderOptions

        width = self.width or page_width()
        return RenderOptions(width, wants_color(output), self.top, sections, pixels=self.width)


def option_group(
    name: str, values: type[DataclassInstance], *options: Callable[[Any], Any]
) -> Callable[[Command], Command]:
    """A decorator that gives a command these options, in this order, and calls it with one value in their place.

    Args:
        name: The command's parameter that takes the value.
        values: Type of the value; each of its fields is named like the parameter of an option.
        options: The options.
    """
    fields = [field.name for field in dataclasses.fields(values)]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_value(*args: Any, **kwargs: Any) -> Any:
            value = values(**{field: kwargs.pop(field) for field in fields})
            return command(*args, **{name: value}, **kwargs)

        decorated: Any = with_value
        for option in reversed(options):
            decorated = option(decorated)
        return cast("Command", decorated)

    return decorate


def in_lean_process(command: Command) -> Command:
    """The command, in a process that starts no more than it needs: for commands that read traces."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from traceviz.cli.little_memory import within_address_space
        from traceviz.core.without_pandas import skip_pandas

        skip_pandas()
        os.environ.setdefault(
            "OPENBLAS_NUM_THREADS", "1"
        )  # NumPy starts a thread per core, and no matrix is multiplied
        return within_address_space(functools.partial(command, *args, **kwargs))

    return cast("Command", run)


traces_argument = click.argument("traces", nargs=-1, required=True, type=Source(), metavar="TRACE...")
optional_traces_argument = click.argument("traces", nargs=-1, type=Source(), metavar="[TRACE...]")
"""The same for a command that takes the newest run where none is named."""

_reading_options = option_group(
    "reading",
    ReadingOptions,
    click.option(
        "--reader", metavar="NAME", help="Read TRACE as this format, instead of recognising it by its content."
    ),
    click.option("--run", metavar="NAME", help="Run to read if TRACE is a log folder of several (newest)."),
    click.option("--max-size", type=Size(), help="Largest JSON to read, by its unpacked size, e.g. 200GB."),
    click.option("--max-memory", type=Size(), help="Most memory to take for reading, e.g. 8GB (what is free)."),
    click.option(
        *("--no-cache", "cache"),
        is_flag=True,
        flag_value=False,
        default=True,
        help="Export nsys reports anew, and keep nothing.",
    ),
)


def reading_options(command: Command) -> Command:
    """Options of commands that read traces, as ``reading``: :class:`ReadingOptions`."""
    lean = in_lean_process(command)

    @functools.wraps(command)
    def run(*args: Any, reading: ReadingOptions, **kwargs: Any) -> Any:
        from traceviz.cli.little_memory import give_back_soon
        from traceviz.core.process.memory import reuse_large_blocks

        if reading.max_memory is None:
            reuse_large_blocks()
        else:
            give_back_soon()
        return lean(*args, reading=reading, **kwargs)

    return _reading_options(cast("Command", run))


def output_options(schema: str) -> Callable[[Command], Command]:
    """Options of commands that print a report of this schema, as ``output``: :class:`OutputOptions`."""
    return option_group(
        "output",
        OutputOptions,
        click.option("--format", "format_name", callback=chosen_format, metavar="NAME", help=FORMATS_HELP),
        figure_option(schema),
        click.option(
            *("-o", "--output", "path"),
            type=click.Path(path_type=Path),
            help="Write to this file instead of stdout.",
        ),
        click.option("--force", is_flag=True, help="Replace an existing output file."),
        click.option("--open", "opens", is_flag=True, is_eager=True, help=OPEN_HELP),
    )


part_options = option_group(
    "part",
    PartOptions,
    click.option("--device", type=int, help="Only the device with this number."),
    click.option("--rank", type=int, help="Only this rank (process)."),
    click.option("--from", "start", type=Time(), help="Start of the analysed window, e.g. 1.5s."),
    click.option("--to", "end", type=Time(), help="End of the analysed window, e.g. 20s."),
    click.option("--step-marker", metavar="REGEX", help="Ranges or annotations that are training steps."),
    click.option("--input-range", metavar="REGEX", help="Ranges or annotations that load input."),
)
"""Options of commands that analyse traces, as ``part``: :class:`PartOptions`."""

page_options = option_group(
    "page",
    PageOptions,
    click.option("--top", type=click.IntRange(min=1), help="Rows per table (10, with small ones folded)."),
    click.option("--width", type=PAGE_WIDTH, help=PICTURE_WIDTH_HELP),
)
"""Options of commands that print a page of tables, as ``page``: :class:`PageOptions`."""


def write(text: str, output: Path | None, *, force: bool) -> None:
    """Print a text, or write it to a file, which is complete or not there.

    Raises:
        OutputError: stdout or the file cannot be written.
        OutputExistsError: the file exists, and ``force`` is false.
    """
    from traceviz.core.files import new_file

    if output is None:
        try:
            # Question marks for what the encoding of stdout lacks: a page with gaps is better than none.
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            click.echo(text.encode(encoding, "replace").decode(encoding), nl=False)
        except BrokenPipeError:
            raise  # `| head`: click ends quietly
        except OSError as error:
            raise OutputError("The report cannot be written to stdout.", f"{error.strerror}.") from error
        return
    with new_file(output, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def show(text: str, output: Path | None, *, force: bool, opens: bool) -> None:
    """Print a text or write it to a file; or open it in a browser, from the file or from one that is made for it.

    Raises:
        OutputError: stdout or the file cannot be written.
        OutputExistsError: the file exists, and ``force`` is false.
    """
    path = temporary_page(text) if opens and output is None else output
    if path is None or path is output:
        write(text, output, force=force)
    if opens and path is not None:
        open_in_browser(path)


def print_lines(lines: Iterable[str]) -> None:
    """Print the results of a command on stdout, with nothing in them that steers a terminal.

    Raises:
        OutputError: stdout cannot be written.
    """
    write("".join(f"{visible(line)}\n" for line in lines), None, force=False)


def wants_color(output: Path | None = None) -> bool:
    """Whether the page goes to a terminal that shows colours, and the user has not turned them off (no-color.org)."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return output is None and sys.stdout.isatty() and not is_plain


def page_width() -> int:
    """Columns of the terminal; of a pipe, :data:`PIPED_WIDTH`."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return PIPED_WIDTH
    return min(max(LEAST_WIDTH, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns), MOST_WIDTH)


def progress_bar_on_stderr() -> AbstractContextManager[Progress]:
    """A progress bar on stderr where that is a terminal, else none."""
    from traceviz.cli.progress import progress_bar

    return progress_bar(enabled=sys.stderr.isatty())
