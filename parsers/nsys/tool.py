"""The nsys version in a report, and the errors if the installed nsys cannot read it."""

from __future__ import annotations

import re
from pathlib import Path

from traceviz.core.errors import DamagedTraceError, MissingToolError
from traceviz.core.nsys_program import OVERRIDE, Nsys, Outcome
from traceviz.untrusted.windows import windows

_BUILD = re.compile(rb"20\d\d\.\d{1,4}\.\d{1,4}\.\d{1,9}-[0-9a-f]{7}")
_LONGEST_BUILD = 64
_HEADER_VERSION = re.compile(rb"(?:Profiler Report|System Stream) (20\d\d[@.]\d{1,4}[@.]\d{1,4}[@.]\d{1,9})")


def recorded_version(path: Path) -> str | None:
    """Return the version of the nsys that recorded a report or stream, from its bytes.

    Reports since 2024 and streams state it in their first line; older reports contain it with the hash of its build.
    """
    with path.open("rb") as file:
        header = _HEADER_VERSION.search(file.read(256))
    if header:
        return header[1].decode().replace("@", ".")
    for content, _ in windows(path, _LONGEST_BUILD):
        if build := _BUILD.search(content):
            return build[0].split(b"-")[0].decode()
    return None


def elsewhere(report: Path) -> str:
    """Return advice to use a machine that has a fitting nsys."""
    output = report.with_suffix(".sqlite").name
    return (
        f"Where a newer or equal nsys is installed: nsys export --type sqlite --output {output} {report.name}; then "
        f"give {output} to traceviz. An nsys that is not on PATH can be named in {OVERRIDE}."
    )


def missing_nsys(report: Path) -> MissingToolError:
    """Return the error for a missing nsys."""
    version = recorded_version(report)
    return MissingToolError(
        f"{report.name} is an Nsight Systems report" + (f" of version {version}." if version else "."),
        "Reading it takes nsys, which is not installed here.",
        elsewhere(report),
    )


def too_old(report: Path, nsys: Nsys) -> MissingToolError:
    """Return the error for an installed nsys that is too old for the report."""
    version = recorded_version(report)
    return MissingToolError(
        f"{report.name} was recorded by Nsight Systems {version or 'of a newer version'}.",
        f"The installed nsys {nsys.version} is too old to read it.",
        elsewhere(report),
    )


def failed(report: Path, outcome: Outcome) -> DamagedTraceError:
    """Return the error for a failed nsys, or one with incomplete output."""
    if outcome.status == 0 and not outcome.output.strip():
        reason = "nsys ended without an error and wrote no complete export: is it really nsys?"
    else:
        reason = f"nsys says: {outcome.last_words}"
    return DamagedTraceError(
        f"{report.name} cannot be exported.",
        reason,
        "If other reports can be read, this file is damaged: copy it again.",
    )
