"""Check that paths are regular files, or folders of them. Opening a named pipe would wait for a writer."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from traceviz.core.errors import UnknownFormatError

_OPENED = (".csv", ".gz", ".json", ".jsonl", ".parquet", ".pb", ".sqlite", ".txt")
"""Endings of the files that are opened in folders."""
_MOST_FOLDERS = 10_000
"""Most folders that readers search."""
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_HOW = "Pipe its content (... | traceviz report -), or write that to a file first."


def check_regular(path: Path, *, inside: bool = True) -> None:
    """Refuse a path that is neither a regular file nor a folder of such; a missing path is left to the caller.

    Args:
        path: A file or folder.
        inside: Check files in a folder, too; false if its reader skips files that are not regular.

    Raises:
        UnknownFormatError: it is a named pipe, a socket or a device, a link that leads to itself, or an impossible
            path.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UnknownFormatError(f"{path} cannot be opened.", f"{error.strerror}.", "Check the path.") from None
    except ValueError as error:  # a NUL
        raise UnknownFormatError(f"{str(path)!r} is no path.", f"{error}.", "Check the path.") from None
    kind = _KINDS.get(stat.S_IFMT(mode))
    if kind:
        raise UnknownFormatError(f"{path} is {kind}.", "Traces are read from files, in several passes.", _HOW)
    if inside and stat.S_ISDIR(mode):
        for file, what in _special_files(path):
            raise UnknownFormatError(f"{file} is {what}.", f"No other file in {path} is read with it there.", _HOW)


def _special_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files in a folder, at any depth, that would block readers, and the kind of each."""
    pending, looked_into = [str(folder)], 0
    while pending and looked_into < _MOST_FOLDERS:
        looked_into += 1
        try:
            with os.scandir(pending.pop()) as entries:
                listed = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError:  # readers report that
            continue
        pending += [entry.path for entry in listed if entry.is_dir(follow_symlinks=False)]
        for entry in listed:
            if not entry.name.endswith(_OPENED):
                continue
            try:
                mode = entry.stat().st_mode
            except OSError:  # a link to nothing, or to itself
                continue
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                yield entry.path, _KINDS.get(stat.S_IFMT(mode), "no regular file")
