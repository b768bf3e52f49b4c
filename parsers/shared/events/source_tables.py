"""Tables that a profiler stored, in any file format.

:class:`RawTables` offers what the mapping to the contract needs: names, columns, streams of batches, and strings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.shared.arrays.arrow import Array, pc
from traceviz.parsers.shared.events.mapping import Keep

if TYPE_CHECKING:
    from traceviz.parsers.shared.events.column_requests import WholeTable


class RawTables(ABC):
    """Tables of one file or folder.

    Integer columns stream as ``int64``, text columns as ``binary`` (names are any bytes). ``string_table`` holds the
    strings that other tables refer to, in its column ``value``, by the numbers in its column ``string_id``.
    """

    string_table: ClassVar[str]
    string_id: ClassVar[str]
    path: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    @property
    @abstractmethod
    def names(self) -> frozenset[str]:
        """Names of the tables present."""

    @property
    def plain_names(self) -> frozenset[str]:
        """Names of the tables that hold rows of their own; views compute theirs."""
        return self.names

    @abstractmethod
    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of ``table``; none if it is not present."""

    @abstractmethod
    def stream(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), keep: Keep | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of the named columns, in the order of the file. All columns exist.

        Raises:
            DamagedTraceError: the table cannot be decoded, or holds text where numbers belong.
        """

    def whole(self, table: str) -> WholeTable | None:  # noqa: ARG002 (what subclasses need to know)
        """Return a decoder of whole columns of ``table``, for callers that need not stream; ``None`` if none exists."""
        return None

    def is_text(self, table: str, column: str) -> bool:  # noqa: ARG002 (what subclasses need to know)
        """Return whether ``column``, documented as an id of a string, holds the string itself."""
        return False

    def strings(self, ids: Array) -> pa.Table:
        """Return rows ``id`` and ``value`` (binary) of the strings with these ids; unknown ids have no row."""
        empty = pa.table({"id": pa.array([], pa.int64()), "value": pa.array([], pa.binary())})
        if self.string_table not in self.names or not len(ids):
            return empty
        batches = (batch.rename_columns(["id", "value"]) for batch in self._string_batches(ids))
        used = (batch.filter(pc.is_in(batch["id"], value_set=ids)) for batch in batches)
        return pa.concat_tables([empty, *(pa.Table.from_batches([batch]) for batch in used)])

    def _string_batches(self, ids: Array) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 (a hint for subclasses)
        return self.stream(self.string_table, (self.string_id,), ("value",))

    def small(
        self, table: str, integers: Sequence[str] = (), texts: Sequence[str] = (), blobs: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the rows of a table that describes the capture; missing columns are ``None``, blobs are bytes."""
        columns = self.columns(table)
        present = [name for name in integers if name in columns], [name for name in (*texts, *blobs) if name in columns]
        empty: dict[str, Any] = dict.fromkeys((*integers, *texts, *blobs))
        batches = self.stream(table, *present) if any(present) else ()
        rows: list[dict[str, Any]] = [empty | row for batch in batches for row in batch.to_pylist()]
        for row in rows:
            row.update({name: row[name].decode("utf-8", "replace") for name in texts if isinstance(row[name], bytes)})
        return rows

    def damaged(self, table: str, seen: object) -> DamagedTraceError:
        """Return the error that names ``table`` and the fault in it."""
        return DamagedTraceError(
            f"Table {table} of {self.path.name} is damaged.",
            f"{str(seen).strip().rstrip('.')}.",
            "Copy or export the file again.",
        )
