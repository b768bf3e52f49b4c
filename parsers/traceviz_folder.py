"""Reader of traceviz folders: what ``traceviz convert`` wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from traceviz.errors import DamagedTraceError
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
        from traceviz.parquet import least_bytes  # noqa: PLC0415
        from traceviz.tables import load  # noqa: PLC0415

        tables = load(path)
        names = [name for name in tables if name in schema.REQUIRED or options.wants(name)]
        known: Known = {}
        for done, name in enumerate(names):
            options.progress("read", done, len(names))
            source = tables.sources[name]
            if isinstance(source, Path):
                options.allowance.check(least_bytes(source), f"Table {name} of {path.name}")
            table = tables.arrow(name)
            _check_owners(path, name, table, known)
            if name == "run":
                _check_span(path, table)
            yield name, table
            del table


def _check_span(folder: Path, run: pa.Table) -> None:
    """Refuse a span that no capture has: all other times are relative to it."""
    from traceviz.plausible import LONGEST_NS  # noqa: PLC0415 (as above)

    for span in run["span_ns"].to_pylist():
        if not 0 <= span <= 2 * LONGEST_NS:
            raise DamagedTraceError(
                f"{folder / 'run.parquet'} says that the capture took {span} ns, which no capture takes.",
                fix="Convert the source again: traceviz convert TRACE -o DIR.",
            )


Known = dict[str, tuple[int, int]]
"""The smallest and the greatest id of each table that others refer to."""

_OWNERS = {"processes.process_id", "threads.thread_id", "devices.device_id"}
_MOST_OWNERS = 1 << 24
"""Ids are positions: no trace has as many processes, threads or devices."""


def _check_owners(folder: Path, name: str, table: pa.Table, known: Known) -> None:
    """Refuse ids of processes, threads and devices that do not exist: later code looks things up by them."""
    from traceviz import schema  # noqa: PLC0415 (as above)
    from traceviz.parsers.shared.arrow import pc  # noqa: PLC0415

    for column in schema.table(name).columns:
        own = f"{name}.{column.name}"
        refers_to = own if own in _OWNERS else column.joins
        if refers_to not in _OWNERS:
            continue
        found = pc.min_max(table[column.name]).as_py()
        smallest, greatest = (0, -1) if found["min"] is None else (int(found["min"]), int(found["max"]))
        first, last = (0, _MOST_OWNERS) if refers_to == own else known[refers_to]
        if smallest <= greatest and (smallest < first or greatest > last):
            wrong = smallest if smallest < first else greatest
            raise DamagedTraceError(
                f"Column {column.name} of {folder / name}.parquet holds {wrong}, which is the id of nothing.",
                fix="Convert the source again: traceviz convert TRACE -o DIR.",
            )
        if refers_to == own:
            known[own] = (smallest, greatest)
