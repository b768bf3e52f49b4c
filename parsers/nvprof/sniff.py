"""Recognition of the files of nvprof and the Visual Profiler from outside."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from traceviz.parsers.nvprof.constants import PREFIX, STRINGS
from traceviz.parsers.shared.sqlite.file import MAGIC, table_names

_SESSION = re.compile(
    rb"<session\b(?:(?:(?!<session\b)[^>])*?\.nvvp|(?:(?!<session\b).)*?<(?:timelineoptions|executable)\b)", re.DOTALL
)
"""Pattern of a session. Each start is searched only up to the next one, so that many starts take linear time."""


def is_database(head: bytes, path: Path) -> bool:
    """Return whether a database that starts with ``head`` has records of CUPTI, and nvprof's strings or version."""
    if not head.startswith(MAGIC):
        return False
    try:
        names = table_names(path)
    except (sqlite3.Error, OSError, ValueError):
        # Damaged, but the texts on its first pages still show the format.
        return STRINGS.encode() in head and b"StringIds" not in head
    recorded = any(name.startswith(PREFIX) for name in names)
    return recorded and not names.isdisjoint({STRINGS, "Version"}) and "StringIds" not in names


def is_session(head: bytes) -> bool:
    """Return whether ``head`` is the start of a session of the Visual Profiler."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith((b"<?xml", b"<session")) and _SESSION.search(head) is not None
