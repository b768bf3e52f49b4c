"""Items that can be added to an archive, and refusals of other files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["file", "folder", "member"]


@dataclass(frozen=True, slots=True)
class Item:
    """An unread trace of a source.

    Args:
        url: Path or URL of the file or folder; for a member, that of its archive file.
        name: Display name: the path from the source, such as ``runs.zip/job1/rank0.json`` for a member.
        kind: A file, a folder that is one trace (a run folder, a traceviz folder, a run in a log folder of
            TensorBoard), or a member of a zip or tar file.
        member: Name as written in the archive file.
        size: Size in bytes, if it is known without reading the item.
        folder: True if the item is a folder. For a member: all members below it are one trace.
        job: Path of the folder whose files are the ranks of a job by their names; empty if there is none.
        report: Name of the nsys report that is skipped because this item is its export; empty if there is none.
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
    """A file that is not added, with the reason: it is unsafe, or not a trace.

    Args:
        name: Its display name.
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
    """Bounds on the content of archive files.

    Args:
        ratio: Maximum unpacked bytes per packed byte of a member, beyond its first ``free`` bytes.
        free: Bytes of a member that are unpacked at any ratio.
        bytes: Maximum unpacked bytes of one trace.
        members: Maximum number of members in one archive file.
    """

    ratio: int = 200
    free: int = 64 << 20
    bytes: int = 64 << 30
    members: int = 1_000_000
