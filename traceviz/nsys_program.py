"""The installed nsys: where it is, what it can export, and running it without trusting it.

nsys leaves half-written files behind when it fails, and returns 0 where it should not: results count only if they
pass the checks of the reader that opens them, and everything happens in a folder that is removed in any case.

The environment variable ``TRACEVIZ_NSYS`` names an nsys to use instead of the first one on PATH.
"""

from __future__ import annotations

import glob
import os
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceviz.errors import MissingToolError

OVERRIDE = "TRACEVIZ_NSYS"
PLACES = (
    "/usr/lib/nsight-systems/bin/nsys",
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/usr/local/cuda*/bin/nsys",
)
"""Where packages put nsys when they do not put it on PATH."""
IMPORTER_PLACES = (
    "/usr/lib/nsight-systems/host-linux-*/QdstrmImporter",
    "/opt/nvidia/nsight-systems/*/host-linux-*/QdstrmImporter",
    "/opt/nvidia/nsight-systems-cli/*/host-linux-*/QdstrmImporter",
)
TOO_OLD = ("Version number is invalid", "ProtobufParseException", "Unsupported file format", "newer version of")
"""What nsys says of a file that a newer nsys wrote."""

_VERSION = re.compile(r"\b(20\d\d(?:\.\d+){2,3})")
_PERCENT = re.compile(rb"(\d{1,3})%")
_ABSOLUTE_PATH = re.compile(r"(?<![\w/.\]])(?:/|~/|[A-Za-z]:\\)[^\s'\",;()<>]+")
_KEPT_OUTPUT = 1 << 16

Progress = Callable[[str, int, int], None]
"""Called with the stage, what is done of it, and its total."""


@dataclass(frozen=True, slots=True)
class Nsys:
    """An nsys program.

    Args:
        path: The program.
        version: Its version, for example ``2022.4.2.1``; empty where it does not say.
        export_help: Help text of its ``export`` command.
    """

    path: Path
    version: str
    export_help: str

    @property
    def export_type(self) -> str:
        """The fastest format that it can export and we can read."""
        return "parquetdir" if "parquetdir" in self.export_help else "sqlite"

    def export_command(self, report: Path, output: Path) -> list[str]:
        """Arguments that export ``report``. Tables without rows are left out: they may not have been recorded."""
        lazy = ["--lazy=true"] if "--lazy" in self.export_help else []
        return [
            str(self.path),
            "export",
            f"--type={self.export_type}",
            *lazy,
            "-o",
            str(output),
            str(report.absolute()),
        ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended, and the last of what it said."""

    status: int
    said: str

    @property
    def too_old(self) -> bool:
        """Whether the program says that a newer one wrote the file."""
        return any(phrase in self.said for phrase in TOO_OLD)

    @property
    def last_words(self) -> str:
        """The last line without progress bars, fit to be shown."""
        lines = [line.strip() for line in re.split(r"[\r\n]", self.said)]
        words = [line for line in lines if line and "%" not in line and not line.startswith("[=")]
        return without_paths(words[-1])[:300] if words else f"exit status {self.status}"


def without_paths(text: str) -> str:
    """``text`` on one line, with every absolute path replaced: paths name users and machines."""
    return _ABSOLUTE_PATH.sub("[path]", " ".join(text.split()))


def find_nsys() -> Nsys | None:
    """The nsys to use: ``TRACEVIZ_NSYS``, else the one on PATH, else the newest where packages put it.

    Raises:
        MissingToolError: ``TRACEVIZ_NSYS`` names something that is no program.
    """
    override = os.environ.get(OVERRIDE)
    if override and not _is_program(override):
        raise MissingToolError(
            f"{OVERRIDE} names {override}, which is not a program.", fix=f"Mend or unset {OVERRIDE}."
        )
    for candidate in (override, shutil.which("nsys"), *_newest_first(PLACES)):
        if candidate and _is_program(candidate):
            path = Path(candidate)
            version = _VERSION.search(ask(path, "--version"))
            return Nsys(path, version[1] if version else "", ask(path, "export", "--help"))
    return None


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and Path(path).is_file()


def find_importer(nsys: Path | None = None) -> Path | None:
    """QdstrmImporter, which packages hide: beside the folder that nsys really lies in, or where they install hosts.

    Args:
        nsys: The nsys that it should belong to; without it, the one on PATH.
    """
    program = nsys or shutil.which("nsys")
    beside = Path(program).resolve().parent.parent if program else None
    patterns = [f"{glob.escape(str(beside))}/host-linux-*/QdstrmImporter"] if beside else []
    candidates = [*_newest_first(patterns), shutil.which("QdstrmImporter"), *_newest_first(IMPORTER_PLACES)]
    return next((Path(found) for found in candidates if found and os.access(found, os.X_OK)), None)


def _newest_first(patterns: Iterable[str]) -> list[str]:
    return [
        found
        for pattern in patterns
        for found in sorted(glob.glob(pattern), key=version_in, reverse=True)  # noqa: PTH207
    ]


def version_in(path: str) -> list[tuple[int, str]]:
    """Sorts 2024.10 behind 2024.9: numbers as numbers, everything else as text."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", path)]


def ask(program: Path, *arguments: str) -> str:
    """What ``program`` prints, on either stream; empty where it cannot be run or does not end."""
    try:
        answer = subprocess.run([program, *arguments], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (answer.stdout + answer.stderr).decode("utf-8", "replace")


def run_quietly(command: Sequence[str], folder: Path, stage: str, progress: Progress) -> Outcome:
    """Run ``command`` in ``folder``, its progress bar turned into calls of ``progress``.

    It gets a process group of its own, which is killed whatever ends this function early, Ctrl-C included.

    Raises:
        MissingToolError: the program cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise MissingToolError(f"{command[0]} cannot be started.", str(error)) from error
    said = b""
    try:
        assert process.stdout is not None
        with process.stdout as pipe:
            while piece := _next_piece(pipe.fileno()):
                said = (said + piece)[-_KEPT_OUTPUT:]
                percents = _PERCENT.findall(said)
                progress(stage, min(int(percents[-1]), 100) if percents else 0, 100)
        status = process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Outcome(status, said.decode("utf-8", "replace"))


def _next_piece(pipe: int) -> bytes:
    """What comes next from ``pipe``; empty at its end.

    Waiting is left to ``select``: polars lets system calls start again after a signal, and a read that starts again
    never lets go of Ctrl-C.
    """
    select.select([pipe], [], [])
    return os.read(pipe, 1 << 12)
