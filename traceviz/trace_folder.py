"""A traceviz folder as seen from outside: the manifest by which it is known."""

from __future__ import annotations

import json
from pathlib import Path

MANIFEST = "manifest.json"
MANIFEST_KIND = "traceviz.trace"


def is_trace_folder(folder: Path) -> bool:
    """Whether ``folder`` holds a traceviz manifest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == MANIFEST_KIND
