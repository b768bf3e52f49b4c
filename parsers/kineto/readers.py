"""Recognition of traces in the format of Chrome's trace viewer; reading loads the other modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadRequest
from traceviz.parsers.kineto.folder import holds_pytorch_traces
from traceviz.parsers.kineto.sniff import sniff_file

if TYPE_CHECKING:
    import pyarrow as pa


class KinetoReader(Reader):
    """Traces of PyTorch's profiler, as files or as the folder that ``tensorboard_trace_handler`` fills."""

    format: ClassVar[str] = "kineto"
    title: ClassVar[str] = "PyTorch profiler (Kineto) or Chrome-format trace"
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".json.gz")

    def sniff(self, head: bytes, path: Path) -> Match:
        """Return ``YES`` for PyTorch's files; other traces of this format may be read as well."""
        if head:
            return sniff_file(head, path)
        return Match.YES if holds_pytorch_traces(path) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. Files of one run are read together, as ranks.

        Raises:
            UsageError: ``options.run`` is given for a file, or names no run.
            UnknownFormatError: a folder holds no trace.
        """
        from traceviz.parsers.kineto.tables import read_traces

        return read_traces(path, options)
