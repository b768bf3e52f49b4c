"""Folders of Parquet files: every column of every file."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.extremes.values import ABSENT, Place, Sample, in_utf8


class ParquetSample(Sample):
    """A folder of Parquet files, and its other contents.

    Args:
        folder: Its path; the copy has its name.
        below: The folder of the files in it.
    """

    def __init__(self, folder: Path, below: str = ".") -> None:
        self._folder, self._below = folder, below

    def places(self) -> list[Place]:
        files = sorted((self._folder / self._below).glob("*.parquet"))
        return [(file.name, name) for file in files for name in pq.read_schema(file).names]

    def write(self, place: Place, value: Any, folder: Path) -> Path | None:
        name, column = place
        target = folder / self._folder.name
        shutil.copytree(self._folder, target)
        with pq.ParquetFile(self._folder / self._below / name) as file:
            table = file.read()
        at = table.column_names.index(column)
        if not table.num_rows and value is not ABSENT:
            return None
        changed = (
            table.remove_column(at)
            if value is ABSENT
            else table.set_column(at, column, _with_first(table.column(at).to_pylist(), value, table.field(at).type))
        )
        pq.write_table(changed, target / self._below / name)
        return target


def _with_first(values: Sequence[Any], value: Any, kind: pa.DataType) -> pa.Array:
    """Return the values with another first one, in their type if that can hold it, else in one that can."""
    changed = [value, *values[1:]]
    if isinstance(value, str):
        encoded = pa.array([None if v is None else in_utf8(str(v)) for v in changed], pa.binary())
        texts = pa.Array.from_buffers(pa.string(), len(changed), encoded.buffers())  # whether UTF-8 or not
        return texts.dictionary_encode() if pa.types.is_dictionary(kind) else texts
    try:
        return pa.array(changed, kind)
    except (pa.ArrowException, OverflowError, TypeError):
        wide = pa.float64() if value == 2**63 and any(isinstance(v, int) and v < 0 for v in values) else None
        numbers = [v if isinstance(v, int) else None for v in changed]
        return pa.array(numbers, wide or (pa.uint64() if value == 2**63 else pa.int64()))
