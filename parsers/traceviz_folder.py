"""Reader of traceviz folders, which ``traceviz convert`` writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import Match, Reader, ReadRequest
from traceviz.trace.trace_folder import is_trace_folder

if TYPE_CHECKING:
    import pyarrow as pa

    from traceviz.parsers.shared.arrays.arrow import Array, ChunkedArray


_CONVERT_AGAIN = "Convert the source again: traceviz convert TRACE -o DIR."


class TracevizFolderReader(Reader):
    """Folders with a ``manifest.json`` of the kind ``traceviz.trace``."""

    format: ClassVar[str] = "traceviz"
    title: ClassVar[str] = "traceviz folder"
    states_span: ClassVar[bool] = True

    def sniff(self, head: bytes, path: Path) -> Match:  # noqa: ARG002 (folders have no head)
        """Return ``YES`` for a folder whose manifest states this kind."""
        try:
            if not (path / "manifest.json").is_file():
                return Match.NO
        except (OSError, ValueError):
            return Match.NO
        return Match.YES if is_trace_folder(path) else Match.NO

    def read(self, path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
        """See :meth:`Reader.read`. Host and command line are there if they were kept when the folder was written."""
        from traceviz.core.process.memory import give_back  # noqa: PLC0415
        from traceviz.trace import schema  # noqa: PLC0415 (reading loads what recognising does not need)
        from traceviz.trace.tables import load, with_known_texts, with_notes  # noqa: PLC0415
        from traceviz.untrusted.parquet import least_bytes  # noqa: PLC0415

        tables = load(path)
        names = [name for name in tables if name in schema.REQUIRED or options.wants(name)]
        known: Known = {}
        notes: list[dict[str, Any]] = []
        for done, name in enumerate(names):
            options.progress("read", done, len(names))
            source = tables.sources[name]
            if isinstance(source, Path):
                options.allowance.check(least_bytes(source), f"Table {name} of {path.name}")
            table = tables.arrow(name, options.columns.get(name), options.window)
            _check_owners(path, name, table, known)
            table, found = with_known_texts(name, table)
            notes += found
            if name == "notes" and notes:  # the last table
                table = with_notes(table, notes)
            if name == "run":
                _check_span(path / "run.parquet", table)
            yield name, table
            del table
        give_back()  # row groups used memory of their own


def _check_span(path: Path, run: pa.Table) -> None:
    """Raise if the span is missing or impossible: all other times are relative to it."""
    from traceviz.trace.plausible import LONGEST_NS  # noqa: PLC0415 (as above)

    if run.num_rows != 1:
        why = f"It has {run.num_rows} rows; a trace has one, which says how long the capture took."
        raise DamagedTraceError(f"{path} does not describe a trace.", why, fix=_CONVERT_AGAIN)
    span = run["span_ns"][0].as_py() or 0
    if not 0 <= span <= 2 * LONGEST_NS:
        what = f"{path} says that the capture took {span} ns, which no capture takes."
        raise DamagedTraceError(what, fix=_CONVERT_AGAIN)


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids that rows may refer to.

    Args:
        first: The smallest.
        last: The greatest.
        all: All of them; ``None`` if they are consecutive, as in every undamaged folder.
    """

    first: int
    last: int
    all: Array | None

    def find_unknown(self, values: ChunkedArray) -> int | None:
        """Return one of ``values`` that is no id; ``None`` if all are ids or null."""
        from traceviz.parsers.shared.arrays.arrow import pc  # noqa: PLC0415 (reading loads what recognising does not need)

        found = pc.min_max(values).as_py()
        if found["min"] is None:
            return None
        for value in (int(found["min"]), int(found["max"])):
            if not self.first <= value <= self.last:
                return value
        if self.all is None:
            return None
        unknown = values.filter(pc.invert(pc.is_in(values, value_set=self.all))).drop_null()
        return int(unknown[0].as_py()) if len(unknown) else None


Known = dict[str, Ids]
"""The ids of each table that others refer to."""

_OWNERS = {"processes.process_id", "threads.thread_id", "devices.device_id"}
_MOST_OWNERS = 1 << 24
"""Upper limit of ids, which are positions: no trace has as many processes, threads or devices."""


def _check_owners(folder: Path, name: str, table: pa.Table, known: Known) -> None:
    """Raise for ids of processes, threads and devices that do not exist: later code looks rows up by them."""
    from traceviz.trace import schema  # noqa: PLC0415 (as above)

    for column in schema.table(name).columns:
        own = f"{name}.{column.name}"
        if own in _OWNERS:
            wrong = Ids(0, _MOST_OWNERS, None).find_unknown(table[column.name])
            if wrong is None:
                known[own] = _ids_of(table[column.name])
                continue
        elif column.joins in _OWNERS:
            wrong = known[column.joins].find_unknown(table[column.name])
        else:
            continue
        if wrong is not None:
            raise DamagedTraceError(
                f"Column {column.name} of {folder / name}.parquet holds {wrong}, which is the id of nothing.",
                fix=_CONVERT_AGAIN,
            )


def _ids_of(values: ChunkedArray) -> Ids:
    """Return the ids that a table gives to its rows."""
    ids = values.unique()
    if not len(ids):
        return Ids(0, -1, None)
    numbers = ids.to_pylist()
    first, last = min(numbers), max(numbers)
    return Ids(first, last, None if last - first + 1 == len(ids) else ids)
