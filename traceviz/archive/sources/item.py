"""Items that can be added to an archive, and refusals of what is not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["file", "folder", "member"]


@dataclass(frozen=True, slots=True)
class Item:
    """A trace of a source, not yet read.

    Args:
        url: Path or URL of the file or folder; of a member, that of the archive file that it is in.
        name: Its name for people: its path from the source, ``runs.zip/job1/rank0.json`` for a member.
        kind: Whether it is a file, a folder that is one trace (a run folder, a traceviz folder, a run of a log
            folder of TensorBoard), or a member of a zip or tar file.
        member: Name inside the archive file, as it is written there.
        size: Bytes, if that is known without reading it.
        folder: Whether a member stands for a folder: all members below it are one trace.
        job: Path of the folder whose files are the ranks of a job, by their names; empty if they are not.
        report: Name of the report of nsys that is left out, as this is its export; empty if there is none.
    """

    url: str
    name: str
    kind: Kind = "file"
    member: str = ""
    size: int | None = None
    folder: bool = False
    job: str = ""
    report: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that is not added, and why: it is unsafe, or no trace.

    Args:
        name: Its name for people.
        code: Stable name of the reason: ``no-trace`` (something else, ignored), ``exported`` (a report of nsys whose
            export is added), ``unsafe-name``, ``link``, ``device``, ``bomb``, ``too-large``, ``too-many``,
            ``encrypted``, ``nested``, ``duplicate``, ``cut``, ``unreadable``, ``unreachable``, ``archive`` (an archive
            of traceviz), ``removed`` (by another program, while it was added).
        why: The reason, for people.
    """

    name: str
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what archive files may hold.

    Args:
        ratio: Most bytes a member may unpack to for each of its packed bytes, beyond its first ``free`` bytes.
        free: Bytes of a member that are unpacked whatever its ratio.
        bytes: Most bytes of one trace, unpacked.
        members: Most members of one archive file.
    """

    ratio: int = 200
    free: int = 64 << 20
    bytes: int = 64 << 30
    members: int = 1_000_000
