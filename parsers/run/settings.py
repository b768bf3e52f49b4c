"""Update of the end of a run in tables that were written earlier: the starter of a run may add the reason later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from traceviz.parsers.run.manifest import RunManifest, read_manifest
from traceviz.trace.rows_to_table import rows_to_table

_ENDING = "run.ending."
"""Prefix of the keys of these settings."""


def with_ending(tables: Iterable[tuple[str, pa.Table]], folder: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield the ``tables`` of a run folder, with the ending that its manifest states now.

    Raises:
        DamagedTraceError: there is no manifest, or a newer traceviz wrote it.
    """
    manifest = read_manifest(folder)
    for name, table in tables:
        if name == "settings":
            yield name, _settings(table, manifest)
        elif name == "notes" and manifest.ending.reason:
            rows = table.to_pylist()
            for row in rows:
                if row["code"] == manifest.ending_code:
                    row["message"] = manifest.ending_in_sentences
            notes = rows_to_table("notes", rows)
            yield name, notes
        else:
            yield name, table


def _settings(table: pa.Table, manifest: RunManifest) -> pa.Table:
    stated = {key: text for key, text in manifest.settings().items() if key.startswith(_ENDING)}
    rows = table.to_pylist()
    if not stated or stated.items() <= {(row["key"], row["value"]) for row in rows if row["process_id"] is None}:
        return table
    kept = [row for row in rows if row["process_id"] is not None or row["key"] not in stated]
    return rows_to_table("settings", [*kept, *({"key": key, "value": text} for key, text in stated.items())])
