"""Selection of the files of a capture."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from traceviz.core.errors import DamagedTraceError, UsageError
from traceviz.core.process.memory import Allowance
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.shared.log_folders import Run, choose_run, note_choice
from traceviz.parsers.xplane.content import read_file
from traceviz.parsers.xplane.decode.raw import Space
from traceviz.parsers.xplane.hosts import ENVIRONMENT
from traceviz.parsers.xplane.tables import Provenance, Source, read_spaces

Prefetched = Callable[[], Space]
"""Function that waits for the content of a file."""


def read_captures(
    path: Path, options: ReadRequest, prefetched: Prefetched | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a capture, or of one run of a log folder, one at a time; ``notes`` last.

    Args:
        path: The file or folder.
        options: The request.
        prefetched: Waits for the content of the file ``path``, if a background thread reads it.
    """
    notes: list[tuple[str, str, str]] = []
    if path.is_dir():
        run, others = choose_run(path, options.run)
        if others:
            notes.append(("run-chosen", "info", note_choice(run, others, options.run)))
    elif options.run is not None:
        raise UsageError(f"{path.name} is one capture, not a folder of runs.", fix="Leave --run out.")
    else:
        run = Run(path.name, (path,))
    sources = _read_sources(run, options.allowance, prefetched, notes)
    scanner = sources[0].space.scanner
    route = "xplane, compiled scanner" if scanner == "compiled" else "xplane, protobuf fallback (slower)"
    del prefetched
    tables = read_spaces(sources, options, Provenance("xplane", route, tuple(notes)))
    del sources
    yield from tables


def _read_sources(
    run: Run, allowance: Allowance, prefetched: Prefetched | None, notes: list[tuple[str, str, str]]
) -> list[Source]:
    """Return the content of the files of a run; add a note on those without content.

    Raises:
        DamagedTraceError: none of them has any content.
        UsageError: they were recorded at different times.
    """
    sources, failures = [], []
    for file in run.files:
        try:
            space = read_file(file, allowance) if prefetched is None else prefetched()
            sources.append(Source(re.sub(r"\.xplane\.pb(\.gz)?$", "", file.name), space))
        except DamagedTraceError as error:
            failures.append(error)
    if not sources:
        raise failures[0]
    windows = [window for source in sources if (window := _find_window(source.space))]
    # The hosts of one run record at the same time
    if windows and max(start for start, _ in windows) > min(stop for _, stop in windows):
        raise UsageError(
            f"The captures in folder {run.name} are not the hosts of one run: they were recorded at different times.",
            fix=f"Name one of them: {', '.join(file.name for file in run.files)}.",
        )
    if failures:
        hosts = "one host" if len(failures) == 1 else f"{len(failures)} hosts"
        notes.append(("hosts-missing", "warning", f"The files of {hosts} cannot be read. {failures[0].why}"))
    return sources


def _find_window(space: Space) -> tuple[int, int] | None:
    """Return start and end of the profiling in ns since 1970, if the capture states them."""
    for plane in space.planes:
        bounds = [plane.properties.get(key) for key in ("profile_start_time", "profile_stop_time")]
        if plane.name == ENVIRONMENT and isinstance(bounds[0], int) and isinstance(bounds[1], int):
            return bounds[0], bounds[1]
    return None
