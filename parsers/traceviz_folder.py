"""Reader of traceviz folders: what ``traceviz convert`` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.parsers.base import Match, Reader, ReadOptions
from traceviz.trace_folder import is_trace_folder

if TYPE_CHECKING:
    import pyarrow as pa


class TracevizFolderReader(Reader):
    """Folders with a ``manifest.json`` of the kind ``traceviz.trace``."""

    format: ClassVar[str] = "traceviz"
    title: ClassVar[str] = "traceviz folder"

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (folders have no head)
        """Certain of a folder whose manifest says so."""
        try:
            if not (path / "manifest.json").is_file():
                return Match.NO
        except (OSError, ValueError):
            return Match.NO
        return Match.YES if is_trace_folder(path) else Match.NO

    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. Host and command line are there if they were kept when the folder was written."""
        from traceviz import schema  # noqa: PLC0415 (reading loads what recognising does not need)
        from traceviz.tables import load  # noqa: PLC0415

        tables = load(path)
        names = [name for name in tables if name in schema.REQUIRED or options.wants(name)]
        for done, name in enumerate(names):
            options.progress("read", done, len(names))
            yield name, tables.arrow(name)
