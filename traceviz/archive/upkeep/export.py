"""Export of traces from an archive: as traceviz folders, or one table of many traces as a Parquet file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from traceviz.archive.catalogue.segments import PARQUET_ERRORS, ready
from traceviz.archive.storage.layout import ROWS, files_of, manifest_of, trace_parts
from traceviz.archive.storage.store import LAST, Store
from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.core.files import check_folder_free, new_file, new_folder
from traceviz.parsers.base import Progress, silent
from traceviz.trace import schema
from traceviz.trace.tables import conform, load
from traceviz.trace.trace_folder import MANIFEST, is_trace_folder

TRACE_ID = "trace_id"


def export_folders(
    store: Store,
    rows: pl.DataFrame,
    trace_ids: Sequence[str],
    folder: Path,
    *,
    force: bool = False,
    progress: Progress = silent,
) -> list[Path]:
    """Copy traces into ``folder`` as traceviz folders named after their ids. Each copy is atomic.

    Args:
        store: The archive.
        rows: Rows of its catalogue.
        trace_ids: Traces to copy.
        folder: The folder to copy to.
        force: Replace traceviz folders of these names.
        progress: Receives progress.

    Raises:
        OutputExistsError: a folder of the name of a trace exists, and ``force`` is false.
        OutputError: ``folder`` cannot be written.
        DamagedTraceError: files of a trace are missing.
    """
    formats = _formats(rows, trace_ids)
    targets = {trace_id: folder / trace_id for trace_id in trace_ids}
    for target in targets.values():  # before any copy
        check_folder_free(target, force=force, replaceable=is_trace_folder)
    for done, (trace_id, target) in enumerate(targets.items()):
        progress("exporting traces", done, len(targets))
        with new_folder(target, force=force, replaceable=is_trace_folder) as temporary:
            _copy(store, formats[trace_id], trace_id, temporary)
    return list(targets.values())


def export_table(
    store: Store,
    rows: pl.DataFrame,
    trace_ids: Sequence[str],
    table: str,
    file: Path,
    *,
    force: bool = False,
    progress: Progress = silent,
) -> int:
    """Write a table of all the traces as one Parquet file, with ``trace_id`` as the first column; return its row count.

    Traces without the table add no rows. One trace is in memory at a time.

    Args:
        store: The archive.
        rows: Rows of its catalogue.
        trace_ids: Traces whose rows are written.
        table: Name of the table.
        file: The file to write.
        force: Replace a file of this name.
        progress: Receives progress.

    Raises:
        UsageError: no such table is declared.
        OutputExistsError: ``file`` exists, and ``force`` is false.
        OutputError: it cannot be written.
        DamagedTraceError: the table of a trace cannot be read.
    """
    declared = schema.table(table).arrow
    target = pa.schema([pa.field(TRACE_ID, pa.dictionary(pa.int32(), pa.string()), nullable=False), *declared])
    formats, count = _formats(rows, trace_ids), 0
    with new_file(file, force=force) as temporary, pq.ParquetWriter(temporary, target, compression="zstd") as writer:
        for done, trace_id in enumerate(trace_ids):
            progress(f"exporting {table}", done, len(trace_ids))
            part = _table(store, formats[trace_id], trace_id, table)
            if part is not None:
                ids = pa.DictionaryArray.from_arrays(np.zeros(len(part), np.int32), pa.array([trace_id]))
                writer.write_table(pa.table([ids, *part.columns], schema=target))
                count += len(part)
    return count


def _formats(rows: pl.DataFrame, trace_ids: Sequence[str]) -> dict[str, str]:
    """Return the format of each trace.

    Raises:
        UsageError: a trace could not be read when it was added.
    """
    formats = dict(ready(rows).select("trace_id", "format").iter_rows())
    for trace_id in trace_ids:
        if trace_id not in formats:
            raise UsageError(f"{trace_id} has no tables.", "It could not be read when it was added.", "Leave it out.")
    return formats


def _copy(store: Store, format_name: str, trace_id: str, folder: Path) -> None:
    """Copy the tables and the report of a trace, with a manifest of these files only.

    Raises:
        DamagedTraceError: a file is missing, or differs from the manifest.
    """
    parts = trace_parts(format_name, trace_id)
    manifest = manifest_of(store, format_name, trace_id)
    files = files_of(manifest)
    if manifest is None or files is None:
        raise _damaged_error(trace_id, f"It has no {LAST} that names its files.")
    copied = {name: facts for name, facts in files.items() if name != ROWS}
    for name, facts in copied.items():
        digest = hashlib.sha256()
        try:
            with store.open(*parts, name) as source, (folder / name).open("wb") as target:
                while piece := source.read(1 << 22):
                    digest.update(piece)
                    target.write(piece)
        except FileNotFoundError:
            raise _damaged_error(trace_id, f"{name} is missing.") from None
        if digest.hexdigest() != facts.get("sha256"):
            raise _damaged_error(trace_id, f"The SHA-256 of {name} is not that of its manifest.")
    (folder / MANIFEST).write_text(json.dumps({**manifest, "files": copied}, indent=2) + "\n", encoding="utf-8")
    load(folder)  # check that every table exists with its rows


def _table(store: Store, format_name: str, trace_id: str, table: str) -> pa.Table | None:
    """Read a table of a trace; return ``None`` if it is missing or empty.

    Raises:
        DamagedTraceError: it cannot be read.
    """
    counts = (manifest_of(store, format_name, trace_id) or {}).get("tables")
    if not isinstance(counts, dict):
        raise _damaged_error(trace_id, f"It has no {LAST}.")
    if table not in counts or counts[table] == 0:  # an empty table may have no file
        return None
    try:
        with store.open(*trace_parts(format_name, trace_id), f"{table}.parquet") as file:
            return conform(table, pq.read_table(file))
    except (FileNotFoundError, *PARQUET_ERRORS) as error:
        raise _damaged_error(trace_id, f"{table}.parquet: {error}") from error


def _damaged_error(trace_id: str, why: str) -> DamagedTraceError:
    return DamagedTraceError(
        f"{trace_id} is damaged.", why, "Repair it: traceviz archive verify --repair ARCHIVE, and add its source again."
    )
