"""Captures of the profilers of TensorFlow and JAX, and how they are recognised; reading loads the rest.

The trace JSON is what the profilers write for the trace viewer. Until 2020 it is all that TensorFlow wrote; later
versions, and JAX until today, write it beside the XPlane file, and people share it alone. It holds less than the XPlane
file: at most a million events, no facts about devices, and no connections between threads; so steps are known where
the events carry their group or a step number.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadOptions
from traceviz.parsers.shared.log_folders import SUFFIXES, find_runs
from traceviz.parsers.shared.prefetch.background import Meanwhile
from traceviz.parsers.xplane.sniff import (
    GZIP_MAGIC,
    TRACE_JSON_SUFFIXES,
    inflated_head,
    is_space,
    is_trace_json,
    sniff_trace_json_folder,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from traceviz.parsers.xplane.decode.raw import Space


class TensorFlowTraceReader(Reader):
    """Trace JSON of the TensorFlow and JAX profiler, alone or in a log folder that holds no XPlane file."""

    format: ClassVar[str] = "tf-trace-json"
    title: ClassVar[str] = "TensorFlow or JAX trace.json.gz"
    suffixes: ClassVar[tuple[str, ...]] = TRACE_JSON_SUFFIXES

    def sniff(self, head: bytes, path: Path) -> Match:
        """Certain of trace events whose processes are planes of the profiler, such as ``/host:CPU``.

        Traces of other programs are recognised: PyTorch's state a ``schemaVersion`` and give every event a category.
        """
        if not head:
            return sniff_trace_json_folder(path)
        return Match.YES if is_trace_json(head) else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. Hosts of one run are read together, as ranks.

        Raises:
            UsageError: ``options.run`` names no run.
        """
        from traceviz.parsers.xplane.trace_json.files import read_trace_json

        return read_trace_json(path, options)


class XPlaneReader(Reader):
    """Captures of the profilers of TensorFlow, JAX and PyTorch/XLA, and TensorBoard log folders that hold some."""

    format: ClassVar[str] = "xplane"
    title: ClassVar[str] = "TensorFlow/JAX profile (XPlane)"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    def __init__(self, begun: Meanwhile[Space] | None = None) -> None:
        self._begun = begun

    def sniff(self, head: bytes, path: Path) -> Match:
        """Certain of a file that begins with a plane, of an empty file with the right name, of a folder with runs."""
        try:
            if path.is_dir():
                # Another folder of traces may lie beside the logs; it says what it is in its manifest.
                return Match.YES if not (path / "manifest.json").is_file() and find_runs(path) else Match.NO
        except (OSError, ValueError):
            return Match.NO
        if not head:
            return Match.YES if path.name.endswith(SUFFIXES) else Match.NO
        if head.startswith(GZIP_MAGIC):
            head = inflated_head(head)
            if not head and path.name.endswith(SUFFIXES):
                return Match.MAYBE
        return Match.YES if is_space(head) else Match.NO

    def reading_ahead(self, path: Path) -> Reader:
        """See :meth:`Reader.reading_ahead`: what is compiled scans a file, and lets others import."""
        return XPlaneReader(Meanwhile(partial(_read_file, path), beside=True)) if path.is_file() else self

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`.

        Raises:
            UsageError: ``options.run`` names no run.
            UnknownFormatError: a folder holds no capture.
        """
        from traceviz.parsers.xplane.files import read_captures

        begun, self._begun = self._begun, None
        return read_captures(path, options, begun)


def _read_file(path: Path) -> Space:
    from traceviz.parsers.xplane.content import read_file

    return read_file(path)
