"""Reader of ``trace.json.gz``, the trace-viewer file of TensorFlow's and JAX's profiler.

Until 2020 it is all that TensorFlow wrote; later versions, and JAX until today, write it beside the XPlane file, and
people share it alone. It holds less than the XPlane file: at most a million events, no facts about devices, and no
connections between threads; so steps are known where the events carry their group or a step number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from traceviz.errors import DamagedTraceError, UsageError
from traceviz.parsers.base import HEAD_BYTES, Match, Reader, ReadOptions
from traceviz.parsers.shared.json_stream import head_text
from traceviz.parsers.shared.log_folders import Run, choose_run, find_runs
from traceviz.parsers.xplane.tables import Provenance, Source, read_spaces
from traceviz.parsers.xplane.trace_json.decode import Decoded, decode
from traceviz.parsers.xplane.trace_json.planes import cap_reached, left_out, spaces_of

SUFFIXES = (".trace.json.gz", ".trace.json")

_PLANE_NAME = re.compile(rb'"name"\s*:\s*"(?:[^"/\s]+ )?/(?:host|device):[A-Z]')
_FOREIGN = re.compile(rb'"(?:schemaVersion|deviceProperties|cat)"\s*:')

Notes = list[tuple[str, str, str]]


class TensorFlowTraceReader(Reader):
    """Trace JSON of the TensorFlow and JAX profiler, alone or in a log folder that holds no XPlane file."""

    format: ClassVar[str] = "tf-trace-json"
    title: ClassVar[str] = "TensorFlow or JAX trace.json.gz"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    def sniff(self, head: bytes, path: Path) -> Match:
        """Certain of trace events whose processes are planes of the profiler, such as ``/host:CPU``.

        Traces of other programs are told apart: PyTorch's state a ``schemaVersion`` and give every event a category.
        """
        if not head:
            return _sniff_folder(path)
        return Match.YES if _is_trace(head) else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. Hosts of one run are read together, as ranks.

        Raises:
            UsageError: ``options.run`` names no run.
        """
        run, notes = _choose(path, options.run)
        sources = []
        for done, file in enumerate(run.files):
            options.progress("decode", done, len(run.files))
            decoded = decode(file, options.max_size)
            notes += _notes(decoded)
            sources += _sources(file, decoded)
            del decoded
        yield from read_spaces(sources, options, Provenance(self.format, "trace JSON", tuple(notes)))


def _is_trace(head: bytes) -> bool:
    text = head_text(head)
    known = text.startswith(b"{") and b'"traceEvents"' in text and _PLANE_NAME.search(text)
    return bool(known and not _FOREIGN.search(text))


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
    """The host whose file it is: files are named after them."""
    name = file.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _notes(decoded: Decoded) -> Notes:
    found: Notes = []
    cap = cap_reached(decoded)
    if cap:
        found.append(("events-capped", "warning", CAPPED.format(cap)))
    for phase, count in left_out(decoded).items():
        found.append(("unread-events", "info", f"{count:,} events of phase {phase} are not read."))
    return found


CAPPED = (
    "The profiler writes at most {:,} events into this file, and it is full: later events are missing. "
    "Read the .xplane.pb file instead, or record fewer steps."
)


def _sniff_folder(path: Path) -> Match:
    """Certain of log folders whose runs have no other file than this: the XPlane file holds more.

    PyTorch's profiler gives its files the same ending: the newest run must hold one of ours.
    """
    try:
        if not path.is_dir() or (path / "manifest.json").is_file() or find_runs(path):
            return Match.NO
        runs = find_runs(path, SUFFIXES)
        return Match.YES if runs and any(map(_is_trace, map(_head_of, runs[-1].files))) else Match.NO
    except (OSError, ValueError):
        return Match.NO


def _head_of(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(HEAD_BYTES)


def _choose(path: Path, wanted: str | None) -> tuple[Run, Notes]:
    """The run to read, and a note of which others there are."""
    if not path.is_dir():
        if wanted is not None:
            raise UsageError(f"{path.name} is one trace, not a folder of runs.", fix="Leave --run out.")
        return Run(path.name, (path,)), []
    run, others = choose_run(path, wanted, SUFFIXES)
    shown = ", ".join(other.name for other in others)
    note = ("run-chosen", "info", f"Run {run.name} was read. Others: {shown} (--run NAME).")
    return run, [note] if others else []
