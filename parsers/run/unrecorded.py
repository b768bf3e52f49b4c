"""A run without a readable recording: only its manifest is known.

A program that crashes before its first step, or is killed with its profilers, is still a result of a study. So its run
is a trace without events.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from traceviz.parsers.run.manifest import RunManifest
from traceviz.parsers.shared.notes import Notes
from traceviz.trace import schema
from traceviz.trace.rows_to_table import rows_to_table

NOTHING = "nothing-recorded"
"""Note of a run without recordings."""
_LONGEST_NS = 2**62


def unrecorded_run(
    manifest: RunManifest, notes: Notes, *, keep_private: bool = False
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a trace without events, ``notes`` last.

    Args:
        manifest: The manifest of the run.
        notes: Notes on it so far.
        keep_private: Store the command line.

    Yields:
        Name and table: the required ones, and ``settings``.
    """
    lasted = manifest.duration_ns or 0
    run = {
        "format": "run",
        "producer": "traceviz collect",
        "command": manifest.command if keep_private else None,
        "t0_unix_ns": manifest.started_unix_ns,
        "span_ns": lasted if 0 <= lasted < _LONGEST_NS else 0,
        "reader": "run",
    }
    yield "run", rows_to_table("run", [run], notes)
    for name in schema.REQUIRED:
        if name not in {"run", "notes"}:
            yield name, rows_to_table(name, [])
    settings = [{"process_id": None, "key": key, "value": value} for key, value in manifest.settings().items()]
    yield "settings", rows_to_table("settings", settings)
    notes.add(
        NOTHING, "warning", "The run left no recording that can be read: how it ended is all that is known of it."
    )
    manifest.notes(notes)
    yield "notes", notes.table()
