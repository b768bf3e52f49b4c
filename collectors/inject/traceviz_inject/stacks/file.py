"""The file with the stacks of one process: JSON, one array per line, appended to while the process runs.

It is opened for each piece: programs close files that they did not open, and reuse their descriptors.
"""

from __future__ import annotations

import os

from ..status import complain, explain, note_problem

FILE, STATUS = "stacks.jsonl", "status.json"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class StackFile:
    """The output of one process; nothing is created before there is something to write.

    Args:
        parent: The collector's folder; each process has its own folder below it.
    """

    __slots__ = ("_folder", "_parent", "bytes", "is_broken")

    def __init__(self, parent: str) -> None:
        self._parent = parent
        self._folder = ""
        self.bytes = 0
        """Bytes written."""
        self.is_broken = False
        """True if it could not be written: the disk is full, or the folder was removed."""

    @property
    def exists(self) -> bool:
        """True if anything was written."""
        return self.bytes > 0

    def append(self, text: str) -> None:
        """Write whole lines. Never raises: a full disk is reported once, and ends the file."""
        if self.is_broken:
            return
        try:
            if not self._folder:
                self._folder = _own_folder(self._parent)
            piece = text.encode()
            handle = os.open(os.path.join(self._folder, FILE), _FLAGS, 0o644)  # noqa: PTH118
            try:
                while piece:
                    written = os.write(handle, piece)
                    self.bytes += written
                    piece = piece[written:]
            finally:
                os.close(handle)
        except OSError as error:
            self.fail(f"they cannot be written: {explain(error)}")

    def fail(self, reason: str) -> None:
        """Write nothing more, and note why."""
        self.is_broken = True
        self.note_loss(reason)

    def note_loss(self, reason: str) -> None:
        """Note that this process is not sampled any more, in the run folder and on stderr. Never raises."""
        message = f"Stacks of process {os.getpid()} are not sampled any more: {reason}."
        try:
            if not self._folder:
                self._folder = _own_folder(self._parent)
        except OSError:
            complain(message)
        else:
            note_problem(self._folder, "stacks-stopped", message)

    def tell(self, status: str) -> None:
        """Replace the status file for other processes; ``status`` is JSON text."""
        if not self._folder:
            return
        path = os.path.join(self._folder, STATUS)  # noqa: PTH118
        try:
            handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                os.write(handle, status.encode())
            finally:
                os.close(handle)
            os.replace(f"{path}.new", path)  # noqa: PTH105
        except OSError as error:
            complain(f"{path} cannot be written: {explain(error)}")


def _own_folder(parent: str) -> str:
    """Make and return a folder for this process: a program that it replaced may have had the same process id."""
    os.makedirs(parent, exist_ok=True)  # noqa: PTH103
    number = 1
    while True:
        folder = os.path.join(parent, f"{os.getpid()}-{number}" if number > 1 else str(os.getpid()))  # noqa: PTH118
        try:
            os.mkdir(folder)  # noqa: PTH102
        except FileExistsError:
            number += 1
        else:
            return folder
