"""Recognition of the output of ``traceviz collect``; reading loads the other modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.core.errors import UsageError
from traceviz.parsers.base import Match, Reader, ReadRequest
from traceviz.parsers.run.layout import (
    SAMPLES_DESCRIPTION,
    SAMPLES_FORMAT,
    SAMPLES_KIND,
    STACKS_FORMAT,
    TABLES,
    is_run_folder,
)
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.untrusted.json_documents import read_object

if TYPE_CHECKING:
    import pyarrow as pa


_FIRST_LINE = re.compile(rb'\s*\[\s*"process"\s*,\s*\{')


class ResourceSamplesReader(Reader):
    """Folders whose ``resources.json`` is of the kind ``traceviz.resources``."""

    format: ClassVar[str] = SAMPLES_FORMAT
    title: ClassVar[str] = "samples of resources by traceviz collect"

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (folders have no head)
        """Return ``YES`` for a folder whose description states this kind."""
        described = read_object(path / SAMPLES_DESCRIPTION)
        return Match.YES if described.get("kind") == SAMPLES_KIND else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. The clock is the wall clock of the machine, zero at the first sample."""
        from traceviz.parsers.run.samples import read_samples

        return read_samples(path, options)


class StacksReader(Reader):
    """Files whose first line describes a process, as the sampler of stacks writes it."""

    format: ClassVar[str] = STACKS_FORMAT
    title: ClassVar[str] = "Python stacks by traceviz collect"
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl",)

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the content decides)
        """Return ``YES`` for the unique first line of such a file."""
        return Match.YES if _FIRST_LINE.match(head) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. The clock is the wall clock of the machine, zero at the start of the process.

        Raises:
            DamagedTraceError: nothing in the file can be read.
        """
        from traceviz.parsers.run.stacks import read_stacks

        return read_stacks(path, options)


class RunFolderReader(Reader):
    """Folders with a ``manifest.json`` of the kind ``traceviz.run``."""

    format: ClassVar[str] = "run"
    title: ClassVar[str] = "traceviz run folder"

    def __init__(self, readers: Callable[[], tuple[Reader, ...]]) -> None:
        """Take a function that returns the readers of the traces in a run folder."""
        self._readers = readers

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (folders have no head)
        """Return ``YES`` for a folder whose manifest states this kind."""
        try:
            return Match.YES if is_run_folder(path) else Match.NO
        except ValueError:
            return Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`: the merged tables if they were written, else merged now.

        Raises:
            UsageError: ``options.run`` is given: this is one run.
            UnknownFormatError: the run recorded nothing that can be read.
        """
        if options.run is not None:
            raise UsageError(f"{path} is one run, not a folder of several.", fix="Leave --run out.")
        merged = TracevizFolderReader()
        if merged.sniff(b"", path / TABLES) == Match.YES:
            from traceviz.parsers.run.manifest import with_ending

            return with_ending(merged.read(path / TABLES, options), path)
        from traceviz.parsers.run.folder import read_run

        return read_run(path, options, self._readers())
