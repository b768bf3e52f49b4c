"""What ``traceviz collect`` leaves behind, and how it is recognised; reading loads the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.core.errors import UsageError
from traceviz.parsers.base import Match, Reader, ReadOptions
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
        """Certain of a folder whose description says so."""
        described = read_object(path / SAMPLES_DESCRIPTION)
        return Match.YES if described.get("kind") == SAMPLES_KIND else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. The clock is the wall clock of the machine, zero at the first sample."""
        from traceviz.parsers.run.samples import read_samples

        return read_samples(path, options)


class StacksReader(Reader):
    """Files whose first line describes a process, in the manner of the sampler of stacks."""

    format: ClassVar[str] = STACKS_FORMAT
    title: ClassVar[str] = "Python stacks by traceviz collect"
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl",)

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (the content decides)
        """Certain of the first line of such a file, which is like no other."""
        return Match.YES if _FIRST_LINE.match(head) else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. The clock is the wall clock of the machine, zero where the process started.

        Raises:
            DamagedTraceError: nothing in the file can be read.
        """
        from traceviz.parsers.run.stacks import read_stacks

        return read_stacks(path, options)


class RunFolderReader(Reader):
    """Folders with a ``manifest.json`` of the kind ``traceviz.run``."""

    format: ClassVar[str] = "run"
    title: ClassVar[str] = "traceviz run folder"

    def __init__(self, readers: tuple[Reader, ...]) -> None:
        """``readers`` know the formats of the traces that may lie in a run folder."""
        self._readers = readers

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (folders have no head)
        """Certain of a folder whose manifest says so."""
        try:
            return Match.YES if is_run_folder(path) else Match.NO
        except ValueError:
            return Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`: the merged tables where they were written, else merged now.

        Raises:
            UsageError: ``options.run`` is given: this is one run.
            UnknownFormatError: the run recorded nothing that can be read.
        """
        if options.run is not None:
            raise UsageError(f"{path} is one run, not a folder of several.", fix="Leave --run out.")
        merged = TracevizFolderReader()
        if merged.sniff(b"", path / TABLES) == Match.YES:
            from traceviz.parsers.run.settings import with_ending

            return with_ending(merged.read(path / TABLES, options), path)
        from traceviz.parsers.run.folder import read_run

        return read_run(path, options, self._readers)
