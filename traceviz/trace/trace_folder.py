"""Recognition of a traceviz folder by its manifest."""

from __future__ import annotations

from pathlib import Path

from traceviz.untrusted.json_documents import read_object

MANIFEST = "manifest.json"
MANIFEST_KIND = "traceviz.trace"


def is_trace_folder(folder: Path) -> bool:
    """Return whether ``folder`` holds a traceviz manifest."""
    return read_object(folder / MANIFEST).get("kind") == MANIFEST_KIND
