"""The collector that runs the program under ``nsys profile``: CUDA, NVTX ranges and calls of the OS runtime.

::

    sh: nsys's messages -> nsys.log, its files -> tmp/
      nsys profile FLAGS
        sh: stdin, stdout, stderr, TMPDIR and umask as the user has them
          sh: waits for COMMAND (see .wrapped)

The first two shells replace themselves. Without them, nsys would copy the program's output through pipes, which are no
terminal, and store it in the report. It would write its progress bars between the program's lines. A killed nsys would
leave its recording in /tmp, and files of the program would be readable by everyone.

Behavior of nsys 2022.4: it runs the program in a session of its own. It ends upon SIGINT and SIGTERM, even if the
program, to which it passes them on, does not. SIGHUP kills it without a report. On a full disk it waits forever, and
exits with 0 when asked to end. So it gets no signals (:attr:`own_session`), and its exit code is ignored.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from traceviz.collectors.base import NSYS, Availability, Collector, Companion, Harvest, Plan, Problem, Window, Wrapped
from traceviz.collectors.nsys.report import (
    LOG,
    REFUSED,
    REPORT,
    TEMPORARY,
    explain_no_report,
    export_report,
    find_report,
    messages,
)
from traceviz.collectors.nsys.window import SESSION, WHOLE_RUN, ignores_steps, session_of, stop_after
from traceviz.collectors.program.companion_process import may_have_begun, read_wrapped, watched_command
from traceviz.collectors.program.processes import with_variable
from traceviz.core.errors import MissingToolError, UsageError
from traceviz.core.nsys_program import Nsys, find_importer, find_nsys, output_of, version_in

TRACE = ("--trace", "-t")


def given(arguments: tuple[str, ...], long: str, short: str) -> bool:
    """Return whether a flag is among ``arguments``, in any of its spellings. nsys also accepts prefixes of a long flag.

    >>> [given((flag,), "--trace", "-t") for flag in ("-tcuda", "-t", "--trace=cuda", "--tra", "-x", "--trace-fork")]
    [True, True, True, True, False, False]
    """
    return any(True for _ in values(arguments, long, short))


def values(arguments: tuple[str, ...], long: str, short: str) -> Iterator[str]:
    """Yield the value of a flag for each time that it is among ``arguments``; empty if it has none.

    >>> list(values(("--tra=cuda", "-tosrt", "-t", "nvtx", "--trace-fork=x", "-t"), "--trace", "-t"))
    ['cuda', 'osrt', 'nvtx', '']
    """
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        following = "".join(arguments[position + 1 : position + 2])
        if len(name) > len("--") and long.startswith(name):
            yield value if equals else following
        elif short and argument.startswith(short) and not argument.startswith("--"):
            yield argument.removeprefix(short).removeprefix("=") if argument != short else following


def traces_cuda(arguments: tuple[str, ...]) -> bool:
    """Return whether ``nsys profile`` with these flags of the user traces CUDA, as it does by default.

    >>> [traces_cuda(flags) for flags in ((), ("--trac=nvtx,osrt",), ("-t", "cuda,nvtx"), ("-tnone",))]
    [True, False, True, False]
    """
    *_, traced = ("cuda", *values(arguments, *TRACE))
    return any(kind.strip().startswith(("cuda", "cublas", "cudnn")) for kind in traced.split(","))


OLDEST = "2020.3"
"""The first nsys whose reports we read."""

FLAGS = (
    (*TRACE, "cuda,nvtx,osrt"),
    ("--sample", "-s", "none"),  # a seven-second import of TensorFlow gives 346 MB of samples
    ("--cpuctxsw", "", "none"),
    ("--cuda-graph-trace", "", "node"),  # a graph recorded as one unit has no kernels to judge
    ("--wait", "", "primary"),  # do not wait for a process that the program leaves running
    ("--kill", "", "none"),  # do not kill it either: without us it would live on
    ("--force-overwrite", "-f", "true"),
)
"""Our flags of ``nsys profile``: long, short, value. A flag of the user replaces ours."""

_OUTPUT = ("--output", "-o")
_OUTER = (
    'log=$1 tmp=$2; shift 2; command -p mkdir -p "$tmp"; exec 8>&1 9>&2 >"$log" 2>&1; '
    'if [ "${TMPDIR+set}" ]; then export TRACEVIZ_TMPDIR="$TMPDIR"; fi; export TMPDIR="$tmp"; '
    'TRACEVIZ_UMASK=$(umask); export TRACEVIZ_UMASK; exec "$@"'
)
_INNER = (
    'if [ "${TRACEVIZ_TMPDIR+set}" ]; then TMPDIR=$TRACEVIZ_TMPDIR; unset TRACEVIZ_TMPDIR; else unset TMPDIR; fi; '
    'umask "$TRACEVIZ_UMASK"; unset TRACEVIZ_UMASK; exec "$@" >&8 2>&9 8>&- 9>&-'
)


class NsysCollector(Collector):
    """Wraps the program in ``nsys profile``; exports its report on this machine, which has a matching nsys."""

    name: ClassVar[str] = NSYS
    title: ClassVar[str] = "Nsight Systems"
    traces_device: ClassVar[bool] = True
    own_session: ClassVar[bool] = True
    room_bytes: ClassVar[int] = 256 << 20
    """nsys maps its files into the program. If the disk has no space for them, the program dies of SIGBUS or SIGSEGV.
    TensorFlow dies with 8 MB, not with 32 MB."""

    def availability(self) -> Availability:
        """Return ready if there is an nsys that runs; it needs no privileges, because it samples nothing."""
        try:
            nsys = find_nsys()
        except MissingToolError as error:
            return Availability("not-installed", error.what, error.fix)
        if nsys is None:
            return Availability("not-installed", "There is no nsys on PATH nor where packages put it.", _to_install())
        if not nsys.version:
            return Availability("unsupported", f"{nsys.path} does not tell its version.", f"Try: {nsys.path} --version")
        if version_in(nsys.version) < version_in(OLDEST):
            too_old = f"nsys {nsys.version} at {nsys.path}; {OLDEST} or newer is needed."
            return Availability("too-old", too_old, _to_install())
        detail = f"nsys {nsys.version} at {nsys.path}"
        target = nsys.path.resolve().parent
        if any(target.parent.glob("host-linux-*/QdstrmImporter")) or not target.name.startswith("target-"):
            return Availability("ready", f"{detail}.")
        importer = find_importer(nsys.path)  # which we run on the raw stream, because nsys does not find it
        if importer is None:
            why = f"{detail}; its QdstrmImporter is missing: it leaves a .qdstrm, to be read where nsys is complete."
            return Availability("ready", why, _to_install())
        link = f"sudo ln -s {importer.parent} {target.parent / importer.parent.name}"
        return Availability("ready", f"{detail}; it does not find its importer, which is run for it.", link)

    def command(self, command: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Return ``nsys profile`` around ``command``.

        Raises:
            MissingToolError: there is no nsys.
            UsageError: the user's flags send the report elsewhere, or nsys cannot handle a name.
        """
        folder = plan.raw(self.name)
        return (
            *("/bin/sh", "-c", _OUTER, "nsys", str(folder / LOG), str(folder / TEMPORARY)),
            *_profile(command, plan),
            *("/bin/sh", "-c", _INNER, "program", *watched_command(command, folder)),
        )

    def typed(self, command: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
        """Return ``nsys profile`` around ``command``, without our shells."""
        return (*_profile(command, plan), *command)

    def caution(self, plan: Plan) -> str:
        """Return a warning if the user named steps: nsys records the whole run."""
        return WHOLE_RUN if ignores_steps(plan.window) else ""

    def start(self, plan: Plan, pid: int) -> Companion | None:
        """Return the companion that ends the recording after ``--duration``; ``None`` if there is no such end."""
        seconds = plan.window.duration_s
        nsys = None if seconds is None else find_nsys()
        if seconds is None or nsys is None or not _can_stop(plan, nsys):
            return None
        return stop_after(seconds, nsys.path, plan, pid)

    def program(self, plan: Plan) -> Wrapped | None:
        """Return the program, once nsys has started it."""
        return read_wrapped(plan.raw(self.name))

    def last_words(self, plan: Plan) -> str:
        """Return the last line in its log."""
        said = messages(plan.raw(self.name))
        return f"It said last: {said[-1].rstrip('.')}." if said else ""

    def may_start_again(self, plan: Plan) -> bool:
        """Return whether another try may help: on a busy machine, the processes of nsys 2022.4 may lose each other."""
        folder = plan.raw(self.name)
        return not may_have_begun(folder) and explain_no_report(folder).code != REFUSED

    def helpers(self, plan: Plan) -> Iterable[int]:
        """Return the agents of a killed nsys: they would wait for another nsys and keep the user's terminal open."""
        return with_variable("TMPDIR", str(plan.raw(self.name) / TEMPORARY))

    def harvest(self, plan: Plan) -> Harvest:
        """Return the report and its export, or the messages of nsys if there is no report.

        The folder for nsys's own files is removed at the end.
        """
        folder, nsys = plan.raw(self.name), find_nsys()
        can_stop, window = nsys is not None and _can_stop(plan, nsys), plan.window
        delay = 0 if window.delay_s is None else round(window.delay_s)  # nsys takes whole seconds
        since = f"from {delay} s after the start" if delay else "from the start"
        to_the_end = f"{since} to the end" if delay else "the whole run"
        facts: dict[str, Any] = {
            "framework": "nsys",
            "version": nsys.version if nsys else None,
            "window": f"{window.duration_s:g} s {since}" if window.duration_s is not None and can_stop else to_the_end,
        }
        report, problems = find_report(folder, nsys)
        if report is not None and nsys is not None and report.suffix != ".qdstrm":
            began = time.monotonic_ns()
            exported, trouble = export_report(nsys, report)
            facts |= {"report_bytes": report.stat().st_size, "export_ns": time.monotonic_ns() - began}
            sources, problems = (*exported, report), (*problems, *trouble)
        else:
            sources = (report,) if report is not None else ()
        shutil.rmtree(folder / TEMPORARY, ignore_errors=True)
        if window.duration_s is not None and not can_stop:
            why = "nsys recorded to the end of the program: this nsys, or its --session-new, leaves no way to stop it."
            fix = "Use a newer nsys, and leave --session-new out of --nsys-args."
            problems = (*problems, Problem("nsys-to-the-end", why, fix))
        elif ignores_steps(window):
            fix = "To bound nsys too: --delay and --duration."
            problems = (*problems, Problem("nsys-whole-run", f"{WHOLE_RUN}.", fix))
        return Harvest(sources, problems, facts)


def _profile(command: tuple[str, ...], plan: Plan) -> tuple[str, ...]:
    """Return ``nsys profile`` and its flags for this command."""
    # The internal messages of nsys hold UTF-8 only: other names make it end without starting the program.
    names = (*command, str(plan.raw(NsysCollector.name)), str(Path.cwd()))
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "nsys cannot run a command whose arguments or folder are not UTF-8.",
            fix="Rename it, or record without nsys: --with tensorflow,torch,resources.",
        ) from error
    nsys = find_nsys()
    if nsys is None:
        raise MissingToolError("There is no nsys.", fix=_to_install())
    return (str(nsys.path), "profile", *profile_flags(plan, output_of(nsys.path, "profile", "--help")))


def profile_flags(plan: Plan, help_text: str) -> tuple[str, ...]:
    """Return flags of ``nsys profile``: ours, without those that the user gives or this nsys does not know.

    nsys refuses a flag that is given twice, so ours is dropped if the user gives it under either name.

    Args:
        plan: The plan of the run.
        help_text: Output of ``nsys profile --help``; if it is empty, all flags are assumed to exist.

    Raises:
        UsageError: the user's flags send the report elsewhere.
    """
    if given(plan.nsys_args, *_OUTPUT):
        raise UsageError(
            "--nsys-args may not contain --output: the report belongs in the run folder.",
            fix="Name the run folder instead: traceviz collect -o RUN.",
        )
    ours = [
        f"{long}={value}"
        for long, short, value in (*FLAGS, *_flags_of_window(plan.window, plan))
        if not given(plan.nsys_args, long, short) and _is_known(long, help_text)
    ]
    return (*ours, f"--output={plan.raw(NsysCollector.name) / Path(REPORT).stem}", *plan.nsys_args)


def _is_known(flag: str, help_text: str) -> bool:
    """Return whether this nsys has the flag; assume so if its help does not even list ``--trace``."""
    named = frozenset(re.findall(r"--[a-z][a-z-]*", help_text))
    return "--trace" not in named or flag in named


def _flags_of_window(window: Window, plan: Plan) -> tuple[tuple[str, str, str], ...]:
    """Return the flags of ``--delay``, in whole seconds as nsys requires, and of the session for ``--duration``."""
    delay = 0 if window.delay_s is None else round(window.delay_s)
    return (
        *((("--delay", "-y", str(delay)),) if delay else ()),
        *(((SESSION, "", session_of(plan)),) if window.duration_s is not None else ()),
    )


def _can_stop(plan: Plan, nsys: Nsys) -> bool:
    """Return whether ``nsys stop`` can end the recording: there is a duration, and we named the session."""
    if plan.window.duration_s is None or given(plan.nsys_args, SESSION, ""):
        return False
    return _is_known(SESSION, output_of(nsys.path, "profile", "--help"))


@cache
def _to_install() -> str:
    if shutil.which("apt-get"):
        return "sudo apt-get install nsight-systems (Debian: of the component non-free; else NVIDIA's repository)"
    return "Install it from https://developer.nvidia.com/nsight-systems/get-started"
