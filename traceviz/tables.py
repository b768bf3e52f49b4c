"""A trace in memory or on disk: the tables of :mod:`traceviz.schema`, validated at one door.

``TraceTables(...)`` checks every table against its declaration; what passes is trusted from there on. Tables are
Arrow in memory or Parquet files that are scanned lazily, and who asks for a polars ``LazyFrame`` never needs to know
which. On disk a trace is a folder: one Parquet file per table and ``manifest.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from traceviz import schema
from traceviz.errors import DamagedTraceError, MissingTableError, SchemaError
from traceviz.files import new_folder

if TYPE_CHECKING:
    import pandas as pd

MANIFEST = "manifest.json"
MANIFEST_KIND = "traceviz.trace"

Source = pa.Table | Path


@dataclass(frozen=True, slots=True)
class TraceTables:
    """The tables of one trace, each an Arrow table or a Parquet file.

    Attributes of the names in :data:`traceviz.schema.TABLES` give polars ``LazyFrame`` views, for example
    ``tables.kernels``.

    Args:
        sources: Tables by name. Arrow tables are cast to the declared types and sorted by ``start_ns``.

    Raises:
        SchemaError: a table is not declared, lacks a column, has a null where none may be, or cannot be cast.
        MissingTableError: on access to a table that the trace does not have.
    """

    sources: Mapping[str, Source] = field(repr=False)
    _frames: dict[str, pl.DataFrame] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        checked = {
            name: source if isinstance(source, Path) else conform(name, source) for name, source in self.sources.items()
        }
        for name in schema.REQUIRED:
            checked.setdefault(name, schema.table(name).empty())
        ordered = {name: checked[name] for name in schema.TABLES if name in checked}
        unknown = set(checked) - set(ordered)
        if unknown:
            raise SchemaError(f"Undeclared tables: {', '.join(sorted(unknown))}.")
        object.__setattr__(self, "sources", ordered)

    def __contains__(self, name: str) -> bool:
        return name in self.sources

    def __iter__(self) -> Iterator[str]:
        return iter(self.sources)

    def __getattr__(self, name: str) -> pl.LazyFrame:
        if name in schema.TABLES:
            return self.scan(name)
        raise AttributeError(name)

    def scan(self, name: str) -> pl.LazyFrame:
        """Table ``name`` as a polars ``LazyFrame``.

        Raises:
            MissingTableError: the trace does not have it.
        """
        source = self._source(name)
        if isinstance(source, Path):
            return pl.scan_parquet(source)
        if name not in self._frames:  # dictionaries are recoded on the way to polars: once is enough
            frame = pl.from_arrow(source)
            assert isinstance(frame, pl.DataFrame)
            self._frames[name] = frame
        return self._frames[name].lazy()

    def arrow(self, name: str) -> pa.Table:
        """Table ``name`` as an Arrow table with the declared types.

        Raises:
            MissingTableError: the trace does not have it.
        """
        source = self._source(name)
        return conform(name, pq.read_table(source)) if isinstance(source, Path) else source

    def rows(self, name: str) -> int:
        """Number of rows of table ``name``; 0 where the trace does not have it."""
        if name not in self:
            return 0
        source = self._source(name)
        return pq.read_metadata(source).num_rows if isinstance(source, Path) else source.num_rows

    def to_pandas(self) -> dict[str, pd.DataFrame]:
        """Every table as a pandas ``DataFrame``, by name."""
        return {name: self.arrow(name).to_pandas() for name in self}

    def replace(self, changed: Mapping[str, Source]) -> Self:
        """A new trace with the tables in ``changed`` added or put in place of those of the same name."""
        return type(self)({**self.sources, **changed})

    def run_facts(self) -> dict[str, Any]:
        """The single row of table ``run`` as a dict; empty where the reader gave none."""
        rows = self.arrow("run").to_pylist()
        return dict(rows[0]) if rows else {}

    def _source(self, name: str) -> Source:
        try:
            return self.sources[name]
        except KeyError:
            raise MissingTableError.named(name, self.sources) from None


def conform(name: str, table: pa.Table) -> pa.Table:
    """``table`` with exactly the declared columns and types of ``name``, sorted by ``start_ns``.

    Raises:
        SchemaError: a column is missing, cannot be cast, or holds a null that its declaration forbids.
        UsageError: no such table is declared.
    """
    declared = schema.table(name)
    if not table.schema.equals(declared.arrow):
        missing = [column.name for column in declared.columns if column.name not in table.column_names]
        if missing:
            raise SchemaError(f"Table {name} lacks the columns {', '.join(missing)}.")
        columns = [_cast(name, table.column(column.name), column) for column in declared.columns]
        table = pa.table(columns, schema=declared.arrow)
    for column in declared.columns:
        if not column.nullable and table.column(column.name).null_count:
            raise SchemaError(f"Table {name}: column {column.name} may not hold nulls.")
    return _sorted_by_start(table) if declared.is_events else table


def _cast(name: str, values: pa.ChunkedArray[Any], column: schema.Column) -> pa.ChunkedArray[Any]:
    if values.type.equals(column.type):
        return values
    try:
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(values.type):
            return values.cast(pa.string()).dictionary_encode().cast(column.type)
        return values.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"Table {name}: column {column.name} is not {column.type}.", str(error)) from error


def _sorted_by_start(table: pa.Table) -> pa.Table:
    starts = table.column("start_ns").combine_chunks()
    if len(starts) < 2 or not pc.any(pc.less(starts[1:], starts[:-1])).as_py():
        return table
    return table.take(pc.sort_indices(table, sort_keys=[("start_ns", "ascending")]))


def save(
    tables: TraceTables, folder: Path, *, force: bool = False, provenance: Mapping[str, Any] | None = None
) -> None:
    """Write ``tables`` as a traceviz folder: Parquet files and ``manifest.json``.

    The folder appears complete or not at all: it is written under a temporary name beside the target and renamed.

    Args:
        tables: What to write.
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

    Each table may be freed as soon as it is written, so peak memory is that of the largest table.
    """
    counts = {}
    for name, table in tables:
        pq.write_table(table, target / f"{name}.parquet", compression="zstd", row_group_size=1 << 18)
        counts[name] = table.num_rows
    manifest = {"kind": MANIFEST_KIND, "schema_version": schema.SCHEMA_VERSION, "tables": counts, **provenance}
    (target / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def is_trace_folder(folder: Path) -> bool:
    """Whether ``folder`` holds a traceviz manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == MANIFEST_KIND


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a traceviz folder.

    Raises:
        DamagedTraceError: there is none, it cannot be parsed, or a newer traceviz wrote it.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedTraceError(
            f"{folder} has no readable {MANIFEST}.",
            str(error),
            "Convert the source again: traceviz convert TRACE -o DIR.",
        ) from error
    if not isinstance(manifest, dict) or manifest.get("kind") != MANIFEST_KIND:
        raise DamagedTraceError(f"{folder / MANIFEST} is not the manifest of a traceviz folder.")
    version = manifest.get("schema_version")
    if version != schema.SCHEMA_VERSION:
        raise DamagedTraceError(
            f"{folder} follows schema version {version}; this traceviz reads {schema.SCHEMA_VERSION}.",
            fix="Install a newer traceviz, or convert the source again.",
        )
    return manifest


def load(folder: Path) -> TraceTables:
    """Open a traceviz folder; its Parquet files are scanned on demand.

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
        _check_file(path, name, count)
        sources[name] = path
    return TraceTables(sources)


def _check_file(path: Path, name: str, count: int) -> None:
    again = "Convert the source again: traceviz convert TRACE -o DIR."
    try:
        metadata = pq.read_metadata(path)
        found = set(pq.read_schema(path).names)
    except (OSError, pa.ArrowInvalid) as error:
        raise DamagedTraceError(f"{path} cannot be read.", str(error), again) from error
    if metadata.num_rows != count:
        raise DamagedTraceError(f"{path} holds {metadata.num_rows} rows; the manifest says {count}.", fix=again)
    missing = [column.name for column in schema.table(name).columns if column.name not in found]
    if missing:
        raise DamagedTraceError(f"{path} lacks the columns {', '.join(missing)}.", fix=again)
