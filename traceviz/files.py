"""Writing files and folders so that they appear complete or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from traceviz.errors import OutputError, OutputExistsError


@contextmanager
def new_folder(folder: Path, *, force: bool, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A temporary folder that becomes ``folder`` when the block ends, and vanishes if it fails.

    Args:
        folder: The folder to create.
        force: Replace an existing folder, provided that ``replaceable`` agrees: nobody's documents are deleted.
        replaceable: Whether an existing folder is one that this program made.

    Raises:
        OutputExistsError: ``folder`` exists and may not be replaced.
        OutputError: the place cannot be written.
    """
    check_folder_free(folder, force=force, replaceable=replaceable)
    with _explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with _explained(folder):
            yield temporary
            temporary.chmod(0o755)
            if folder.exists():
                shutil.rmtree(folder)
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_folder_free(folder: Path, *, force: bool, replaceable: Callable[[Path], bool]) -> None:
    """Raise :class:`OutputExistsError` now rather than after minutes of work."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not force:
        raise OutputExistsError.at(folder)
    if not folder.is_dir() or not replaceable(folder):
        raise OutputExistsError(
            f"{folder} exists and is not a traceviz folder.", "It is not replaced, even with --force."
        )


@contextmanager
def new_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A temporary path that becomes the file ``path`` when the block ends, and vanishes if it fails.

    Raises:
        OutputExistsError: ``path`` exists, and ``force`` is false.
        OutputError: the place cannot be written.
    """
    check_file_free(path, force=force)
    with _explained(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    temporary = Path(name)
    try:
        with _explained(path):
            yield temporary
            temporary.chmod(0o644)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_file_free(path: Path, *, force: bool) -> None:
    """Raise :class:`OutputExistsError` where ``path`` exists and may not be replaced."""
    if path.exists() and not force:
        raise OutputExistsError.at(path)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path} cannot be written.", str(error), "Choose another place with -o.") from error
