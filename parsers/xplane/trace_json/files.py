"""Selection of the trace JSON files of a capture, and their content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.shared.log_folders import Run, choose_run
from traceviz.parsers.xplane.sniff import TRACE_JSON_SUFFIXES
from traceviz.parsers.xplane.tables import Provenance, Source, read_spaces
from traceviz.parsers.xplane.trace_json.decode import Decoded, decode
from traceviz.parsers.xplane.trace_json.planes import cap_reached, left_out, spaces_of

Notes = list[tuple[str, str, str]]


def read_trace_json(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a trace JSON file, or of the files of one run in a log folder, one at a time."""
    run, notes = _choose(path, options.run)
    sources = []
    for done, file in enumerate(run.files):
        options.progress("decode", done, len(run.files))
        decoded = decode(file, options.max_size, options.allowance)
        notes += _notes(decoded)
        sources += _sources(file, decoded)
        del decoded
    yield from read_spaces(sources, options, Provenance("tf-trace-json", "trace JSON", tuple(notes)))


def _sources(file: Path, decoded: Decoded) -> list[Source]:
    spaces = spaces_of(decoded)
    if not any(len(plane.events) for space in spaces.values() for plane in space.planes):
        raise DamagedTraceError(
            f"{file} holds no events.",
            "The profiler was stopped before anything ran, or the file was cut off.",
            "Record again, and let the profiler cover a few steps.",
        )
    return [Source(host or _host_of(file), space) for host, space in spaces.items()]


def _host_of(file: Path) -> str:
    """Return the host of a file, which is named after it."""
    name = file.name
    for suffix in TRACE_JSON_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _notes(decoded: Decoded) -> Notes:
    notes: Notes = []
    cap = cap_reached(decoded)
    if cap:
        notes.append(("events-capped", "warning", CAPPED.format(cap)))
    for phase, count in left_out(decoded).items():
        notes.append(("unread-events", "info", f"{count:,} events of phase {phase} are not read."))
    return notes


CAPPED = (
    "The profiler writes at most {:,} events into this file, and it is full: later events are missing. "
    "Read the .xplane.pb file instead, or record fewer steps."
)


def _choose(path: Path, name: str | None) -> tuple[Run, Notes]:
    """Return the run to read, and a note that names the others."""
    if not path.is_dir():
        if name is not None:
            raise UsageError(f"{path.name} is one trace, not a folder of runs.", fix="Leave --run out.")
        return Run(path.name, (path,)), []
    run, others = choose_run(path, name, TRACE_JSON_SUFFIXES)
    shown = ", ".join(other.name for other in others)
    note = ("run-chosen", "info", f"Run {run.name} was read. Others: {shown} (--run NAME).")
    return run, [note] if others else []
