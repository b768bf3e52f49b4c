"""Absolute paths in texts that are kept: they name users and machines, so they are taken out."""

from __future__ import annotations

import re

_ABSOLUTE_PATH = r"(?<![\w/.\]])(?:/|~/|[A-Za-z]:\\)[^\s'\",;()<>]+"


def without_paths(text: str) -> str:
    """``text`` on one line, with every absolute path replaced by ``[path]``."""
    return re.sub(_ABSOLUTE_PATH, "[path]", " ".join(text.split()))
