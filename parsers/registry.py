"""All readers, and the choice of one for a file: by its content, never by its name alone."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

from traceviz.core.errors import UnknownFormatError
from traceviz.core.files import explain_missing
from traceviz.core.registry import Registry, instance_of
from traceviz.parsers.base import HEAD_BYTES, Match, Reader
from traceviz.parsers.kineto.readers import KinetoReader
from traceviz.parsers.nsys.readers import NsysParquetReader, NsysReportReader, NsysSqliteReader, NsysStreamReader
from traceviz.parsers.nvprof.readers import NvprofCsvReader, NvprofSqliteReader
from traceviz.parsers.rocprof.readers import RocprofCsvReader, RocprofJsonReader, RocprofSqliteReader
from traceviz.parsers.run.readers import ResourceSamplesReader, RunFolderReader, StacksReader
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.parsers.unrecognised import what_it_is
from traceviz.parsers.xplane.readers import TensorFlowTraceReader, XPlaneReader


def trace_readers() -> tuple[Reader, ...]:
    """Return the readers of single traces; a run folder holds traces of these formats."""
    return tuple(reader for reader in READERS.all() if reader.format != RunFolderReader.format)


_OWN = (
    KinetoReader(),
    NsysParquetReader(),
    NsysStreamReader(),
    NsysReportReader(),
    NsysSqliteReader(),
    NvprofCsvReader(),
    NvprofSqliteReader(),
    ResourceSamplesReader(),
    RocprofCsvReader(),
    RocprofJsonReader(),
    RocprofSqliteReader(),
    RunFolderReader(trace_readers),
    StacksReader(),
    TensorFlowTraceReader(),
    TracevizFolderReader(),
    XPlaneReader(),
)
"""The readers of traceviz, one per line, sorted by :attr:`Reader.format`."""

READERS: Registry[Reader] = Registry(
    "reader",
    "traceviz.readers",
    {reader.format: reader for reader in _OWN},
    instance_of(Reader),
    attrgetter("format"),
)
"""All readers, those of plugins among them. ``READERS.register(AcmeReader())`` adds one to the running program."""


def identify(path: Path, name: str | None = None) -> Reader:
    """Return the reader for ``path``.

    Args:
        path: A file or folder.
        name: Identifier of the reader to use (:attr:`Reader.format`); ``None`` to recognise it.

    Raises:
        UnknownFormatError: ``path`` does not exist or cannot be opened; no reader knows it; or several match equally.
        UsageError: no reader has the identifier ``name``.
        PluginError: the reader ``name`` belongs to a plugin that cannot be loaded.
    """
    head = read_head(path)
    if name is not None:
        return READERS.find(name)
    matches = {reader: reader.match(head, path) for reader in READERS.all()}
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
    """Return the first :data:`HEAD_BYTES` of a file; nothing for a folder.

    Raises:
        UnknownFormatError: there is no such file, or it cannot be opened.
    """
    try:
        if path.is_dir():
            return b""
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise UnknownFormatError(f"No such file: {path}.", explain_missing(path), "Check the path.") from None
    except (OSError, ValueError) as error:
        raise UnknownFormatError(f"{path} cannot be opened.", str(error)) from error
