"""Result of ``traceviz scrub`` as one frozen value, and the kinds of removed data."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from traceviz.untrusted.json_documents import read_object

MANIFEST = "scrubbed.json"
"""File that lists the removed data: inside a folder under this name, next to a file with the file's name as prefix."""
KIND = "traceviz.scrubbed"

CLEANED = "texts cleaned of paths and secrets"
PROPERTIES = "private properties"
HOSTS = "host names"
HARDWARE_IDS = "ids of hardware"
MESSAGES = "embedded messages (compiled programs and the like)"
UNKNOWN_TEXTS = "texts of columns not known to be harmless"
UNUSED_STRINGS = "strings that no kept event refers to"

Outcome: TypeAlias = tuple[Counter[str], int, int]
"""Kinds and counts of removed data, the number of secrets, and the number of searched bytes (of text)."""


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """The data removed from a trace, and the extent of the check.

    Args:
        output: The scrubbed trace.
        removed: ``(kind, count)`` in alphabetical order; only kinds that occurred.
        secrets: Values from the source (of environment variables, user and host names, home folders, ids) that were
            searched in the whole output.
        verified_bytes: Searched bytes of the output, without a secret: of the file for a database, of the decoded texts
            for JSON and for a traceviz folder, whose files are compressed.
        left_out: ``(name, why)`` of files of the source that cannot be rewritten, and were skipped.
    """

    output: Path
    removed: tuple[tuple[str, int], ...]
    secrets: int
    verified_bytes: int
    left_out: tuple[tuple[str, str], ...] = ()

    def document(self) -> dict[str, object]:
        """Return the manifest: kinds and counts, never a value."""
        return {
            "kind": KIND,
            "version": 1,
            "removed": dict(self.removed),
            "left_out": [{"file": name, "why": why} for name, why in self.left_out],
            "secrets": self.secrets,
            "verified_bytes": self.verified_bytes,
        }

    def save(self, path: Path) -> None:
        """Write the manifest to ``path``."""
        path.write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")


def listed(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return counts in the form of :attr:`ScrubReport.removed`."""
    return tuple(sorted((what, count) for what, count in counts.items() if count))


def is_scrubbed_folder(folder: Path) -> bool:
    """Return whether scrub wrote ``folder``."""
    return read_object(folder / MANIFEST).get("kind") == KIND
