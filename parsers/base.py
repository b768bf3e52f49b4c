"""What a reader is, and what its caller asks for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from traceviz.core.process.memory import Allowance, Watch
from traceviz.untrusted.errors import foreign_errors_in_words

if TYPE_CHECKING:
    import pyarrow as pa

    from traceviz.trace.row_groups import Window
    from traceviz.trace.spill import Spill

HEAD_BYTES = 64 * 1024
"""How much of a file readers see when they are asked whether they know it."""


class Match(IntEnum):
    """How sure a reader is that a file is in its format."""

    NO = 0
    MAYBE = 1
    YES = 2


class Progress(Protocol):
    """Where a reader reports how far it is; the default does nothing, the command line attaches a bar."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """``done`` of ``total`` units of ``stage`` are finished; ``total`` is ``None`` where it is not known."""


def silent(stage: str, done: int, total: int | None) -> None:
    """A :class:`Progress` that reports nothing."""


def nothing() -> None:
    """Nobody waits for reading to begin."""


def prefixed(progress: Progress, prefix: str) -> Progress:
    """``progress`` with ``prefix`` before the name of every stage."""
    return lambda stage, done, total: progress(f"{prefix}: {stage}", done, total)


def watched(options: ReadOptions, name: str) -> Progress:
    """The progress of ``options``, at whose steps the memory that the trace ``name`` takes is compared with theirs."""
    watch, told = Watch(options.allowance, name), options.progress

    def progress(stage: str, done: int, total: int | None) -> None:
        watch.see(stage, done, total)
        told(stage, done, total)

    return progress


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the caller asks a reader for.

    Args:
        tables: Names of the tables to read; ``None`` for all. ``run``, ``devices``, ``processes``, ``threads`` and
            ``notes`` are always given.
        columns: For some tables, the nullable columns that matter; a reader may leave the others null.
        properties: Keys of table ``op_args`` that matter, ``None`` for all; a reader may leave out rows of others.
        keep_private: Store command line and host name, which are left out by default.
        progress: Receives progress.
        run: Name of the run to read, where the source is a folder of several; ``None`` for the newest.
        max_size: The longest text to read, in bytes, where the format is text; ``None`` for what is plausible.
        max_memory: Most memory that the process may take while it reads, in bytes; ``None`` for what there is.
        cache: What another program had to decode is kept, and taken from there the next time; see
            :mod:`traceviz.parsers.exports`.
        window: The caller cuts the trace to these times: a reader may leave out events that lie outside of them
            altogether.
        spill: Takes tables that memory has no room for, where the caller can do with files; see :attr:`Reader.spills`.
        begun: Is called when reading has begun, perhaps more than once: what else the caller has to do would delay it.
    """

    tables: frozenset[str] | None = None
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    properties: frozenset[str] | None = None
    keep_private: bool = False
    progress: Progress = silent
    run: str | None = None
    max_size: int | None = None
    max_memory: int | None = None
    cache: bool = False
    window: Window | None = None
    spill: Spill | None = None
    begun: Callable[[], None] = nothing

    def wants(self, name: str) -> bool:
        """Whether table ``name`` is asked for."""
        return self.tables is None or name in self.tables

    def wants_property(self, key: str) -> bool:
        """Whether rows of table ``op_args`` with this ``key`` are asked for."""
        return self.wants("op_args") and (self.properties is None or key in self.properties)

    @property
    def allowance(self) -> Allowance:
        """What a reader may take."""
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
    """Whether large tables may go to :attr:`ReadOptions.spill` instead of being yielded."""
    decodes_ahead: ClassVar[bool] = False
    """Whether :meth:`read` says itself when it has begun (:attr:`ReadOptions.begun`): compiled code is at work then."""
    states_span: ClassVar[bool] = False
    """Whether the length of the capture is read from what is stated, and not taken from the events."""

    def exporter(self) -> str | None:
        """The program that decodes what is read, with its version, as ``run.reader`` names it where it did.

        ``None`` where no program is needed, or the one that is needed is not here.
        """
        return None

    @abstractmethod
    def sniff(self, head: bytes, path: Path) -> Match:
        """How sure the reader is that it can read ``path``.

        Total: any bytes, never an exception. ``head`` holds the first :data:`HEAD_BYTES` of a file and is empty for
        a folder.
        """

    def reading_ahead(self, path: Path) -> Reader:  # noqa: ARG002 (most readers begin when they are asked for tables)
        """This reader, for one reading of ``path`` that may have begun: its caller imports meanwhile what it needs.

        What goes wrong is raised when tables are asked for. Not where memory is bounded, which nobody looks after yet.
        """
        return self

    @abstractmethod
    def read(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """Yield ``(name, table)`` one at a time, ``notes`` last, so that a caller may free each before the next.

        Columns and types are those of the schema; rows need not be sorted.

        Raises:
            MissingToolError: a program that decodes the format is missing or too old.
            DamagedTraceError: the file breaks the rules of its format.
        """

    def tables(self, path: Path, options: ReadOptions) -> Iterator[tuple[str, pa.Table]]:
        """What :meth:`read` yields, for those who call it: what libraries raise over a file is an error of ours, too.

        What no capture can hold is left out, see :mod:`traceviz.trace.plausible`.

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
                del table  # who gets it may let go of it: nothing is left of it here
                yield name, made.pop()


def certain_reader(readers: Iterable[Reader], path: Path) -> Reader | None:
    """The only one of ``readers`` that is sure of a file or folder; ``None`` where none or several are.

    ``None`` also for what cannot be opened, is empty, or is neither a file nor a folder.
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
    certain = [reader for reader in readers if reader.sniff(head, path) == Match.YES]
    return certain[0] if len(certain) == 1 else None
