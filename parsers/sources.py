"""Selection of the files to read, and merging of several into one trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceviz.core.errors import TracevizError, UnknownFormatError, UsageError
from traceviz.core.sanitize import visible
from traceviz.parsers.base import Match, Reader, ReadRequest, certain_reader, prefixed
from traceviz.parsers.exports import tables_of
from traceviz.parsers.ranks.names import rank_in_name
from traceviz.parsers.registry import READERS, identify
from traceviz.parsers.run.layout import is_run_folder, whole_run
from traceviz.report import Fact
from traceviz.untrusted.regular_files import check_regular

if TYPE_CHECKING:
    import pyarrow as pa

_LISTED = 3
"""Maximum number of traces that the title of a report names; the others are counted."""


def trace_files(paths: Sequence[str | Path]) -> tuple[Path, ...]:
    """Return the traces that ``paths`` name: files, folders that a reader knows, and folders with one trace per rank.

    The manifest of a run folder, and its ``raw/``, also name the run.

    Raises:
        UsageError: there is no trace, one is named twice, or a folder holds several runs.
        UnknownFormatError: one is neither a file nor a folder.
    """
    for path in paths:
        check_regular(Path(path), inside=not is_run_folder(Path(path)))
    files = tuple(file for named in paths for file in _inside(whole_run(Path(named))))
    if not files:
        raise UsageError("There is no trace to read.", fix="Name at least one.")
    seen: set[str] = set()
    for file in files:
        resolved = os.path.realpath(file)
        if resolved in seen:
            raise UsageError(
                f"{file} is named twice.", "A report on several traces takes each of them once.", "Leave one out."
            )
        seen.add(resolved)
    return files


def _inside(path: Path) -> tuple[Path, ...]:
    """Return ``path`` itself, or the traces in a folder that no reader takes as a whole, if each states a rank."""
    runs = run_folders(path)
    if len(runs) > 1:
        listed = f"{', '.join(run.name for run in runs[:_LISTED])}{', ...' * (len(runs) > _LISTED)}"
        raise UsageError(
            f"{path} holds {len(runs)} runs: {listed}.",
            "A report is on one run, or on the ranks of one job.",
            "Name one of them, or compare them: traceviz compare.",
        )
    return _ranks_in(path) or (path,)


def _ranks_in(path: Path) -> tuple[Path, ...]:
    """Return the traces in a folder that no reader takes as a whole, by rank; none unless all state distinct ranks."""
    if not path.is_dir() or _is_read_whole(path):
        return ()
    visible_files = (file for file in path.iterdir() if not file.name.startswith(".") and file.is_file())
    files = [file for file in visible_files if certain_reader(READERS.all(), file) is not None]
    by_rank = {rank_in_name(file.name): file for file in files}
    if None in by_rank or not len(files) == len(by_rank) > 1:
        return ()  # possibly unrelated traces
    return tuple(file for _, file in sorted(by_rank.items(), key=lambda item: item[0] or 0))


def _is_read_whole(folder: Path) -> bool:
    return any(reader.match(b"", folder) != Match.NO for reader in READERS.all())


def is_trace_folder(path: Path) -> bool:
    """Return whether a folder is one trace, or holds those of the ranks of one job; a folder of runs is neither."""
    return not run_folders(path) and path.is_dir() and (_is_read_whole(path) or bool(_ranks_in(path)))


def run_folders(folder: Path) -> tuple[Path, ...]:
    """Return the run folders in ``folder``, by name; none if ``folder`` is a run itself, or no folder."""
    with openable(folder):
        if not folder.is_dir() or is_run_folder(folder):
            return ()
        return tuple(entry for entry in sorted(folder.iterdir()) if is_run_folder(entry))


@contextmanager
def openable(path: Path) -> Iterator[None]:
    """Turn errors of opening ``path`` into ours.

    Raises:
        UnknownFormatError: it cannot be opened, for example for lack of permission.
    """
    try:
        yield
    except OSError as error:
        raise UnknownFormatError(f"{error.filename or path} cannot be opened.", f"{error.strerror}.") from None


def readers_of(files: Sequence[Path], reader: str | None) -> list[Reader]:
    """Return the readers of ``files``; ``reader`` names the format instead of recognising it.

    Raises:
        TracevizError: as :func:`traceviz.parsers.registry.identify`, for each file before any of them is read.
    """
    return [identify(file, reader) for file in files]


def read_all(files: Sequence[Path], readers: Sequence[Reader], options: ReadRequest) -> Iterator[tuple[str, pa.Table]]:
    """Return the tables of one trace, or of several merged into one, ``notes`` last.

    Raises:
        TracevizError: as :meth:`traceviz.parsers.base.Reader.tables` and :func:`traceviz.parsers.ranks.merge.combine`;
            with several traces, the error names the trace.
    """
    if len(readers) == 1:
        return tables_of(files[0], readers[0], options)
    from traceviz.parsers.ranks.merge import merged  # noqa: PLC0415 (a single trace needs no merging)

    parts = []
    for number, (file, reader) in enumerate(zip(files, readers, strict=True), 1):
        progress = prefixed(options.progress, f"{file.name} ({number} of {len(readers)})")
        try:
            own = replace(options, progress=progress, window=None, spill=None)  # each has its own clock
            parts.append(dict(tables_of(file, reader, own)))
        except TracevizError as error:
            raise with_trace_path(error, file) from error
    return merged(parts, trace_names(files))


def with_trace_path(error: TracevizError, source: Path, *, always: bool = False) -> TracevizError:
    """Return the error with the path of its trace, unless it names the file already; ``always``: even then."""
    if visible(source.name) in error.what and not always:
        return error
    return type(error)(f"{source}: {error.what}", error.why, error.fix)


def describe_traces(files: Sequence[Path]) -> str:
    """Return the traces as the subject of a sentence."""
    return str(files[0]) if len(files) == 1 else f"The trace of {len(files)} ranks"


def trace_names(files: Sequence[Path]) -> list[str]:
    """Return distinct names of the traces: names of the files if these differ, else paths."""
    names = [file.name for file in files]
    return names if len(set(names)) == len(names) else [str(file) for file in files]


def source_facts(files: Sequence[Path]) -> tuple[Fact, ...]:
    """Return the facts of a report that name its traces."""
    names = trace_names(files)
    if len(names) == 1:
        return (Fact("source", "trace", names[0]),)
    more = len(names) - _LISTED
    title = ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
    return (Fact("source", "trace", f"{len(names)} traces: {title}"), Fact("traces", "traces", len(names), "count"))
