"""A trace in memory or on disk: the tables of :mod:`traceviz.trace.schema`, validated in one place.

``TraceTables(...)`` checks every table against its declaration; later code trusts them. Tables are Arrow in memory or
Parquet files that are scanned lazily; a polars ``LazyFrame`` covers both. On disk a trace is a folder: one Parquet file
per table and ``manifest.json``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from traceviz.core.errors import DamagedTraceError, MissingTableError, SchemaError
from traceviz.core.files import new_folder
from traceviz.core.lazy_module import Later
from traceviz.core.notebook_repr import Shown
from traceviz.core.sanitize import one_line
from traceviz.trace import schema
from traceviz.trace.parquet import Window, read_pieces, read_whole
from traceviz.trace.rows_to_table import rows_to_table
from traceviz.trace.trace_folder import MANIFEST, MANIFEST_KIND, is_trace_folder
from traceviz.untrusted.json_documents import read_document
from traceviz.untrusted.parquet import DAMAGE, open_parquet

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    pl, pc, pq = Later("polars"), Later("pyarrow.compute"), Later("pyarrow.parquet")

WINDOW_NOTE = "window"
"""Code of the note in a trace that is a time window of another trace."""
ANNOTATED_STEPS_NOTE = "steps-from-annotations"
"""Code of the note in a trace whose groups start with annotations that its producer ignores."""
_AGAIN = "Convert the source again: traceviz convert TRACE -o DIR."
_MANY = 1 << 16
"""Least rows of a table for which a search for columns that take no memory pays off."""
_SORTED_AT_ONCE = 2
"""Columns that are in memory twice while a large table is sorted."""
_LONGEST_SHOWN = 40
"""Characters of a text that a note quotes."""
_SMALL = 256 << 10
"""Bytes in memory below which a table is small."""
PIECE = 1 << 20
"""Rows of a table that are processed together."""
ROW_GROUP = 1 << 18
"""Rows of one row group of a Parquet file."""

SMALL_ROWS = 100_000
"""Rows below which the set-up of the streaming engine takes longer than most queries."""


@dataclass(frozen=True, slots=True, eq=False)
class Framed:
    """A large table in polars: columns that are null, or of one value, take no memory there."""

    frame: pl.DataFrame

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.frame.height


Source = pa.Table | Path | Framed
Positions = npt.NDArray[np.int32] | npt.NDArray[np.int64]
"""Positions of rows; 32 bits wide if that is enough."""

compute: Any = pc
_buffer: Any = pa.py_buffer
"""Untyped: the stubs of pyarrow lack dictionaries of bounds, and memory of NumPy arrays as it is."""


@dataclass(frozen=True, slots=True)
class TraceTables(Shown):
    """The tables of one trace, each an Arrow table or a Parquet file.

    Attributes of the names in :data:`traceviz.trace.schema.TABLES` give polars ``LazyFrame`` views, for example
    ``tables.kernels``.

    Args:
        sources: Tables by name. Arrow tables are cast to the declared types and sorted by ``start_ns``. For texts that
            the closed set of their column lacks, see :func:`with_known_texts`.

    Raises:
        SchemaError: a table is not declared, lacks a column, has a null where none may be, or cannot be cast.
        MissingTableError: on access to a table that the trace does not have.
    """

    shown_as: ClassVar[str] = "tables"
    sources: Mapping[str, Source] = field(repr=False)
    _frames: dict[str, pl.DataFrame] = field(init=False, repr=False, compare=False, default_factory=dict)
    _places: dict[str, Source] = field(init=False, repr=False, compare=False, default_factory=dict)
    _selected: dict[tuple[str, ...], pl.DataFrame] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        checked: dict[str, Source] = {}
        notes: list[dict[str, Any]] = []
        for name, source in self.sources.items():
            checked[name] = source
            if isinstance(source, pa.Table):
                checked[name], found = with_known_texts(name, conform(name, source))
                notes += found
        for name in schema.REQUIRED:
            checked.setdefault(name, schema.table(name).empty())
        if notes and isinstance(stated := checked["notes"], pa.Table):  # few rows: no reader puts them into a file
            checked["notes"] = with_notes(stated, notes)
        ordered = {name: checked[name] for name in schema.TABLES if name in checked}
        unknown = set(checked) - set(ordered)
        if unknown:
            raise SchemaError(f"Undeclared tables: {', '.join(sorted(unknown))}.")
        object.__setattr__(self, "_places", ordered)
        object.__setattr__(self, "sources", ordered)

    def __repr__(self) -> str:
        return f"TraceTables({', '.join(f'{name}: {self.rows(name):,}' for name in self)})"

    def __dir__(self) -> list[str]:
        """Return all attributes, and the tables of this trace, for completion."""
        return sorted({*object.__dir__(self), *self})

    def __contains__(self, name: str) -> bool:
        return name in self.sources

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __getattr__(self, name: str) -> pl.LazyFrame:
        if name in schema.TABLES:
            return self.scan(name)
        raise AttributeError(name)

    def scan(self, name: str) -> pl.LazyFrame:
        """Return table ``name`` as a polars ``LazyFrame``.

        Raises:
            MissingTableError: the trace does not have it.
        """
        source = self._source(name)
        return _with_added_columns(name, source) if isinstance(source, Path) else self._frame(name, source).lazy()

    def select(self, name: str, *columns: str | pl.Expr) -> pl.DataFrame:
        """Return columns of table ``name``, and expressions over them. Columns of tables in memory need no query.

        Raises:
            MissingTableError: the trace does not have it.
        """
        source = self._source(name)
        if not isinstance(source, Path):
            frame = self._frame(name, source)
            plain = tuple(column for column in columns if isinstance(column, str))
            if frame.height >= _MANY or len(plain) < len(columns):
                return _chosen(frame, columns)
            if (name, *plain) not in self._selected:  # many analyses request the same columns
                self._selected[name, *plain] = frame[list(plain)]
            return self._selected[name, *plain]
        roots = _roots(columns)
        if roots is None:
            return self.scan(name).select(columns).collect()
        return _chosen(_completed(name, _whole(source, roots), roots), columns)

    def pieces(self, name: str, *columns: str | pl.Expr) -> Iterator[pl.DataFrame]:
        """Yield the rows of :meth:`select` in order, in pieces, so that results derived from each take little memory.

        Expressions must compute each row independently.

        Raises:
            MissingTableError: the trace does not have the table.
            DamagedTraceError: its file cannot be read.
        """
        source, roots = self._source(name), _roots(columns)
        if not isinstance(source, Path):
            frame = self._frame(name, source)
            for begin in range(0, max(frame.height, 1), PIECE):
                yield _chosen(frame.slice(begin, PIECE), columns)
            return
        if roots is None:
            yield self.select(name, *columns)
            return
        for table in _pieces(source, roots):
            yield _chosen(_completed(name, table, roots), columns)

    def _frame(self, name: str, source: pa.Table | Framed) -> pl.DataFrame:
        """Return the frame of a table, made once because polars recodes texts. It replaces a large Arrow table."""
        if isinstance(source, Framed):
            return source.frame
        if name not in self._frames:
            self._frames[name] = _in_polars(source)
            if source.num_rows >= _MANY:
                self._places[name] = Framed(self._frames[name])
        return self._frames[name]

    def arrow(self, name: str, wanted: Collection[str] | None = None, window: Window | None = None) -> pa.Table:
        """Return table ``name`` as an Arrow table with the declared types.

        Args:
            name: The table.
            wanted: Nullable columns to read, if the table is a file; the others are null then. ``None`` for all.
            window: If the table is a file, rows completely outside of this window may be left out.

        Raises:
            MissingTableError: the trace does not have it.
            DamagedTraceError, SchemaError: its file cannot be read, or does not match the contract.
        """
        source = self._source(name)
        if isinstance(source, pa.Table):
            return source
        if isinstance(source, Framed):
            return conform(name, source.frame.to_arrow())
        needed = None
        if wanted is not None:
            needed = frozenset(column.name for column in schema.table(name).columns if not column.nullable).union(
                wanted
            )
        return conform(name, _whole(source, needed, window))

    def rows(self, name: str) -> int:
        """Return the number of rows of table ``name``; 0 if the trace does not have it."""
        if name not in self:
            return 0
        source = self._source(name)
        return pq.read_metadata(source).num_rows if isinstance(source, Path) else source.num_rows

    @overload
    def to_pandas(self, name: str, /) -> pd.DataFrame: ...

    @overload
    def to_pandas(self, *names: str) -> Any: ...

    def to_pandas(self, *names: str) -> Any:
        """Return tables for pandas: one name gives a ``DataFrame``; several, or none for all tables, a dict by name.

        >>> tables.to_pandas("kernels").groupby("name")["dur_ns"].sum()
        >>> tables.to_pandas("kernels", "memcpy")["memcpy"]

        Raises:
            MissingTableError: the trace does not have one of them.
        """
        if len(names) == 1:
            return self.arrow(names[0]).to_pandas()
        return {name: self.arrow(name).to_pandas() for name in names or self}

    def replace(self, changed: Mapping[str, Source]) -> Self:
        """Return a new trace in which the tables in ``changed`` are added, or replace those of the same name."""
        return type(self)({**self.sources, **changed})

    @property
    def are_spilled(self) -> bool:
        """True if any table lies in a file, and is read from there each time."""
        return any(isinstance(source, Path) for source in self.sources.values())

    @property
    def engine(self) -> Literal["in-memory", "streaming"]:
        """The faster engine of polars: for a small trace, the one with less set-up."""
        is_small = not self.are_spilled and sum(self.rows(name) for name in self) < SMALL_ROWS
        return "in-memory" if is_small else "streaming"

    def run_facts(self) -> dict[str, Any]:
        """Return the single row of table ``run`` as a dict; empty if the reader gave none."""
        rows = self.arrow("run").to_pylist()
        return dict(rows[0]) if rows else {}

    def _source(self, name: str) -> Source:
        try:
            return self.sources[name]
        except KeyError:
            raise MissingTableError.named(name, self.sources) from None


def _roots(columns: tuple[str | pl.Expr, ...]) -> frozenset[str] | None:
    """Return the stored columns that ``columns`` use; ``None`` if an expression must be resolved on a frame."""
    roots: list[str] = []
    for one in columns:
        if isinstance(one, str):
            roots.append(one)
        elif one.meta.has_multiple_outputs() or not (names := one.meta.root_names()):
            return None
        else:
            roots += names
    return frozenset(roots)


def _chosen(frame: pl.DataFrame, columns: tuple[str | pl.Expr, ...]) -> pl.DataFrame:
    plain = [column for column in columns if isinstance(column, str)]
    return frame[plain] if len(plain) == len(columns) else frame.select(columns)


def _whole(path: Path, wanted: frozenset[str] | None, window: Window | None = None) -> pa.Table:
    """Read columns of a file, each in one piece.

    Raises:
        DamagedTraceError: the file cannot be read.
    """
    try:
        return read_whole(path, wanted, window)
    except DAMAGE as error:
        raise _unreadable(path, error) from error


def _pieces(path: Path, wanted: frozenset[str]) -> Iterator[pa.Table]:
    """Yield columns of a file, :data:`PIECE` rows at a time; an empty table for a file without rows.

    Raises:
        DamagedTraceError: the file cannot be read.
    """
    try:
        yield from read_pieces(path, wanted, PIECE)
    except DAMAGE as error:
        raise _unreadable(path, error) from error


def _completed(name: str, table: pa.Table, wanted: frozenset[str]) -> pl.DataFrame:
    """Return ``table`` in polars, with nulls for the ``wanted`` columns that its file lacks."""
    fields = [column for column in schema.table(name).columns if column.name in wanted]
    for column in fields:
        if column.name not in table.column_names:
            table = table.append_column(column.name, schema.nulls(table.num_rows, column.type))
    return _in_polars(table)


def _in_polars(table: pa.Table) -> pl.DataFrame:
    """Return ``table`` in polars, in the same memory. A column of nulls, or of one text, becomes a single value.

    So does a nullable column of one integer, which is rarely read. Other columns of numbers are often read as arrays.
    """
    fields = table.schema if table.num_rows >= _MANY else ()
    columns = zip(fields, table.columns, strict=False)
    same = [one.name for one, column in columns if _is_one_value(column, may_be_number=one.nullable)]
    frame = pl.from_arrow(table.drop_columns(same))
    assert isinstance(frame, pl.DataFrame)
    if not same:
        return frame
    first = pl.from_arrow(table.select(same).slice(0, 1))
    assert isinstance(first, pl.DataFrame)
    words = first.with_columns(pl.col(pl.Categorical).cast(pl.String)).row(0)
    values = (pl.lit(word, dtype).alias(name) for word, (name, dtype) in zip(words, first.schema.items(), strict=True))
    return frame.with_columns(values).select(table.column_names)


def _is_one_value(column: pa.ChunkedArray[Any], *, may_be_number: bool) -> bool:
    """Return whether all of ``column`` is null, or the same text, or with ``may_be_number`` the same integer."""
    if column.null_count == len(column):
        return True
    if column.null_count or column.num_chunks != 1:
        return False
    values: Any = column.chunk(0)
    if pa.types.is_dictionary(column.type):
        values = values.indices
    elif not may_be_number or not pa.types.is_integer(column.type):
        return False
    if values[0] != values[-1]:
        return False
    bounds = compute.min_max(values)
    return bool(bounds["min"] == bounds["max"])


def _with_added_columns(name: str, path: Path) -> pl.LazyFrame:
    """Scan the Parquet file; declared nullable columns that it lacks are nulls (see ``schema.SCHEMA_VERSION``)."""
    frame = pl.scan_parquet(path, glob=False)  # folders may be called "run[1]"
    declared = schema.table(name).arrow.names
    present = set(pq.read_schema(path).names)
    if present.issuperset(declared):
        return frame
    empty = pl.from_arrow(schema.table(name).empty())
    assert isinstance(empty, pl.DataFrame)
    return frame.select(
        pl.col(column) if column in present else pl.lit(None, dtype=empty.schema[column]).alias(column)
        for column in declared
    )


def conform(name: str, table: pa.Table) -> pa.Table:
    """Return ``table`` with exactly the declared columns and types of ``name``, sorted by ``start_ns``.

    A nullable column that is missing is filled with nulls: not known.

    Raises:
        SchemaError: another column is missing, cannot be cast, or holds a null that its declaration forbids.
        UsageError: no such table is declared.
    """
    return conform_only(name, [table])


def conform_only(name: str, given: list[pa.Table]) -> pa.Table:
    """Do the same as :func:`conform` for the only table in ``given``, which is removed from there.

    If no other reference exists, each column is released as soon as it is sorted: no table is in memory twice.
    """
    typed = _typed(name, given.pop())
    order = _order(typed)
    if order is None:
        return typed
    declared, columns = typed.schema, typed.columns
    del typed
    if len(order) < _MANY:
        return pa.table([_sorted(column, order) for column in columns], schema=declared)
    with ThreadPoolExecutor(_SORTED_AT_ONCE) as pool:
        columns.reverse()
        sorting = [pool.submit(_sorted, columns.pop(), order) for _ in declared]
    return pa.table([column.result() for column in sorting], schema=declared)


def _sorted(column: pa.ChunkedArray[Any], order: Positions) -> Any:
    """Return ``column`` in ``order``. If all values are equal, as in many columns, the order does not matter."""
    if column.null_count == len(column):
        return column
    values: Any = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_dictionary(values.type):
        return pa.DictionaryArray.from_arrays(_sorted(pa.chunked_array([values.indices]), order), values.dictionary)
    if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        return values.take(pa.array(order))
    bounds = compute.min_max(values)
    if not values.null_count and bounds["min"] == bounds["max"]:
        return values
    known = None
    if values.null_count:
        flags = values.is_valid().to_numpy(zero_copy_only=False)
        known = _buffer(np.packbits(_gathered(flags, order), bitorder="little"))
    stored = np.frombuffer(values.buffers()[1], values.type.to_pandas_dtype())
    numbers = _gathered(stored[values.offset : values.offset + len(values)], order)
    return pa.Array.from_buffers(values.type, len(values), [known, _buffer(numbers)])


def _gathered(values: npt.NDArray[Any], order: Positions) -> npt.NDArray[Any]:
    """Return ``values[order]``. NumPy widens positions to 64 bits; here it does so for few rows at once.

    NumPy's large arrays lie in large pages of memory, which take a fraction of the time to allocate.
    """
    result = np.empty(order.size, values.dtype)
    for begin in range(0, order.size, ROW_GROUP):
        part = slice(begin, begin + ROW_GROUP)
        np.take(values, order[part], out=result[part], mode="clip")  # all positions are within
    return result


def _typed(name: str, table: pa.Table) -> pa.Table:
    """Return ``table`` with the declared columns and types; its rows keep their order."""
    declared = schema.table(name)
    if not table.schema.equals(declared.arrow):
        missing = _missing(name, table.column_names)
        if missing:
            raise SchemaError(f"Table {name} lacks the columns {', '.join(missing)}.")
        unknown = declared.unknown(table.num_rows)
        columns = [
            _cast(name, table.column(column.name), column)
            if column.name in table.column_names
            else unknown.column(column.name)
            for column in declared.columns
        ]
        table = pa.table(columns, schema=declared.arrow)
    for column in declared.columns:
        if not column.nullable and table.column(column.name).null_count:
            raise SchemaError(f"Table {name}: column {column.name} may not hold nulls.")
    return table


def with_known_texts(name: str, table: pa.Table) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Check the columns of ``table`` with a closed set of texts: other programs or newer versions may write folders.

    Args:
        name: Name of the table.
        table: Its rows, with the declared columns and types.

    Returns:
        The table, in which ``Column.otherwise`` replaces each text that the set lacks (if that is ``None``, a null or
        no row), and a row of table ``notes`` for each such column.
    """
    notes = []
    for column in schema.table(name).closed:
        stated = table.column(column.name)
        strangers = [text for text in _distinct(stated) if text is not None and text not in column.values]
        if not strangers:
            continue
        texts = stated.cast(pa.string())
        is_strange = compute.is_in(texts, value_set=pa.array(strangers, pa.string()))
        count = int(compute.sum(is_strange).as_py() or 0)
        if not count:  # a dictionary may hold texts that no row has
            continue
        if column.otherwise is None and not column.nullable:
            table, fate = table.filter(compute.invert(is_strange)), "left out"
        else:
            other = pa.scalar(column.otherwise, pa.string())
            known = compute.if_else(is_strange, other, texts)
            known = known if column.type == schema.TEXT else known.dictionary_encode().cast(column.type)
            table = table.set_column(table.column_names.index(column.name), table.schema.field(column.name), known)
            fate = "read as null" if column.otherwise is None else f"read as {column.otherwise!r}"
        shown = one_line(strangers[0])[:_LONGEST_SHOWN]
        message = f"{name}.{column.name}: texts that traceviz does not know, {fate}, such as {shown!r}."
        notes.append({"code": schema.UNKNOWN_TEXT_NOTE, "severity": "warning", "count": count, "message": message})
    return table, notes


def with_notes(notes: pa.Table, rows: list[dict[str, Any]]) -> pa.Table:
    """Return table ``notes`` with more ``rows``."""
    return pa.concat_tables([notes, rows_to_table("notes", rows)])


def _distinct(texts: pa.ChunkedArray[Any]) -> list[str | None]:
    """Return all texts of a column. For an encoded column, no row is read, so texts that no row has may be included."""
    if not pa.types.is_dictionary(texts.type):
        return list(compute.unique(texts).to_pylist())
    chunks: list[Any] = texts.chunks
    return list(dict.fromkeys(word for chunk in chunks for word in chunk.dictionary.to_pylist()))


def _missing(name: str, present: Collection[str]) -> list[str]:
    """Return the required columns of table ``name`` that are not ``present``."""
    return [c.name for c in schema.table(name).columns if not c.nullable and c.name not in present]


def _cast(name: str, values: pa.ChunkedArray[Any], column: schema.Column) -> pa.ChunkedArray[Any]:
    if values.type.equals(column.type):
        return values
    try:
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(values.type):
            return values.cast(pa.string()).dictionary_encode().cast(column.type)
        return values.cast(column.type)
    except pa.ArrowException as error:
        raise SchemaError(f"Table {name}: column {column.name} is not {column.type}.", str(error)) from error


def _order(table: pa.Table) -> Positions | None:
    """Return the positions of the rows in order of ``start_ns``, stable; ``None`` if they are in order already."""
    if "start_ns" not in table.column_names:
        return None
    starts = table.column("start_ns").to_numpy()
    if np.all(starts[1:] >= starts[:-1]):
        return None
    # Profilers write nearly in order: a merge sort finds the sorted runs and takes one pass.
    order = np.argsort(starts, kind="stable")
    return order.astype(np.int32) if order.size <= np.iinfo(np.int32).max else order


def save(
    tables: TraceTables, folder: Path, *, force: bool = False, provenance: Mapping[str, Any] | None = None
) -> None:
    """Write ``tables`` as a traceviz folder: Parquet files and ``manifest.json``.

    The folder appears complete or not at all: it is written under a temporary name next to the target and renamed.

    Args:
        tables: Tables to write.
        folder: The folder to create.
        force: Replace an existing traceviz folder.
        provenance: Facts about the source for the manifest (name, sha256, what was left out).

    Raises:
        OutputExistsError: ``folder`` exists, and ``force`` is false.
        OutputError: it cannot be written.
    """
    with new_folder(folder, force=force, replaceable=is_trace_folder) as target:
        write_tables(target, ((name, tables.arrow(name)) for name in tables), provenance or {})


def write_tables(target: Path, tables: Iterable[tuple[str, pa.Table]], provenance: Mapping[str, Any]) -> None:
    """Write tables one after the other into the existing folder ``target``, and its manifest last.

    Tables need not be sorted. Each is released before the next is taken: peak memory is that of the largest table and
    one row group. An empty table has no file: the manifest lists it with no rows.

    Raises:
        SchemaError, UsageError: as :func:`conform`.
    """
    counts = {}
    for name, table in tables:
        counts[name] = table.num_rows
        typed = _typed(name, table)
        if table.num_rows:
            _write(target / f"{name}.parquet", typed)
        del table, typed
    manifest = {"kind": MANIFEST_KIND, "schema_version": schema.SCHEMA_VERSION, "tables": counts, **provenance}
    (target / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def _write(path: Path, table: pa.Table) -> None:
    """Write one Parquet file, sorted by ``start_ns`` one row group at a time."""
    order = _order(table)
    with parquet_writer(path, table.schema, is_small=table.nbytes < _SMALL) as writer:
        for begin in range(0, table.num_rows, ROW_GROUP):
            part = slice(begin, begin + ROW_GROUP)
            rows = table.slice(begin, ROW_GROUP) if order is None else _take(table, pa.array(order[part]))
            writer.write_table(rows, ROW_GROUP)


def parquet_writer(path: Path, declared: pa.Schema, *, is_small: bool = False) -> pq.ParquetWriter:
    """Return the writer for the rows of a table of the contract. They come in its order, which the file states.

    Integers are stored as differences between neighbours, which are small, above all those of times. Files are smaller,
    and faster to write and to read, than with dictionaries of numbers. For the columns of a small table, the set-up of
    zstd
    would take longer than compressing, and save nothing.
    """
    names = [field.name for field in declared if pa.types.is_dictionary(field.type)]
    integers = [field.name for field in declared if pa.types.is_int64(field.type)]
    return pq.ParquetWriter(
        path,
        declared,
        compression="snappy" if is_small else "zstd",
        compression_level=None if is_small else 1,
        use_dictionary=names,  # type: ignore[arg-type]  # the stubs know only all or none
        write_statistics=[name for name in integers if name == "start_ns"],
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        sorting_columns=[pq.SortingColumn(at) for at, name in enumerate(declared.names) if name == "start_ns"],
    )


def _take(table: pa.Table, positions: pa.Array[Any]) -> pa.Table:
    """Return rows at ``positions``. In nearly sorted tables these are neighbours: only their range is copied."""
    bounds = pc.min_max(positions)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    stretch = table.slice(first, last - first + 1)
    return stretch.combine_chunks().take(pc.subtract(positions, first))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a traceviz folder.

    Raises:
        DamagedTraceError: there is none, it cannot be parsed, or a newer traceviz wrote it.
    """
    try:
        manifest = read_document(folder / MANIFEST)
    except (OSError, ValueError) as error:
        raise DamagedTraceError(
            f"{folder} has no readable {MANIFEST}.",
            str(error),
            "Convert the source again: traceviz convert TRACE -o DIR.",
        ) from error
    if not isinstance(manifest, dict) or manifest.get("kind") != MANIFEST_KIND:
        raise DamagedTraceError(f"{folder / MANIFEST} is not the manifest of a traceviz folder.")
    version = manifest.get("schema_version")
    if not isinstance(version, int) or not 1 <= version <= schema.SCHEMA_VERSION:
        raise DamagedTraceError(
            f"{folder} follows schema version {version}; this traceviz reads 1 to {schema.SCHEMA_VERSION}.",
            fix="Install a newer traceviz, or convert the source again.",
        )
    return manifest


def load(folder: Path) -> TraceTables:
    """Open a traceviz folder; its Parquet files are scanned on demand. Empty tables may have no file.

    Raises:
        DamagedTraceError: no manifest, or a file that the manifest names is missing or does not match the contract.
    """
    manifest = read_manifest(folder)
    sources: dict[str, Source] = {}
    counts = manifest.get("tables")
    if not isinstance(counts, dict) or not set(counts) <= set(schema.TABLES):
        raise DamagedTraceError(f"{folder / MANIFEST} does not list the tables of a trace.", f"It says: {counts!r}.")
    for name, count in counts.items():
        path = folder / f"{name}.parquet"
        if count == 0 and not path.exists():
            sources[name] = schema.table(name).empty()
            continue
        try:
            with open_parquet(path) as file:
                metadata, present = file.metadata, set(file.schema_arrow.names)
        except DAMAGE as error:
            raise _unreadable(path, error) from error
        if metadata.num_rows != count:
            raise DamagedTraceError(f"{path} holds {metadata.num_rows} rows; the manifest says {count}.", fix=_AGAIN)
        missing = _missing(name, present)
        if missing:
            raise DamagedTraceError(f"{path} lacks the columns {', '.join(missing)}.", fix=_AGAIN)
        sources[name] = path
    return TraceTables(sources)


def _unreadable(path: Path, error: Exception) -> DamagedTraceError:
    return DamagedTraceError(f"{path} cannot be read.", f"{str(error).rstrip('.')}.", _AGAIN)
