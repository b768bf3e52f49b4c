"""Recognition of captures of the profilers of TensorFlow and JAX; reading loads the other modules.

The trace JSON is made for the trace viewer. Until 2020 TensorFlow wrote nothing else. Later versions, and JAX until
today, write it next to the XPlane file, and people share it alone. It holds less than the XPlane file: at most a
million events, no facts about devices, and no connections between threads. So steps are known only if the events carry
their group or a step number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadRequest
from traceviz.parsers.shared.log_folders import SUFFIXES, find_runs
from traceviz.parsers.shared.prefetch import run_early
from traceviz.parsers.xplane.sniff import (
    GZIP_MAGIC,
    TRACE_JSON_SUFFIXES,
    inflate_head,
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
        """Return ``YES`` for trace events whose processes are planes of the profiler, such as ``/host:CPU``.

        Traces of other programs are recognised: PyTorch's state a ``schemaVersion`` and give every event a category.
        """
        if not head:
            return sniff_trace_json_folder(path)
        return Match.YES if is_trace_json(head) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
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

    def __init__(self, prefetched: Callable[[], Space] | None = None) -> None:
        self._prefetched = prefetched

    def sniff(self, head: bytes, path: Path) -> Match:
        """Return ``YES`` for a file that starts with a plane, an empty file of the right name, a folder with runs."""
        try:
            if path.is_dir():
                # Another folder of traces may be next to the logs; its manifest identifies it.
                return Match.YES if not (path / "manifest.json").is_file() and find_runs(path) else Match.NO
        except (OSError, ValueError):
            return Match.NO
        if not head:
            return Match.YES if path.name.endswith(SUFFIXES) else Match.NO
        if head.startswith(GZIP_MAGIC):
            head = inflate_head(head)
            if not head and path.name.endswith(SUFFIXES):
                return Match.MAYBE
        return Match.YES if is_space(head) else Match.NO

    def reading_ahead(self, path: Path) -> Reader:
        """See :meth:`Reader.reading_ahead`: compiled code scans a file while other threads import."""
        return XPlaneReader(run_early(partial(_read_file, path), in_background=True)) if path.is_file() else self

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`.

        Raises:
            UsageError: ``options.run`` names no run.
            UnknownFormatError: a folder holds no capture.
        """
        from traceviz.parsers.xplane.files import read_captures

        prefetched, self._prefetched = self._prefetched, None
        return read_captures(path, options, prefetched)


def _read_file(path: Path) -> Space:
    from traceviz.parsers.xplane.content import read_file

    return read_file(path)
