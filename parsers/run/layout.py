"""What lies where in a run folder, and whether a folder is a run folder: no more than recognising takes.

::

    RUN/manifest.json    how the run went, on which machine
        raw/NAME/...     what each collector recorded, in its own format
        tables/          all of it as one traceviz folder, once it has been merged
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
"""Folder of what the collectors recorded, each in a folder of its own name."""
STACKS_FORMAT = "stacks"
"""Format of the files of Python stacks, one of each process of the program."""
SAMPLES_FORMAT = "resources"
SAMPLES_KIND = "traceviz.resources"
SAMPLES_DESCRIPTION = "resources.json"
"""The description of a folder of samples, which is of the kind :data:`SAMPLES_KIND`."""
MOST_FILES = 10_000
"""The search for files of a run ends after so many: a run has few."""


def is_run_folder(folder: Path) -> bool:
    """Whether ``folder`` holds the manifest of a run."""
    return manifest_document(folder).get("kind") == KIND


def whole_run(path: Path) -> Path:
    """The run folder that ``path`` is a part of, where it is its manifest or all its recordings; else ``path``."""
    return path.parent if path.name in {MANIFEST, RAW} and is_run_folder(path.parent) else path


def manifest_document(folder: Path) -> dict[str, Any]:
    """The manifest in a folder as JSON; empty where there is none that can be read."""
    return read_object(folder / MANIFEST)
