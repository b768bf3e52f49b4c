"""Answers of queries for people and programs: page, CSV, JSON, Markdown, or Parquet file, batch by batch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from traceviz.archive.catalogue.columns import COLUMNS
from traceviz.core.errors import UsageError
from traceviz.core.notebook_repr import Shown
from traceviz.core.sanitize import visible_json
from traceviz.core.units import Unit, Value, counted, format_value
from traceviz.render.csv import CsvRenderer
from traceviz.render.markdown import data
from traceviz.render.options import RenderOptions
from traceviz.render.terminal.page import TerminalRenderer
from traceviz.report import Column, Grid, Prose, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode
from traceviz.trace.schema import TABLES

SCHEMA = "traceviz.query/1"
"""Schema of an answer as JSON."""
MOMENTS = frozenset({"recorded_ns", "added_ns", "changed_ns", "t0_unix_ns"})
"""Columns of Unix time, shown to people as dates."""
_EXACT = 2**53
"""Bound above which whole numbers are printed in full."""
_BY_END: tuple[tuple[str, Unit], ...] = (("_ns", "ns"), ("_bytes", "bytes"), ("_share", "ratio"), ("_id", "id"))
_BY_NAME: dict[str, Unit] = {"share": "ratio", "bytes_per_second": "bytes/s"}
_IDS = frozenset({"address", "ordinal", "pid", "rank", "step", "stream", "tid"})
_NARROW_FROM = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True, repr=False)
class Leading(Shown):
    """The first rows of an answer.

    Args:
        table: The rows.
        more: True if there are more rows.
    """

    shown_as: ClassVar[str] = "answer"
    table: pa.Table
    more: bool

    def __repr__(self) -> str:
        more = " and more" if self.more else ""
        return f"Leading({counted(self.table.num_rows, 'row')}{more} of {', '.join(self.table.column_names)})"

    @property
    def document(self) -> Report:
        """The rows as a report with units, for renderers. The table has every column."""
        grid = _grid(self.table, for_people=True)
        notes = (Prose("There are more rows."),) if self.more else ()
        return _document(counted(len(grid.rows), "row"), (grid, *notes))


def leading(batches: pa.RecordBatchReader, limit: int) -> Leading:
    """Return the first ``limit`` rows, reading no more batches than necessary."""
    collected: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        collected.append(batch)
        rows += batch.num_rows
        if rows > limit:
            break
    table = pa.Table.from_batches(collected, schema=batches.schema)
    return Leading(table.slice(0, limit), rows > limit)


def first(batches: pa.RecordBatchReader, limit: int) -> pa.RecordBatchReader:
    """Return the same answer, limited to its first ``limit`` rows."""

    def limited() -> Iterator[pa.RecordBatch]:
        left = limit
        for batch in batches:
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return

    return pa.RecordBatchReader.from_batches(batches.schema, limited())


def unit_of(field: pa.Field[Any]) -> Unit:
    """Return the unit of a column: the schema's unit for its name, or the unit of its suffix.

    ``dur_ns`` and ``total_ns`` are times, ``input_share`` and ``api_share`` are ratios. Others are plain numbers.
    """
    if pa.types.is_boolean(field.type):
        return "bool"
    is_whole = pa.types.is_integer(field.type) or field.type == _NARROW_FROM
    if not is_whole and not pa.types.is_floating(field.type) and not pa.types.is_decimal(field.type):
        return "text"
    if field.name in _IDS and is_whole:
        return "id"
    named = _BY_NAME.get(field.name) or _KNOWN.get(field.name)
    ended = next((unit for end, unit in _BY_END if field.name.endswith(end)), None)
    return named or ended or ("count" if is_whole else "number")


def _units_by_name() -> dict[str, Unit]:
    """Return the units of columns by name, if all tables with this column agree."""
    units_by_name: dict[str, set[str]] = {}
    for column in (*(column for table in TABLES.values() for column in table.columns), *COLUMNS):
        units_by_name.setdefault(column.name, set()).add(column.unit)
    units = {str(unit): unit for unit in get_args(Unit)}
    return {name: units[unit] for name, (unit, *others) in units_by_name.items() if not others and unit in units}


_KNOWN = _units_by_name()


def page(answer: Leading, width: int, *, color: bool) -> str:
    """Render the rows as an aligned table with units. Columns that do not fit the page are named below it."""
    from traceviz.render.terminal.grid import shown_columns_at  # noqa: PLC0415 (rich takes 0.1 s to import)

    grid = _grid(answer.table, for_people=True)
    kept = grid if len(shown_columns_at(grid, width)) == len(grid.columns) else _without_empty(grid)
    shown = shown_columns_at(kept, width)
    empty = [column.name for column in grid.columns if column not in kept.columns]
    hidden = [column.name for column in kept.columns if column.name not in shown]
    notes = (
        f"Columns: {', '.join(column.name for column in grid.columns)}." if not grid.rows else "",
        f"Empty: {', '.join(empty)}." if empty and grid.rows else "",
        f"Not on this page, which is too narrow: {', '.join(hidden)}. Give --width, or --format csv." if hidden else "",
        "There are more rows: --limit shows them." if answer.more else "",
    )
    blocks: tuple[Grid | Prose, ...] = (kept, *(Prose(note) for note in notes if note))
    title = f"First {counted(len(grid.rows), 'row')}" if answer.more else counted(len(grid.rows), "row")
    return TerminalRenderer().render(_document(title, blocks), RenderOptions(width, color))


def _without_empty(grid: Grid) -> Grid:
    """Return the table without empty columns, except the first."""
    if not grid.rows:
        return Grid(grid.columns[:1], ())
    kept = [index for index, column in enumerate(grid.columns) if column.importance or not index]
    rows = tuple(tuple(row[index] for index in kept) for row in grid.rows)
    return Grid(tuple(grid.columns[index] for index in kept), rows, complete=True)


def markdown(answer: Leading) -> str:
    """Render the rows as a Markdown table with units."""
    grid = _grid(answer.table, for_people=True)
    lines = [
        [data(column.label) for column in grid.columns],
        ["---" if column.unit in {"text", "bool"} else "---:" for column in grid.columns],
        *(
            [data(format_value(value, column.unit)) for value, column in zip(row, grid.columns, strict=True)]
            for row in grid.rows
        ),
    ]
    more = "\nThere are more rows.\n" if answer.more else ""
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + more


def csv(batches: pa.RecordBatchReader) -> Iterator[str]:
    """Yield the answer as CSV with numbers in base units: the heading, then the rows of each batch."""
    renderer, options = CsvRenderer(), RenderOptions()
    empty_table = batches.schema.empty_table()
    yield renderer.render(_document("", (_grid(empty_table),)), options)
    for batch in batches:
        text = renderer.render(_document("", (_grid(pa.Table.from_batches([batch])),)), options)
        yield text.partition("\n")[2]  # the heading is one line for any column names


def as_json(batches: pa.RecordBatchReader) -> Iterator[str]:
    """Yield the answer as a JSON document: ``schema``, ``columns`` (name, unit), ``rows`` (one object each)."""
    columns = [{"name": field.name, "unit": unit_of(field)} for field in batches.schema]
    yield f'{{"schema": {json.dumps(SCHEMA)},\n "columns": {_json(columns)},\n "rows": ['
    separator = "\n"
    for batch in batches:
        for row in zip(*_columns(pa.Table.from_batches([batch])), strict=True):
            named = {name: _finite(value) for name, value in zip(batches.schema.names, row, strict=True)}
            yield f"{separator}  {_json(named)}"
            separator = ",\n"
    yield "\n ]}\n"


def _json(value: Any) -> str:
    return visible_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


def parquet(batches: pa.RecordBatchReader, path: Path, *, narrow: bool = True) -> None:
    """Write the answer to a Parquet file.

    Args:
        batches: The answer.
        path: The file.
        narrow: If true, 128-bit integers (the type of sums) become 64-bit.

    Raises:
        UsageError: a number does not fit, or Parquet has no such type.
    """
    schema = batches.schema
    if narrow:
        schema = pa.schema([pa.field(f.name, pa.int64() if f.type == _NARROW_FROM else f.type) for f in schema])
    try:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in batches:
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
    except pa.ArrowInvalid as error:
        raise UsageError(
            "A number of the answer needs more than 64 bits.", str(error), "Make it text: CAST(total AS VARCHAR)."
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise UsageError("Parquet has no such type.", str(error), "Make it text: CAST(column AS VARCHAR).") from error


def _document(title: str, blocks: tuple[Grid | Prose, ...]) -> Report:
    return Report((), Verdict(VerdictCode.NONE, ""), (Section("answer", title, blocks),))


def _grid(table: pa.Table, *, for_people: bool = False) -> Grid:
    """Convert the answer to a table of a report. Its first column is the last to be dropped on a narrow page."""
    units: list[Unit] = [unit_of(field) for field in table.schema]
    columns = [list(map(_cell, values)) for values in _columns(table)]
    for index, name in enumerate(table.column_names if for_people else ()):
        if name in MOMENTS and units[index] == "ns":
            units[index], columns[index] = "text", _dates(table.column(index))
        elif any(isinstance(value, int) and abs(value) >= _EXACT for value in columns[index]):
            if units[index] in {"count", "id"}:
                units[index] = "text"
                columns[index] = [None if value is None else str(value) for value in columns[index]]
        elif name == "trace_id":  # never shortened: a partial id is useless
            units[index] = "id"
    importance = [0 if not position or set(values) <= {None, ""} else 1 for position, values in enumerate(columns)]
    heads = tuple(
        Column(name, name, unit, important, shorten=name != "verdict")
        for name, unit, important in zip(table.column_names, units, importance, strict=True)
    )
    return Grid(heads, tuple(zip(*columns, strict=True)), complete=True)


def _dates(values: pa.ChunkedArray[Any]) -> list[Value]:
    """Format points in Unix time as dates for people."""
    seconds = pc.divide(values.cast(pa.int64()), 10**9).cast(pa.timestamp("s"))
    return [None if moment is None else str(moment) for moment in seconds.to_pylist()]


def _columns(table: pa.Table) -> list[list[Any]]:
    return [[_plain(value, column.type) for value in _values(column)] for column in table.columns]


def _values(column: pa.ChunkedArray[Any]) -> list[Any]:
    """Return the values of a column as Python values. Times become texts if one exceeds Python's precision or range."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar[Any]) -> Any:
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.MapScalar):
        return [tuple(_value(item).values()) for item in scalar.values or ()]
    if isinstance(scalar, pa.ListScalar):
        return [_value(item) for item in scalar.values or ()]
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(item) for name, item in scalar.items()}
    if not pa.types.is_temporal(scalar.type) or pa.types.is_interval(scalar.type):
        return scalar.as_py()
    text = scalar.cast(pa.string()).as_py()
    return text.rstrip("0").removesuffix(".") if "." in text else text


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Convert an Arrow value to a JSON type: whole numbers in full, times and other types as text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(kind, pa.MapType):
        return {str(_plain(key, kind.key_type)): _plain(item, kind.item_type) for key, item in value}
    if isinstance(kind, pa.StructType):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(kind, pa.Decimal128Type):
        return int(value) if kind.scale == 0 else float(value)
    if isinstance(value, bytes):
        return value.hex()
    if pa.types.is_interval(kind):
        return f"{value.months} months {value.days} days {value.nanoseconds / 1e9:g} s"
    return str(value)


def _cell(value: Any) -> Value:
    """Return a value for a table cell; nested values become JSON."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    cell: Value = value
    return cell


def _finite(value: Any) -> Any:
    """Return a value for JSON: infinities, which JSON lacks, become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
