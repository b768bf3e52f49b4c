"""What nvprof and the Visual Profiler keep in files, as it is recognised from outside."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from traceviz.parsers.nvprof.constants import PREFIX, STRINGS
from traceviz.parsers.shared.sqlite.file import MAGIC, table_names

_SESSION = re.compile(
    rb"<session\b(?:(?:(?!<session\b)[^>])*?\.nvvp|(?:(?!<session\b).)*?<(?:timelineoptions|executable)\b)", re.DOTALL
)
"""Each beginning is looked through to the next one only, so that many of them take no longer than one."""


def is_database(head: bytes, path: Path) -> bool:
    """Whether a database, of which ``head`` is the beginning, has records of CUPTI, and nvprof's strings or version."""
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
    """Whether ``head`` begins a session of the Visual Profiler."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith((b"<?xml", b"<session")) and _SESSION.search(head) is not None
