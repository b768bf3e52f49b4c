"""The installed nsys: finding it, the formats it exports, and running it without trusting it.

nsys leaves half-written files behind when it fails, and may return 0 then. So results count only if they pass the
checks of the reader that opens them. nsys runs in a folder that is always removed.

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

from traceviz.core.errors import MissingToolError
from traceviz.core.sanitize import without_paths

OVERRIDE = "TRACEVIZ_NSYS"
INSTALLED_AT = (
    "/usr/lib/nsight-systems/bin/nsys",
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/usr/local/cuda*/bin/nsys",
)
"""Paths of nsys in packages that do not put it on PATH."""
IMPORTER_INSTALLED_AT = (
    "/usr/lib/nsight-systems/host-linux-*/QdstrmImporter",
    "/opt/nvidia/nsight-systems/*/host-linux-*/QdstrmImporter",
    "/opt/nvidia/nsight-systems-cli/*/host-linux-*/QdstrmImporter",
)
TOO_OLD = ("Version number is invalid", "ProtobufParseException", "Unsupported file format", "newer version of")
"""Messages of nsys about a file that a newer nsys wrote."""

_VERSION = r"\b(20\d\d(?:\.\d+){2,3})"
_PERCENT = rb"(\d{1,3})%"
_KEPT_OUTPUT = 1 << 16

Progress = Callable[[str, int, int], None]
"""Called with the stage, the amount done and the total."""


@dataclass(frozen=True, slots=True)
class Nsys:
    """An nsys program.

    Args:
        path: The program.
        version: Its version, for example ``2022.4.2.1``; empty if it prints none.
        export_help: Help text of its ``export`` command.
    """

    path: Path
    version: str
    export_help: str

    @property
    def export_type(self) -> str:
        """The fastest format that it can export and traceviz can read."""
        return "parquetdir" if "parquetdir" in self.export_help else "sqlite"

    def export_command(self, report: Path, output: Path) -> list[str]:
        """Return the command that exports ``report`` without empty tables, which may not have been recorded."""
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
    """The exit status of a program and the last part of its output."""

    status: int
    output: str

    @property
    def too_old(self) -> bool:
        """True if the program reports that a newer one wrote the file."""
        return any(phrase in self.output for phrase in TOO_OLD)

    @property
    def last_words(self) -> str:
        """The last line of output that is not a progress bar, without paths."""
        lines = [line.strip() for line in re.split(r"[\r\n]", self.output)]
        messages = [line for line in lines if line and "%" not in line and not line.startswith("[=")]
        return without_paths(messages[-1])[:300] if messages else f"exit status {self.status}"


def find_nsys() -> Nsys | None:
    """Return the nsys to use: ``TRACEVIZ_NSYS``, else the one on PATH, else the newest that a package installed.

    Raises:
        MissingToolError: ``TRACEVIZ_NSYS`` does not name a program.
    """
    override = os.environ.get(OVERRIDE)
    if override and not _is_program(override):
        raise MissingToolError(
            f"{OVERRIDE} names {override}, which is not a program.", fix=f"Correct or unset {OVERRIDE}."
        )
    for candidate in (override, shutil.which("nsys"), *_newest_first(INSTALLED_AT)):
        if candidate and _is_program(candidate):
            path = Path(candidate)
            version = re.search(_VERSION, output_of(path, "--version"))
            return Nsys(path, version[1] if version else "", output_of(path, "export", "--help"))
    return None


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and Path(path).is_file()


def find_importer(nsys: Path | None = None) -> Path | None:
    """Find QdstrmImporter, which packages keep off PATH: next to the real folder of nsys, or where they install hosts.

    Args:
        nsys: The nsys that it should belong to; by default, the one on PATH.
    """
    program = nsys or shutil.which("nsys")
    beside = Path(program).resolve().parent.parent if program else None
    patterns = [f"{glob.escape(str(beside))}/host-linux-*/QdstrmImporter"] if beside else []
    candidates = [*_newest_first(patterns), shutil.which("QdstrmImporter"), *_newest_first(IMPORTER_INSTALLED_AT)]
    return next((Path(path) for path in candidates if path and os.access(path, os.X_OK)), None)


def _newest_first(patterns: Iterable[str]) -> list[str]:
    return [
        path
        for pattern in patterns
        for path in sorted(glob.glob(pattern), key=version_in, reverse=True)  # noqa: PTH207
    ]


def version_in(path: str) -> list[tuple[int, str]]:
    """Return a sort key that puts 2024.10 after 2024.9: numbers compare as numbers, everything else as text."""
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", path)]


def output_of(program: Path, *arguments: str) -> str:
    """Return the output of ``program``, both streams; empty if it cannot be run or does not end."""
    try:
        process = subprocess.run([program, *arguments], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (process.stdout + process.stderr).decode("utf-8", "replace")


def run_quietly(command: Sequence[str], folder: Path, stage: str, progress: Progress) -> Outcome:
    """Run ``command`` in ``folder`` and turn its progress bar into calls of ``progress``.

    It runs in its own process group, which is killed if anything ends this function early, Ctrl-C included.

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
    output = b""
    try:
        assert process.stdout is not None
        with process.stdout as pipe:
            while True:
                # Polars lets system calls restart after a signal: unlike select, a read that waits would block Ctrl-C.
                select.select([pipe], [], [])
                piece = os.read(pipe.fileno(), 1 << 12)
                if not piece:
                    break
                output = (output + piece)[-_KEPT_OUTPUT:]
                percents = re.findall(_PERCENT, output)
                progress(stage, min(int(percents[-1]), 100) if percents else 0, 100)
        status = process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Outcome(status, output.decode("utf-8", "replace"))
