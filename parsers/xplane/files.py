"""The files of a capture: which of them are read, and what each holds up to any damage."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from traceviz.errors import DamagedTraceError, UsageError
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.shared.log_folders import Run, choose_run, note_choice
from traceviz.parsers.xplane.hosts import ENVIRONMENT
from traceviz.parsers.xplane.raw import Space
from traceviz.parsers.xplane.scan import read_space
from traceviz.parsers.xplane.sniff import GZIP_MAGIC
from traceviz.parsers.xplane.tables import Provenance, Source, read_spaces
from traceviz.parsers.xplane.wire import Damage
from traceviz.process.memory import Allowance
from traceviz.units import format_value

_AGAIN = "Copy the file again, or record again."
_EMPTY = (
    "The profiler writes an empty file where the capture grows over 2 GiB, and leaves one behind where it is ended "
    "before it finished."
)
_UNLIMITED = Allowance()
_BLOCK = 16 * 2**20
_FREE_BYTES = 64 * 10**6
"""A file inside a gzip file may be so long; beyond, it may be some times as long as that."""
_MOST_TIMES = 100
_TIMES_ITS_SIZE = 2
"""What is read of a file takes at the least as much memory again as the file."""
_SHORTER = "Record fewer steps, without the Python tracer (python_tracer_level=0), and let the program end the profile."


def read_captures(path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
    """The tables of a capture, or of one run of a log folder, one at a time; ``notes`` last."""
    run, notes = _choose(path, options)
    sources, dropped = _sources(run, options.allowance)
    scanner = sources[0].space.scanner
    route = "xplane, compiled scanner" if scanner == "compiled" else "xplane, protobuf fallback (slower)"
    tables = read_spaces(sources, options, Provenance("xplane", route, (*notes, *dropped)))
    del sources
    yield from tables


def _choose(path: Path, options: ReadOptions) -> tuple[Run, tuple[tuple[str, str, str], ...]]:
    """The run to read, and what to note about the choice."""
    if not path.is_dir():
        if options.run is not None:
            raise UsageError(f"{path.name} is one capture, not a folder of runs.", fix="Leave --run out.")
        return Run(path.name, (path,)), ()
    run, others = choose_run(path, options.run)
    if not others:
        return run, ()
    return run, (("run-chosen", "info", note_choice(run, others, options.run)),)


def _sources(run: Run, allowance: Allowance) -> tuple[list[Source], tuple[tuple[str, str, str], ...]]:
    """What the files of a run hold, and notes on those that hold nothing.

    Raises:
        DamagedTraceError: none of them holds anything.
        UsageError: they were recorded at different times.
    """
    sources, failures = [], []
    for file in run.files:
        try:
            sources.append(Source(re.sub(r"\.xplane\.pb(\.gz)?$", "", file.name), _read(file, allowance)))
        except DamagedTraceError as error:
            failures.append(error)
    if not sources:
        raise failures[0]
    _check_one_run(run, [source.space for source in sources])
    lost = "of one host cannot be read" if len(failures) == 1 else f"of {len(failures)} hosts cannot be read"
    notes = (("hosts-missing", "warning", f"The files {lost}. {failures[0].why}"),) if failures else ()
    return sources, notes


def _check_one_run(run: Run, spaces: list[Space]) -> None:
    """Refuse captures that lie in one folder and are not the hosts of one run: these record at the same time."""
    windows = [window for space in spaces if (window := _window(space))]
    if windows and max(start for start, _ in windows) > min(stop for _, stop in windows):
        raise UsageError(
            f"The captures in folder {run.name} are not the hosts of one run: they were recorded at different times.",
            fix=f"Name one of them: {', '.join(file.name for file in run.files)}.",
        )


def _window(space: Space) -> tuple[int, int] | None:
    """Begin and end of the profiling in ns since 1970, where the capture states them."""
    for plane in space.planes:
        bounds = [plane.properties.get(key) for key in ("profile_start_time", "profile_stop_time")]
        if plane.name == ENVIRONMENT and isinstance(bounds[0], int) and isinstance(bounds[1], int):
            return bounds[0], bounds[1]
    return None


def _read(file: Path, allowance: Allowance = _UNLIMITED) -> Space:
    """What ``file`` holds, up to any damage.

    Raises:
        DamagedTraceError: it is empty, or nothing of it can be read.
        OutOfMemoryError: it does not fit into what is allowed.
    """
    try:
        with file.open("rb") as opened:
            if not opened.read(1):
                raise DamagedTraceError(f"{file.name} is empty.", _EMPTY, _SHORTER)
            opened.seek(0)
            is_compressed = opened.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        if is_compressed:
            space = _read_compressed(file, allowance)
        else:
            allowance.check(file.stat().st_size * _TIMES_ITS_SIZE, file.name)
            space = read_space(_content(file))
    except OSError as error:
        raise DamagedTraceError(f"{file.name} cannot be read.", str(error), _AGAIN) from error
    if not (space.planes or space.errors or space.warnings):
        why = space.damage[0].what if space.damage else "It holds no plane."
        raise DamagedTraceError(f"{file.name} is not a profile that can be read.", why, _AGAIN)
    return space


def _content(file: Path) -> bytes:
    """All of ``file``, read and not mapped: of a mapped file that is cut meanwhile, the system tells with SIGBUS.

    Raises:
        DamagedTraceError: it became another file meanwhile.
        OSError: it cannot be read.
    """
    with file.open("rb", buffering=0) as opened:
        before = os.fstat(opened.fileno())
        data = opened.readall()
        after = os.fstat(opened.fileno())
    if len(data) != before.st_size or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise DamagedTraceError(
            f"{file.name} was changed while it was read.",
            f"It held {before.st_size:,} bytes, and {len(data):,} could be read.",
            "Wait until whatever writes or copies it has ended.",
        )
    return data


def _read_compressed(file: Path, allowance: Allowance) -> Space:
    """The file inside a gzip file; the beginning of a file that is cut short."""
    rest, data = file.read_bytes(), bytearray()
    most = max(_FREE_BYTES, _MOST_TIMES * len(rest))
    try:
        while rest.startswith(GZIP_MAGIC):  # a gzip file may consist of several one after the other
            inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            while not inflate.eof and (block := inflate.decompress(rest, _BLOCK)):
                data += block
                rest = inflate.unconsumed_tail
                if len(data) > most:
                    raise DamagedTraceError(
                        f"{file.name} holds more than {format_value(most, 'bytes')}, which no profile does.",
                        "Files that are made to exhaust the memory do this.",
                        _AGAIN,
                    )
                allowance.check(len(data) * (_TIMES_ITS_SIZE - 1), file.name)
            rest = inflate.unused_data
    except zlib.error as error:
        raise DamagedTraceError(f"{file.name} cannot be decompressed.", f"{error}.", _AGAIN) from error
    if not data and inflate.eof:
        raise DamagedTraceError(f"{file.name} is empty.", _EMPTY, _SHORTER)
    space = read_space(memoryview(data))
    if inflate.eof:
        return space
    cut = Damage("file", "The gzip file is cut short: what follows is lost.")
    return Space(space.planes, space.errors, space.warnings, space.hostnames, (cut, *space.damage), space.scanner)
