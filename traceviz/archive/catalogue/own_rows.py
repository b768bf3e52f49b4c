"""The rows of the catalogue that the folder of a trace holds, from which the catalogue can be made again."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.storage.layout import ROWS, files_of, manifest_of, trace_parts
from traceviz.archive.storage.store import Store
from traceviz.errors import DamagedTraceError


def stored_rows(store: Store, format_name: str, trace_id: str) -> pa.Table | None:
    """The rows of a trace whose folder is whole; ``None`` where it is not, or another program is just removing it.

    Whole means: there is a manifest, every file has the size that it tells, and the rows have its SHA-256, can be read,
    and are of this trace. The content of the other files is not read.

    Raises:
        OutputError: the archive cannot be read.
    """
    parts = trace_parts(format_name, trace_id)
    files = files_of(manifest_of(store, format_name, trace_id))
    if files is None or ROWS not in files:
        return None
    sizes = store.sizes(*parts)
    if any(sizes.get(name) != facts.get("bytes") for name, facts in files.items()):
        return None
    try:
        data = store.read(*parts, ROWS)
        rows = catalogue.parsed(data)
    except (FileNotFoundError, DamagedTraceError):
        return None
    same = hashlib.sha256(data).hexdigest() == files[ROWS].get("sha256")
    return rows if same and set(rows["trace_id"].to_pylist()) == {trace_id} else None
