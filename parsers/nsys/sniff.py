"""Recognition of Nsight Systems' files from outside."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from traceviz.parsers.shared.sqlite.file import MAGIC as SQLITE_MAGIC
from traceviz.parsers.shared.sqlite.file import table_names

EXPORTED_TABLES = frozenset(
    {"TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV", "ANALYSIS_DETAILS", "ANALYSIS_FILE"}
    | {"META_DATA_EXPORT", "EXPORT_META_DATA", "NVTX_EVENTS", "OSRT_API", "CUPTI_ACTIVITY_KIND_RUNTIME"}
    | {"ProcessStreams"}  # empty exports of 2020 have only this
)
"""Tables of exports: each export has at least one of these next to its strings."""
EXPORTED_FILES = frozenset(
    {"StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "OSRT_API"}
)
"""One of these files is enough to recognise the folder."""
REPORT_MAGIC = b"NVIDIA Tegra Profiler Report "
STREAM_MAGIC = b"NVIDIA Nsight System Stream "


def is_parquet_export(path: Path) -> bool:
    """Return whether a folder is a ``parquetdir`` export: it holds one of the tables that every export has."""
    try:
        return path.is_dir() and any((path / f"{name}.parquet").is_file() for name in EXPORTED_FILES)
    except (OSError, ValueError):
        return False


def is_sqlite_export(head: bytes, path: Path) -> bool:
    """Return whether a database that starts with ``head`` has the strings and a table that every export has."""
    if not head.startswith(SQLITE_MAGIC):
        return False
    try:
        names = table_names(path)
    except (sqlite3.Error, OSError, ValueError):
        # Damaged, but its catalogue starts on the first page, as text that names the tables.
        return b"StringIds" in head and any(marker.encode() in head for marker in EXPORTED_TABLES)
    return "StringIds" in names and not EXPORTED_TABLES.isdisjoint(names)
