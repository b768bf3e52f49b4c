"""Write files and folders so that they appear complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from traceviz.core.errors import OutputError, OutputExistsError, UsageError
from traceviz.core.process.interrupts import uninterrupted
from traceviz.core.process.temporary import drop, note

_MOST_NAME = 60
"""Characters of a name that its temporary name repeats."""


@contextmanager
def new_folder(folder: Path, *, force: bool, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield a temporary folder that becomes ``folder`` when the block ends, and is removed if it fails.

    Args:
        folder: The folder to create.
        force: Replace an existing folder if it is ``replaceable``, so that no documents of the user are deleted.
        replaceable: Returns whether traceviz made an existing folder.

    Raises:
        OutputExistsError: ``folder`` exists and may not be replaced.
        OutputError: the place cannot be written.
    """
    check_folder_free(folder, force=force, replaceable=replaceable)
    temporary, replaced = (note(folder.parent, _hidden(folder)) for _ in range(2))
    try:
        with explained(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir(mode=0o700)
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            with uninterrupted():
                # An existing folder stays if the new one cannot take its name.
                if folder.exists():
                    folder.rename(replaced)
                try:
                    temporary.rename(folder)
                except OSError:
                    if replaced.exists():
                        replaced.rename(folder)
                    raise
    finally:
        drop(temporary)
        drop(replaced)


def check_folder_free(folder: Path, *, force: bool, replaceable: Callable[[Path], bool]) -> None:
    """Raise :class:`OutputExistsError` at once rather than after minutes of work."""
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
    """Yield a temporary path that becomes the file ``path`` when the block ends, and is removed if it fails.

    Raises:
        OutputExistsError: ``path`` exists, and ``force`` is false.
        OutputError: the place cannot be written.
    """
    check_file_free(path, force=force)
    temporary = note(path.parent, _hidden(path))
    try:
        with explained(path):
            temporary.touch(mode=0o600, exist_ok=False)
            yield temporary
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
    finally:
        drop(temporary)


_MOST_ENTRIES = 10_000
"""Entries of a folder that are searched for a similar name."""


def explain_missing(path: Path) -> str:
    """Return the folder in which a missing file was looked for, and the name there that is most like it."""
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100 (resolve() would follow links)
    try:
        names = [entry.name for entry in islice(os.scandir(folder), _MOST_ENTRIES)]
    except FileNotFoundError:
        parent = next(parent for parent in folder.parents if parent.exists())
        return f"There is no folder {folder}; {parent} exists."
    except OSError as error:
        return f"{folder} cannot be read: {error.strerror}."
    near = get_close_matches(path.name, names, 1)
    return f"Looked in {folder}.{f' Did you mean {path.parent / near[0]}?' if near else ''}"


def check_file_free(path: Path, *, force: bool) -> None:
    """Raise at once rather than after minutes of work.

    Raises:
        OutputExistsError: ``path`` exists, and ``force`` is false or it is not a regular file.
        OutputError: its folder does not exist.
    """
    if path.exists() and not path.is_file():
        raise OutputExistsError(f"{path} is not a regular file.", "It is not replaced, even with --force.")
    if path.exists() and not force:
        raise OutputExistsError.at(path)
    if not path.parent.is_dir():
        raise OutputError(f"{path} cannot be written.", f"There is no folder {path.parent}.", "Create it first.")


def check_not_source(source: Path, output: Path) -> None:
    """Raise :class:`UsageError` if the output would replace its own source."""
    try:
        is_same = source.samefile(output)
    except (OSError, ValueError):  # one of them does not exist; the code that opens the source reports why
        return
    if is_same:
        raise UsageError(f"{output} is the trace itself.", "The source is never changed.", "Give another -o.")


def _hidden(path: Path) -> str:
    """Return the start of a temporary name. The full name must not be too long if that of ``path`` is not."""
    return f".{path.name[:_MOST_NAME]}."


def _umask() -> int:
    """Return the permissions that new files of this process lack. They can only be read by setting them."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into :class:`OutputError`."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror}." if error.strerror else str(error)
        raise OutputError(f"{path} cannot be written.", reason, "Choose another place with -o.") from error
