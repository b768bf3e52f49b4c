"""``%%traceviz``: record the cell below it, and show its report.

Only this module needs IPython. ``%load_ext traceviz`` imports it, so IPython is already loaded.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from IPython.core.error import UsageError as MagicUsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from traceviz.api import report_on
from traceviz.cli.collect import read_options
from traceviz.collectors.base import Problem
from traceviz.collectors.run.folder import drop_raw
from traceviz.collectors.run.manifest import Manifest, write_manifest
from traceviz.collectors.this_process import WHOLE, Around, CollectOptions, Part, recorded_here, watch_frameworks
from traceviz.core.errors import TracevizError, UsageError
from traceviz.core.notebook_repr import Shown
from traceviz.report import Report
from traceviz.runs.run_tables import write_run_tables
from traceviz.untrusted.errors import foreign_errors_in_words


@dataclass(frozen=True, slots=True, repr=False)
class Recorded(Shown):
    """A part of a notebook that was recorded.

    Args:
        folder: The run folder.
        status: ``finished``, ``failed`` or ``interrupted``.
        report: Its report; ``None`` if nothing readable was recorded.
        problems: What went wrong in the recording, one sentence each.
    """

    shown_as: ClassVar[str] = "recorded"
    folder: Path
    status: str
    report: Report | None
    problems: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Recorded({str(self.folder)!r}, {self.status})"


def with_report(part: Part) -> Recorded:
    """Make tables of the recording and analyse them; keep the recording if that fails."""
    manifest, options = part.manifest, part.run.options
    report = None
    try:
        with foreign_errors_in_words("What was recorded cannot be read."):
            rows = write_run_tables(part.folder, keep_private=options.keep_private)
        report = report_on(part.folder)
    except TracevizError as error:
        manifest = manifest.with_problems((Problem("no-tables", f"{error.what} {error.why}".strip(), error.fix),))
    else:
        said = report.verdict
        verdict = {"code": said.code, "sentence": said.sentence, "cause": said.cause}
        manifest = replace(manifest, tables=rows, verdict=verdict)
        if rows and not options.keep_raw:
            drop_raw(part.folder)
    write_manifest(part.folder, manifest)
    return Recorded(part.folder, manifest.status, report, _problems(manifest))


def _problems(manifest: Manifest) -> tuple[str, ...]:
    every = (*(problem for entry in manifest.collectors for problem in entry.problems), *manifest.problems)
    return tuple(dict.fromkeys(f"{problem.message} {problem.fix}".strip() for problem in every))


NAME = "cell"
"""Name of a run without a name of its own."""

HELP = """Record the cell below, and show its report.

%%traceviz [--with NAMES] [-o RUN] [--name NAME] [--tag KEY=VALUE] [--duration TIME | --steps FIRST:END] [--force]

Records with what works in a running process: the profilers of torch, TensorFlow and JAX where the cell uses them
(torch, tensorflow, jax), Python's stacks (stacks), CPU, memory, threads and GPUs (resources). The run folder, by
default traceviz-runs/cell-TIME, is like one of traceviz collect. The result of the cell is what was recorded:

    _.report     the report, as from traceviz.analyze
    _.folder     the run folder

--with, --profilers NAMES  Collectors, separated by commas (auto: all that are ready).
-o, --output RUN           Run folder to create.
--name NAME                Name of the run (cell).
--tag KEY=VALUE            A tag to find the run by; may be repeated.
--duration TIME            How much of the cell the profilers record, from its beginning (30s). Stacks and resources are
                           sampled throughout.
--delay TIME               Let the profilers begin this long after the cell did.
--steps FIRST:END          Let them record these steps instead, counted from 0 in the cell.
--rate, --stacks-rate N    Samples of resources and of stacks per second (10, 100).
--no-keep-raw              Drop the profilers' own files once tables have been made of them.
--keep-private             Store the host's name, too.
--force                    Replace an existing run folder.

If the cell fails, what was recorded until then is kept and shown, then the error as ever. Cells that await at their top
level cannot be recorded."""

_KERNEL = frozenset({"IPython", "debugpy", "ipykernel", "jupyter_client", "pydevd", "tornado", "zmq"})
"""Packages of a notebook's kernel."""
_ALIASES = {"--profilers": "--with"}
_WHOLE_PROGRAMS = ("--nsys-args", "--nvtx", "--time-limit", "--dry-run")
"""Options of ``traceviz collect`` that need a program of their own."""
_WINDOW = ("--steps", "--delay", "--duration")


def load(shell: Any) -> None:
    """Register the magic, and install hooks that see everything imported and compiled from now on."""
    shell.register_magic_function(_magic, magic_kind="cell", magic_name="traceviz")
    watch_frameworks()


def _magic(line: str, cell: str) -> Recorded | None:
    __tracebackhide__ = True  # errors of the cell look as if it had run alone
    from IPython import get_ipython  # noqa: PLC0415 (the one that runs this)

    words = _words(line)
    if "--help" in words or "-h" in words:
        print(HELP)  # noqa: T201 (magics answer so)
        return None
    shell: Any = get_ipython()
    shell.compile.ast_parse(shell.transform_cell(cell))  # raises before recording if the cell is not valid Python
    try:
        options = cell_options(words)
        around = Around(frozenset(threads_of_kernel()), InteractiveShell.run_code.__code__, _magic.__code__)
        with recorded_here(options, around=around, tell=_say) as part:
            part.error = _run(shell, cell)
        recorded = with_report(part)
    except TracevizError as error:
        raise MagicUsageError(" ".join(filter(None, (error.what, error.why, error.fix)))) from None
    if part.error is None:
        return recorded
    display(recorded)  # type: ignore[no-untyped-call]
    raise part.error


_magic.__doc__ = HELP


def cell_options(words: Sequence[str]) -> CollectOptions:
    """Read the options of ``%%traceviz``: those of ``traceviz collect`` that apply to a part of a program.

    Raises:
        UsageError: an option is invalid, or does not apply.
    """
    given = [_ALIASES.get(word, word) for word in words]
    for option in _WHOLE_PROGRAMS:
        if any(word == option or word.startswith(f"{option}=") for word in given):
            raise UsageError(f"{option} is for a whole program.", fix="Run it with traceviz collect.")
    try:
        options = read_options(given, {})
    except UsageError as error:
        raise UsageError(f"{shlex.join(words)!r} are no options of %%traceviz.", error.why, error.fix) from error
    if not any(word.split("=")[0] in _WINDOW for word in given):
        options = replace(options, window=WHOLE)
    name = options.name or NAME
    return replace(options, name=name, output=None if options.output is None else Path(options.output))


_SHOWS = "showtraceback"
"""Method of IPython's shell that shows exceptions."""


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise MagicUsageError(f"The options of %%traceviz cannot be split: {error}.") from error


def _run(shell: Any, cell: str) -> BaseException | None:
    """Run the cell and return the error that ended it, which has not been shown yet."""
    with _errors_kept(shell):
        # Replace the line of the magic with a comment, so that line numbers match the notebook.
        result = shell.run_cell(
            cell if cell.lstrip().startswith("%%") else f"# %%traceviz\n{cell}", store_history=False
        )
    error: BaseException | None = result.error_before_exec or result.error_in_exec
    return error


def threads_of_kernel() -> list[int]:
    """Return the identifiers of threads that belong to IPython and the kernel."""
    return [thread.ident for thread in threading.enumerate() if thread.ident and _is_of_kernel(thread)]


def _is_of_kernel(thread: threading.Thread) -> bool:
    """Return whether the thread, or the function that it runs, is part of IPython or the kernel."""
    target: Any = getattr(thread, "_target", None)
    homes = (type(thread), type(getattr(target, "__self__", None)), target)
    return any(str(getattr(home, "__module__", "")).partition(".")[0] in _KERNEL for home in homes)


@contextmanager
def _errors_kept(shell: Any) -> Iterator[None]:
    """Suppress IPython's own display of errors; the caller raises them again after the recording."""
    own = vars(shell).get(_SHOWS)
    setattr(shell, _SHOWS, lambda *_, **__: None)
    try:
        yield
    finally:
        delattr(shell, _SHOWS) if own is None else setattr(shell, _SHOWS, own)


def _say(line: str) -> None:
    print(f"traceviz: {line}")  # noqa: T201 (beside what the cell prints)
