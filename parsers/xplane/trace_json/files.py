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
from traceviz.parsers.xplane.trace_json.decode import decode
from traceviz.parsers.xplane.trace_json.planes import cap_reached, count_unread, spaces_of

CAPPED = (
    "The profiler writes at most {:,} events into this file, and it is full: later events are missing. "
    "Read the .xplane.pb file instead, or record fewer steps."
)


def read_trace_json(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a trace JSON file, or of the files of one run in a log folder, one at a time."""
    notes: list[tuple[str, str, str]] = []
    if path.is_dir():
        run, others = choose_run(path, options.run, TRACE_JSON_SUFFIXES)
        if others:
            shown = ", ".join(other.name for other in others)
            notes.append(("run-chosen", "info", f"Run {run.name} was read. Others: {shown} (--run NAME)."))
    elif options.run is not None:
        raise UsageError(f"{path.name} is one trace, not a folder of runs.", fix="Leave --run out.")
    else:
        run = Run(path.name, (path,))
    sources = []
    for done, file in enumerate(run.files):
        options.progress("decode", done, len(run.files))
        decoded = decode(file, options.max_size, options.allowance)
        cap = cap_reached(decoded)
        if cap:
            notes.append(("events-capped", "warning", CAPPED.format(cap)))
        for phase, count in count_unread(decoded).items():
            notes.append(("unread-events", "info", f"{count:,} events of phase {phase} are not read."))
        spaces = spaces_of(decoded)
        del decoded
        if not any(len(plane.events) for space in spaces.values() for plane in space.planes):
            raise DamagedTraceError(
                f"{file} holds no events.",
                "The profiler was stopped before anything ran, or the file was cut off.",
                "Record again, and let the profiler cover a few steps.",
            )
        name = file.name  # a file is named after its host
        for suffix in TRACE_JSON_SUFFIXES:
            name = name.removesuffix(suffix)
        sources += [Source(host or name, space) for host, space in spaces.items()]
    yield from read_spaces(sources, options, Provenance("tf-trace-json", "trace JSON", tuple(notes)))
