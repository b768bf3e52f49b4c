"""What ``traceviz scrub`` did, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """What was removed from a trace, and how that was checked.

    Args:
        output: The scrubbed trace.
        removed: ``(what, count)`` in alphabetical order; only what occurred.
        secrets: Values found in the source (of environment variables, user and host names, home folders, ids) that
            were looked for in all of the output.
        verified_bytes: Bytes of the output in which none of them was found: of the file for a database, of the
            decoded texts for a traceviz folder, whose files are compressed.
    """

    output: Path
    removed: tuple[tuple[str, int], ...]
    secrets: int
    verified_bytes: int


def listed(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Counts as :attr:`ScrubReport.removed` holds them."""
    return tuple(sorted((what, count) for what, count in counts.items() if count))
