"""The interface of readers, and of requests to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from traceviz.core.process.memory import Allowance, Watch
from traceviz.core.registry import find_fault_of_plugin, is_own, plugin_error, warn_of_plugin
from traceviz.untrusted.errors import foreign_errors_in_words

if TYPE_CHECKING:
    import pyarrow as pa

    from traceviz.trace.parquet import Window
    from traceviz.trace.spill import Spill

HEAD_BYTES = 64 * 1024
"""Bytes of a file that :meth:`Reader.sniff` receives."""


class Match(IntEnum):
    """Certainty of a reader that a file is in its format."""

    NO = 0
    MAYBE = 1
    YES = 2


class Progress(Protocol):
    """Receiver of a reader's progress. The default does nothing; the command line attaches a bar."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Report that ``done`` of ``total`` units of ``stage`` are finished; ``total`` is ``None`` if unknown."""


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing: the default :class:`Progress`."""


def nothing() -> None:
    """Do nothing: the default of :attr:`ReadRequest.begun`."""


def prefixed(progress: Progress, prefix: str) -> Progress:
    """Return ``progress`` with ``prefix`` before the name of every stage."""
    return lambda stage, done, total: progress(f"{prefix}: {stage}", done, total)


def watched(options: ReadRequest, name: str) -> Progress:
    """Return the progress of ``options``, which also checks the memory of the trace ``name`` at every step."""
    watch, told = Watch(options.allowance, name), options.progress

    def progress(stage: str, done: int, total: int | None) -> None:
        watch.see(stage, done, total)
        told(stage, done, total)

    return progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The user's options for reading traces.

    Args:
        reader: Identifier of the format; ``None`` to recognise it by the content.
        run: Run to read if a path is a folder of several; ``None`` for the newest.
        max_size: Limit for JSON, unpacked, in bytes; ``None`` for the default limit.
        max_memory: Memory limit of the process while it reads, in bytes; ``None`` for all free memory.
        cache: Keep what other programs export, and use earlier exports (see ``docs/commands.md``); never with
            ``keep_private``.
        keep_private: Keep command line and host name, which are left out by default.
        progress: Receives progress.
    """

    reader: str | None = None
    run: str | None = None
    max_size: int | None = None
    max_memory: int | None = None
    cache: bool = True
    keep_private: bool = False
    progress: Progress = silent


@dataclass(frozen=True, slots=True)
class ReadRequest(ReadOptions):
    """A request to a reader: the user's options, and the tables and columns that the caller needs.

    Args:
        tables: Names of the tables to read; ``None`` for all. ``run``, ``devices``, ``processes``, ``threads`` and
            ``notes`` are always given.
        columns: For some tables, the nullable columns that matter; a reader may leave the others null.
        properties: Keys of table ``op_args`` that matter, ``None`` for all; a reader may leave out rows of others.
        cache: Use and keep exports, see :mod:`traceviz.parsers.exports`. Off by default in a request.
        window: The caller cuts the trace to these times: a reader may leave out events outside of them.
        spill: Takes tables that do not fit in memory, if the caller accepts files; see :attr:`Reader.spills`.
        begun: Called when reading has started, perhaps more than once. The caller starts other work only then.
    """

    tables: frozenset[str] | None = None
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    properties: frozenset[str] | None = None
    cache: bool = field(default=False, kw_only=True)
    window: Window | None = None
    spill: Spill | None = None
    begun: Callable[[], None] = nothing

    def wants(self, name: str) -> bool:
        """Return whether table ``name`` is requested."""
        return self.tables is None or name in self.tables

    def wants_property(self, key: str) -> bool:
        """Return whether rows of table ``op_args`` with this ``key`` are requested."""
        return self.wants("op_args") and (self.properties is None or key in self.properties)

    @property
    def allowance(self) -> Allowance:
        """The memory that a reader may take."""
        return Allowance(self.max_memory)


class Reader(ABC):
    """Reads one trace format into the tables of :mod:`traceviz.trace.schema`."""

    format: ClassVar[str]
    """Stable identifier, as ``--reader`` takes it."""
    title: ClassVar[str]
    """Name for people."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """Usual file-name suffixes, for help texts only: identification is by content."""
    spills: ClassVar[bool] = False
    """True if large tables may go to :attr:`ReadRequest.spill` instead of being yielded."""
    decodes_ahead: ClassVar[bool] = False
    """True if :meth:`read` itself reports its start (:attr:`ReadRequest.begun`): compiled code works from then on."""
    states_span: ClassVar[bool] = False
    """True if the length of the capture is read from a stated value, not derived from the events."""

    def exporter(self) -> str | None:
        """Return the program that decodes the file, with its version, as ``run.reader`` names it.

        ``None`` if no program is needed, or if the needed program is not installed.
        """
        return None

    @abstractmethod
    def sniff(self, head: bytes, path: Path) -> Match:
        """Return how sure the reader is that it can read ``path``.

        Total: accepts any bytes and never raises. ``head`` holds the first :data:`HEAD_BYTES` of a file and is empty
        for a folder.
        """

    def match(self, head: bytes, path: Path) -> Match:
        """Return the result of :meth:`sniff`. If a plugin's reader fails, warn and match nothing."""
        try:
            return Match(self.sniff(head, path))
        except Exception as error:
            if is_own(type(self).__module__):
                raise
            fault = find_fault_of_plugin(error) or plugin_error(None, f"reader {self.format!r} in sniff()", error)
            warn_of_plugin(fault)
            return Match.NO

    def reading_ahead(self, path: Path) -> Reader:  # noqa: ARG002 (most readers begin when they are asked for tables)
        """Return this reader for one reading of ``path``, perhaps started in advance, while the caller imports modules.

        Errors are raised when tables are requested. Do not use this if memory is bounded: nothing checks the bound yet.
        """
        return self

    @abstractmethod
    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """Yield ``(name, table)`` one at a time, ``notes`` last, so that a caller may free each before the next.

        Columns and types are those of the schema; rows need not be sorted.

        Raises:
            MissingToolError: a program that decodes the format is missing or too old.
            DamagedTraceError: the file breaks the rules of its format.
        """

    def tables(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """Yield from :meth:`read`, the entry point for callers. Errors that libraries raise over a file become ours.

        Values that no capture can hold are left out, see :mod:`traceviz.trace.plausible`.

        Raises:
            TracevizError: as :meth:`read`.
            UnreadableError: the system does not let it be read.
            OutOfMemoryError: it needs more memory than there is, or than ``options.max_memory`` allows.
        """
        from traceviz.trace.plausible import checked  # noqa: PLC0415 (recognising a file loads no pyarrow)

        with foreign_errors_in_words(f"{path} cannot be read."):
            options.allowance.check(0, path.name)
            if not self.decodes_ahead:
                options.begun()
            spill = options.spill if self.spills else None
            tables = self.read(path, replace(options, progress=watched(options, path.name), spill=spill))
            for name, table in checked(tables, states_span=self.states_span):
                options.allowance.check(0, path.name)
                made = [table]
                del table  # hold no reference here, so that the caller can free the table
                yield name, made.pop()


def certain_reader(readers: Iterable[Reader], path: Path) -> Reader | None:
    """Return the only one of ``readers`` that is sure of a file or folder; ``None`` if none or several are.

    ``None`` also for a path that cannot be opened, is empty, or is neither a file nor a folder.
    """
    head = b""
    try:
        if not path.is_dir():
            if not path.is_file():  # opening a pipe would block
                return None
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
            if not head:
                return None
    except OSError:
        return None
    certain = [reader for reader in readers if reader.match(head, path) == Match.YES]
    return certain[0] if len(certain) == 1 else None
