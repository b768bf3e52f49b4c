"""Layout of a run folder, and its recognition; this module imports little.

::

    RUN/manifest.json    result of the run, and its machine
        raw/NAME/...     recording of each collector, in its own format
        tables/          the merged tables as one traceviz folder, once written
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from traceviz.untrusted.json_documents import read_object

MANIFEST = "manifest.json"
KIND = "traceviz.run"
TABLES = "tables"
"""Folder of the merged tables in a run folder."""
RAW = "raw"
"""Folder of the collectors' recordings, each in a folder named after its collector."""
STACKS_FORMAT = "stacks"
"""Format of the files of Python stacks, one for each process of the program."""
SAMPLES_FORMAT = "resources"
SAMPLES_KIND = "traceviz.resources"
SAMPLES_DESCRIPTION = "resources.json"
"""The description of a folder of samples, of the kind :data:`SAMPLES_KIND`."""
MOST_FILES = 10_000
"""Maximum number of files of a run that are searched: a run has few."""


def is_run_folder(folder: Path) -> bool:
    """Return whether ``folder`` holds the manifest of a run."""
    return manifest_document(folder).get("kind") == KIND


def whole_run(path: Path) -> Path:
    """Return the run folder of ``path`` if that is its manifest or its ``raw`` folder; else ``path``."""
    return path.parent if path.name in {MANIFEST, RAW} and is_run_folder(path.parent) else path


def manifest_document(folder: Path) -> dict[str, Any]:
    """Return the manifest in a folder as JSON; empty if there is none that can be read."""
    return read_object(folder / MANIFEST)
