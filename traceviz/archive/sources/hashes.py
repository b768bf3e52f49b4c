"""Sources of an archive, and their SHA-256.

It covers the content only, so that a trace is recognised at any location, packed or not.

In a run folder (``traceviz collect``) only the recording counts, not the files that traceviz derived from it::

    RUN/manifest.json    counts, except the keys in DERIVED, in any order and layout
        raw/...          counts
        tables/...       does not, unless there is nothing in raw/ (--no-keep-raw)
        anything else    does not

So a run that is added when its program has ended, and again with its tables, is one trace.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from traceviz.archive.storage.addresses import printable
from traceviz.core.errors import UnknownFormatError
from traceviz.parsers.run.layout import MANIFEST, RAW, TABLES, is_run_folder
from traceviz.parsers.shared.log_folders import SUFFIXES as CAPTURES
from traceviz.untrusted.json_documents import read_document

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


DERIVED = frozenset({"tables", "overhead", "problems", "verdict"})
"""Keys that a run's manifest gets together with its tables: their rows, the overhead, problems, and the verdict."""


def source_sha256(path: Path) -> tuple[str, int]:
    """Return the hexadecimal SHA-256 of a file or folder, and its size in bytes.

    The hash of a folder is the SHA-256 of lines ``path NUL sha256``, one for each of its :func:`files_in`, sorted by
    path. Paths are bytes, relative to the folder, with ``/`` between their parts. A run folder contributes only its
    recorded files. The line of its manifest has the SHA-256 of the recorded facts: JSON in ASCII with sorted keys, and
    ``,`` and ``:`` without blanks.

    Raises:
        UnknownFormatError: the path does not exist, cannot be read, or is neither file nor folder.
    """
    try:
        if not path.is_dir():
            return _file_sha256(path)
        whole, size = hashlib.sha256(), 0
        names, facts = files_in(path), None
        if MANIFEST in names and (facts := _recorded_facts(path)) is not None:
            raw = [name for name in names if name.startswith(f"{RAW}/")]
            names = [MANIFEST, *(raw or (name for name in names if name.startswith(f"{TABLES}/")))]
        for name in names:
            digest, count = _file_sha256(path / name)
            if name == MANIFEST and facts is not None:
                digest = hashlib.sha256(facts).hexdigest()
            whole.update(os.fsencode(name) + b"\0" + digest.encode() + b"\n")
            size += count
        return whole.hexdigest(), size
    except (OSError, ValueError) as error:
        raise UnknownFormatError(f"{printable(str(path))} cannot be read.", str(error), "Add it again.") from error


def files_in(folder: Path) -> list[str]:
    """Return the sorted relative paths of the files of the trace in ``folder`` (see :func:`relevant`).

    Links and other files that are not regular are excluded.

    Raises:
        OSError: a folder cannot be read.
    """
    names: list[str] = []
    for parent, folders, files in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not Path(parent, name).is_symlink()]
        entries = (Path(parent, name) for name in files)
        names += [entry.relative_to(folder).as_posix() for entry in entries if is_regular(entry)]
    return relevant(names)


def _recorded_facts(folder: Path) -> bytes | None:
    """Return the part of a run's manifest that counts; ``None`` if the folder is not a run."""
    if not is_run_folder(folder):
        return None
    stated = read_document(folder / MANIFEST)
    kept = {key: value for key, value in stated.items() if key not in DERIVED}
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()


def relevant(names: Sequence[str]) -> list[str]:
    """Return the files that belong to a folder that is one trace, sorted by their bytes.

    In a run of TensorFlow's profiler these are its captures, as TensorBoard writes its results to the same folder.
    """
    captures = [name for name in names if "/" not in name and name.endswith(CAPTURES)]
    own = captures if captures and "manifest.json" not in names else names
    return sorted(own, key=os.fsencode)


def is_regular(path: Path) -> bool:
    """Return whether the path is a file, and not a link to one."""
    return path.is_file() and not path.is_symlink()


def _file_sha256(path: Path) -> tuple[str, int]:
    if not path.is_file():  # opening a named pipe would block
        raise FileNotFoundError(f"{path.name} is no file.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), file.tell()


def _raise(error: OSError) -> None:
    raise error
