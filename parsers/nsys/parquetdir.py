"""Reader of Nsight Systems ``parquetdir`` exports: a folder with one Parquet file per table (nsys 2023.4 and later)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys.mapping import STRING_ID, STRINGS
from traceviz.parsers.nsys.tables import Provenance, read_tables
from traceviz.parsers.shared.arrays.arrow import Array
from traceviz.parsers.shared.events.mapping import Keep
from traceviz.parsers.shared.events.source_tables import RawTables
from traceviz.parsers.shared.sqlite.arrow import BATCH_ROWS
from traceviz.untrusted.parquet import DAMAGE, open_parquet

SUFFIX = ".parquet"


class ParquetTables(RawTables):
    """Tables of a ``parquetdir`` export.

    Raises:
        DamagedTraceError: a file is not Parquet, or is cut short.
    """

    string_table: ClassVar[str] = STRINGS
    string_id: ClassVar[str] = STRING_ID

    def __init__(self, path: Path) -> None:
        self.path = path
        self._schemas: dict[str, pa.Schema] = {}
        for file in sorted(path.glob("*" + SUFFIX)):
            try:
                with open_parquet(file) as opened:
                    self._schemas[file.stem] = opened.schema_arrow
            except DAMAGE as error:
                raise self.damaged(file.stem, error) from error

    @property
    def names(self) -> frozenset[str]:
        """Names of the tables present."""
        return frozenset(self._schemas)

    def columns(self, table: str) -> frozenset[str]:
        """Return columns of ``table``."""
        return frozenset(self._schemas[table].names) if table in self._schemas else frozenset()

    def is_text(self, table: str, column: str) -> bool:
        """See :meth:`RawTables.is_text`."""
        return _is_text(self._schemas[table].field(column).type)

    def stream(
        self, table: str, integers: Sequence[str], texts: Sequence[str] = (), keep: Keep | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of columns; see :meth:`RawTables.stream`."""
        kept = [keep.column] if keep and keep.column in self.columns(table) else []
        columns = list(dict.fromkeys([*integers, *texts, *kept]))
        missing = sorted(set(columns) - self.columns(table))
        if missing:  # PyArrow would skip them silently
            raise self.damaged(table, f"It has no column {', '.join(missing)}")
        types: dict[str, pa.DataType] = {**dict.fromkeys(columns, pa.int64()), **dict.fromkeys(texts, pa.binary())}
        try:
            with open_parquet(self.path / (table + SUFFIX)) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                    batch.validate(full=True)
                    arrays = [_cast(batch[name], types[name]) for name in columns]
                    rows = pa.RecordBatch.from_arrays(arrays, names=columns)
                    yield keep.of(rows) if keep and kept else rows
        except DAMAGE as error:
            raise self.damaged(table, error) from error

    def close(self) -> None:
        """Do nothing: each stream opens and closes its file."""


def _is_text(kind: pa.DataType) -> bool:
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return values in {pa.string(), pa.large_string(), pa.binary(), pa.large_binary()}


def _cast(values: Array, kind: pa.DataType) -> Array:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_integer(kind) and _is_text(values.type):
        raise pa.ArrowInvalid("text in a column of numbers")
    return values.cast(kind)


def read_parquet_folder(path: Path, options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a ``parquetdir`` export; see :meth:`~traceviz.parsers.base.Reader.read`."""
    with ParquetTables(path) as raw:
        yield from read_tables(raw, options, Provenance("nsys parquetdir"))
