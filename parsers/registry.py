"""All readers, and which of them reads a file: by its content, never by its name alone."""

from __future__ import annotations

from pathlib import Path

from traceviz.core.errors import UnknownFormatError, UsageError
from traceviz.parsers.base import HEAD_BYTES, Match, Reader
from traceviz.parsers.kineto.readers import KinetoReader
from traceviz.parsers.nsys.readers import NsysParquetReader, NsysReportReader, NsysSqliteReader, NsysStreamReader
from traceviz.parsers.nvprof.readers import NvprofCsvReader, NvprofSqliteReader
from traceviz.parsers.run.readers import ResourceSamplesReader, RunFolderReader, StacksReader
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.parsers.unrecognised import what_it_is
from traceviz.parsers.xplane.readers import TensorFlowTraceReader, XPlaneReader

TRACE_READERS: tuple[Reader, ...] = (
    KinetoReader(),
    NsysParquetReader(),
    NsysStreamReader(),
    NsysReportReader(),
    NsysSqliteReader(),
    NvprofCsvReader(),
    NvprofSqliteReader(),
    ResourceSamplesReader(),
    StacksReader(),
    TensorFlowTraceReader(),
    TracevizFolderReader(),
    XPlaneReader(),
)
"""One line per reader of single traces, sorted by :attr:`Reader.format`; a run folder holds traces of these formats."""

READERS: tuple[Reader, ...] = tuple(
    sorted((*TRACE_READERS, RunFolderReader(TRACE_READERS)), key=lambda reader: reader.format)
)
"""All readers, sorted by :attr:`Reader.format`."""


def identify(path: Path, name: str | None = None) -> Reader:
    """The reader for ``path``.

    Args:
        path: A file or folder.
        name: Identifier of the reader to use (:attr:`Reader.format`); ``None`` to find out.

    Raises:
        UnknownFormatError: ``path`` does not exist or cannot be opened; no reader knows it; or several do, equally.
        UsageError: no reader has the identifier ``name``.
    """
    head = read_head(path)
    if name is not None:
        return _named(name)
    matches = {reader: reader.sniff(head, path) for reader in READERS}
    best = max(matches.values())
    candidates = [reader for reader, match in matches.items() if match == best]
    if best == Match.NO:
        raise UnknownFormatError(f"{path} is not a trace that traceviz knows.", *what_it_is(head, path))
    if len(candidates) > 1:
        raise UnknownFormatError(
            f"{path} could be in more than one format.",
            f"Candidates: {', '.join(sorted(reader.format for reader in candidates))}.",
            "Choose with --reader.",
        )
    return candidates[0]


def read_head(path: Path) -> bytes:
    """The first :data:`HEAD_BYTES` of a file; nothing for a folder.

    Raises:
        UnknownFormatError: there is no such file, or it cannot be opened.
    """
    try:
        if path.is_dir():
            return b""
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise UnknownFormatError(f"No such file: {path}.", fix="Check the path.") from None
    except (OSError, ValueError) as error:
        raise UnknownFormatError(f"{path} cannot be opened.", str(error)) from error


def _named(identifier: str) -> Reader:
    for reader in READERS:
        if reader.format == identifier:
            return reader
    raise UsageError.unknown("reader", identifier, (reader.format for reader in READERS))
