"""Removal of absolute paths from stored texts, because they name users and machines."""

from __future__ import annotations

import re

_ABSOLUTE_PATH = r"(?<![\w/.\]])(?:/|~/|[A-Za-z]:\\)[^\s'\",;()<>]+"


def without_paths(text: str) -> str:
    """Return ``text`` on one line, with every absolute path replaced by ``[path]``."""
    return re.sub(_ABSOLUTE_PATH, "[path]", " ".join(text.split()))
