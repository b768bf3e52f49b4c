"""Common parts of commands: their options as typed values, types of option values, output of text.

>>> @click.command()
... @traces_argument
... @reading_options
... def show(traces: tuple[Path, ...], read: ReadOptions) -> None: ...
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from traceviz.cli import standard_input
from traceviz.cli.boundary import say
from traceviz.core.errors import OutputError, UsageError
from traceviz.core.sanitize import one_line, visible
from traceviz.core.units import parse_bytes, parse_ns
from traceviz.parsers.base import Progress, ReadOptions, silent
from traceviz.render.figures import registry as figure_registry
from traceviz.render.options import LEAST_WIDTH, MOST_WIDTH

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from rich.progress import Progress as RichProgress

    from traceviz.analyses.options import AnalysisOptions
    from traceviz.parsers.base import Progress
    from traceviz.render.options import RenderOptions
    from traceviz.trace.selection import Selection


PATIENCE_S = 0.7
"""Seconds below which reads show no bar."""
LONGEST_STAGE = 100
"""Characters of the stage in the bar, which may name a file."""


@contextmanager
def progress_bar(*, enabled: bool) -> Iterator[Progress]:
    """Yield a :class:`Progress` that draws one bar on stderr and removes it at the end."""
    if not enabled:
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    bar = RichProgress(console=Console(stderr=True), transient=True)
    try:
        yield _Bar(bar)
    finally:
        bar.stop()


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._begin = time.monotonic()
        self._task = bar.add_task("reading", total=None)
        self._started = False

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if not self._started and time.monotonic() - self._begin > PATIENCE_S:
            self._bar.start()
            self._started = True
        from rich.markup import escape

        name = escape(one_line(stage)[:LONGEST_STAGE])
        self._bar.update(self._task, description=name, completed=done, total=total)


PIPED_WIDTH = 100
FORMATS_HELP = "terminal, csv, github, html, json, junit, markdown or svg (default: terminal)."
PAGE_WIDTH = click.IntRange(LEAST_WIDTH, MOST_WIDTH)
WIDTH_HELP = "Columns of the page, up to 1000 (default: those of the terminal, 100 if piped)."
PICTURE_WIDTH_HELP = (
    "Columns of the page, up to 1000 (default: those of the terminal, 100 if piped); of an SVG, pixels (default: 720)."
)
OPEN_HELP = "Open the page in a browser; implies --format html."
HTML, SVG, TERMINAL = "html", "svg", "terminal"
Command = TypeVar("Command", bound=Callable[..., Any])


class Time(click.ParamType[int]):
    """A time, as nanoseconds: ``1.5`` or ``1.5s``, ``1500ms``, ``20us``, ``10min``, ``2h``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the nanoseconds of ``value``."""
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
        """Return the bytes of ``value``."""
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
        """Return the path of ``value``."""
        if not value:
            self.fail("An empty text names nothing.", param, ctx)
        return super().convert(standard_input.file_for(value, ctx), param, ctx)


class SourceName(click.ParamType[str]):
    """A source as text, which may also be a pattern or a URL."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Return the path, pattern or URL of ``value``."""
        return standard_input.file_for(str(value), ctx)


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Format and destination of a report.

    Args:
        format_name: Name of the renderer.
        path: File to write; ``None`` for stdout.
        force: Replace an existing file.
        opens: Open the page in a browser.
        figure: Name of the figure that an SVG shows; ``None`` for the most informative one.
    """

    format_name: str
    path: Path | None
    force: bool
    opens: bool
    figure: str | None = None

    def check(self, sources: Sequence[Path]) -> None:
        """Refuse an unknown format, and a file that cannot be written, before the work instead of after it.

        Raises:
            UsageError: there is no such format or figure, it cannot be written there, or the file is one of the
                sources.
            OutputExistsError: the file exists, and may not be replaced.
        """
        from traceviz.core.files import check_file_free, check_not_source
        from traceviz.render.registry import check_format

        check_format(self.format_name)
        check_destination(self.format_name, self.path, opens=self.opens)
        check_figure_format(self.figure, self.format_name)
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
    """Part of a trace to analyse, and facts about the program from the user.

    Args:
        device: Number of the only device.
        rank: The only rank.
        start: Start of the window, in nanoseconds.
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
        """Return the part of the trace."""
        from traceviz.trace.selection import Selection

        return Selection(self.start, self.end, self.device, self.rank)

    def analysis(self, basis: str = "traceviz") -> AnalysisOptions:
        """Return the facts about the program from the user, and the classes of step time to use.

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
    """Layout options of a page of tables.

    Args:
        top: Rows per table; ``None`` for ten, small ones folded.
        width: Columns of the page; ``None`` for those of the terminal.
    """

    top: int | None
    width: int | None

    def layout(self, output: Path | None, sections: tuple[str, ...] | None = None) -> RenderOptions:
        """Return the layout of a page for ``output`` (``None``: stdout) that shows ``sections`` (``None``: all)."""
        from traceviz.render.options import RenderOptions

        width = self.width or page_width()
        return RenderOptions(width, wants_color(output), self.top, sections, pixels=self.width)


def option_group(
    name: str, values: type[DataclassInstance], *options: Callable[[Any], Any]
) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options in this order, and passes their values to it as one object.

    Args:
        name: The command's parameter that takes the object.
        values: Type of the object; its fields take the parameters of the command with the same names.
        options: The options.
    """
    of_values = [field.name for field in dataclasses.fields(values)]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_value(*args: Any, **kwargs: Any) -> Any:
            value = values(**{field: kwargs.pop(field) for field in of_values if field in kwargs})
            return command(*args, **{name: value}, **kwargs)

        decorated: Any = with_value
        for option in reversed(options):
            decorated = option(decorated)
        return cast("Command", decorated)

    return decorate


def in_lean_process(command: Command) -> Command:
    """Return the command in a process that starts only what it needs, for commands that read traces."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        from traceviz.core.process.memory import reserve_few_addresses
        from traceviz.core.without_pandas import skip_pandas

        skip_pandas()
        reserve_few_addresses()
        # NumPy would start a thread per core, and no matrix is multiplied.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return command(*args, **kwargs)

    return cast("Command", run)


traces_argument = click.argument("traces", nargs=-1, required=True, type=Source(), metavar="TRACE...")
optional_traces_argument = click.argument("traces", nargs=-1, type=Source(), metavar="[TRACE...]")
"""The same for a command that uses the newest run if none is named."""

_reading_options = option_group(
    "read",
    ReadOptions,
    click.option(
        "--reader", metavar="NAME", help="Read TRACE as this format, instead of recognising it by its content."
    ),
    click.option(
        "--run", metavar="NAME", help="Run to read if TRACE is a log folder of several (default: the newest)."
    ),
    click.option("--max-size", type=Size(), help="Largest JSON to read, by its unpacked size, e.g. 200GB."),
    click.option("--max-memory", type=Size(), help="Memory limit for reading, e.g. 8GB (default: all free memory)."),
    click.option(
        *("--no-cache", "cache"),
        is_flag=True,
        flag_value=False,
        default=True,
        help="Export nsys reports again, and keep nothing.",
    ),
)


def reading_options(command: Command) -> Command:
    """Add the options of commands that read traces, as ``read``: :class:`ReadOptions`."""
    lean = in_lean_process(command)

    @functools.wraps(command)
    def run(*args: Any, read: ReadOptions, **kwargs: Any) -> Any:
        from traceviz.core.process.memory import return_freed_memory, reuse_large_blocks

        if read.max_memory is None:
            reuse_large_blocks()
        else:
            return_freed_memory()
        return lean(*args, read=read, **kwargs)

    return _reading_options(cast("Command", run))


def chosen_format(ctx: click.Context, _: click.Parameter, value: str | None) -> str:
    """Return the value of ``--format``; by default a page if it is to be opened, else the terminal format."""
    return value or (HTML if ctx.params.get("opens") else TERMINAL)


def check_destination(format_name: str, output: Path | None, *, opens: bool) -> None:
    """Refuse to print a page or picture in a terminal, and to open other formats, before the work instead of after it.

    Raises:
        UsageError: the format cannot be written there.
    """
    if opens and format_name != HTML:
        raise UsageError(f"--open shows a page, and --format {format_name} is none.", fix="Leave out one of the two.")
    if output is not None or opens or not sys.stdout.isatty():
        return
    if format_name == HTML:
        raise UsageError(
            "Cannot print a page of HTML to a terminal.",
            fix="Write it to a file: -o report.html; or open it in a browser: --open.",
        )
    if format_name == SVG:
        raise UsageError("Cannot print an SVG to a terminal.", fix="Write it to a file: -o figure.svg.")


def check_figure_format(figure: str | None, format_name: str) -> None:
    """Refuse a figure if the format draws none.

    Raises:
        UsageError: the figure is refused.
    """
    if figure is not None and format_name != SVG:
        raise UsageError(
            f"--figure {figure} is a picture, and --format {format_name} shows none of a report's figures alone.",
            fix=f"Add --format {SVG}.",
        )


def figure_option(*schemas: str) -> Callable[[Any], Any]:
    """Make the option of a command whose documents have one of these schemas; it refuses figures of other schemas."""
    known = figure_registry.own_names(*schemas)

    def chosen(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
        if name is not None:
            figure_registry.check_figure(name, *schemas)
        return name

    def completed(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        return [name for name in known if name.startswith(begun)]

    listed = ", ".join(known) + " (default: the first that exists)" * (len(known) > 1)
    return click.option(
        "--figure", metavar="NAME", callback=chosen, shell_complete=completed, help=f"Figure of an SVG: {listed}."
    )


def output_options(schema: str) -> Callable[[Command], Command]:
    """Return the options of commands that print a report of this schema, as ``output``: :class:`OutputOptions`."""
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
    click.option("--top", type=click.IntRange(min=1), help="Rows per table (default: 10, with small ones folded)."),
    click.option("--width", type=PAGE_WIDTH, help=PICTURE_WIDTH_HELP),
)
"""Options of commands that print a page of tables, as ``page``: :class:`PageOptions`."""


def write(text: str, output: Path | None, *, force: bool) -> None:
    """Print a text, or write it to a file, which appears complete or not at all.

    Raises:
        OutputError: stdout or the file cannot be written.
        OutputExistsError: the file exists, and ``force`` is false.
    """
    from traceviz.core.files import new_file

    if output is None:
        try:
            # Question marks replace characters that the encoding of stdout lacks: a page with gaps is better than none.
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
    """Print a text or write it to a file; or open it in a browser, from that file or from a temporary one.

    Raises:
        OutputError: stdout or the file cannot be written.
        OutputExistsError: the file exists, and ``force`` is false.
    """
    path = _write_temporary_page(text) if opens and output is None else output
    if path is None or path is output:
        write(text, output, force=force)
    if not opens or path is None:
        return
    import webbrowser

    if not webbrowser.open(path.resolve().as_uri()):
        say(f"traceviz: no browser could be started here: open {path} in yours")


def _write_temporary_page(text: str) -> Path:
    """Write a page to a new permanent file that only the user can read; report its path on stderr."""
    try:
        handle, name = tempfile.mkstemp(prefix="traceviz-", suffix=".html")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(
            "The page cannot be written to a temporary file.", f"{error.strerror}.", "Name a file: -o report.html."
        ) from error
    say(f"traceviz: the page: {name}")
    return Path(name)


def print_lines(lines: Iterable[str]) -> None:
    """Print the results of a command on stdout, without characters that control a terminal.

    Raises:
        OutputError: stdout cannot be written.
    """
    write("".join(f"{visible(line)}\n" for line in lines), None, force=False)


def wants_color(output: Path | None = None) -> bool:
    """Return whether the page goes to a terminal with colours, and the user has not disabled them (no-color.org)."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return output is None and sys.stdout.isatty() and not is_plain


def page_width() -> int:
    """Return the columns of the terminal; of a pipe, :data:`PIPED_WIDTH`."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return PIPED_WIDTH
    return min(max(LEAST_WIDTH, shutil.get_terminal_size((PIPED_WIDTH, 24)).columns), MOST_WIDTH)


def progress_bar_on_stderr() -> AbstractContextManager[Progress]:
    """Return a progress bar on stderr if that is a terminal, else none."""
    return progress_bar(enabled=sys.stderr.isatty())
