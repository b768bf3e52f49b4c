"""Traces in a folder of PyTorch's profiler, grouped into runs.

``torch.profiler.tensorboard_trace_handler`` writes one file per worker and span of recording:
``host_pid.1700000000000.pt.trace.json.gz``. The files of the ranks of one job make one run.

::

    rank 0   span  span  span        The newest span of each rank is one run; the spans before are another:
    rank 1   span  span  span        runs are counted from the newest, since ranks may have started apart.
               2     1     0
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from traceviz.core.errors import UnknownFormatError
from traceviz.parsers.base import HEAD_BYTES, Match
from traceviz.parsers.kineto.sniff import sniff_file
from traceviz.parsers.shared.json.stream import head_text
from traceviz.parsers.shared.log_folders import MOST_FOLDERS, choose_among, find_runs

SUFFIXES = (".json", ".json.gz")
_OTHER_TRACES = (".nsys-rep", ".qdrep", ".qdstrm", ".sqlite", ".parquet", ".xplane.pb", ".nvvp", ".nvprof")
"""Suffixes of traces of other formats: a folder that holds some is not PyTorch's alone."""

_SPAN = re.compile(r"^(?P<worker>.+?)\.(?P<time>\d{9,20})(?:\.pt)?\.(?:trace\.)?json")
_RANK_IN_NAME = re.compile(r"(?<![a-z])(?:rank|worker)[-_ ]?(?P<rank>\d{1,6})(?!\d)", re.IGNORECASE)
_RANK = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"rank"\s*:\s*(\d{1,6})\b')
_WORLD = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}]*?"world_size"\s*:\s*(\d{1,6})\b')


@dataclass(frozen=True, slots=True)
class Recording:
    """One file.

    Args:
        path: Its path.
        rank: Rank of its program in a job of several; ``None`` if nothing shows several ranks.
        world: Number of ranks of that job; ``None`` if the trace does not state it.
    """

    path: Path
    rank: int | None
    world: int | None = None

    @property
    def time(self) -> str:
        """Time of writing in its name; empty if there is none."""
        match = _SPAN.match(self.path.name)
        return match["time"] if match else ""

    @property
    def worker(self) -> str:
        """Name of the process that wrote it; empty if its name has no time."""
        match = _SPAN.match(self.path.name)
        return match["worker"] if match else ""

    @property
    def age(self) -> tuple[float, str]:
        """Sort key of recordings: the time in the name, in any unit, else that of the file."""
        written = float(f"0.{self.time}") if self.time else 0.0
        return (written or self.path.stat().st_mtime * 1e-10), self.path.name


@dataclass(frozen=True, slots=True)
class Run:
    """Recordings that belong together.

    Args:
        name: Its name for ``--run``.
        recordings: One per rank, in order of the ranks.
    """

    name: str
    recordings: tuple[Recording, ...]

    @property
    def workers(self) -> frozenset[str]:
        """Names of the processes that wrote its recordings."""
        return frozenset(recording.worker for recording in self.recordings) - {""}


def holds_pytorch_traces(folder: Path) -> bool:
    """Return whether ``folder`` holds traces of PyTorch's profiler, directly or in folders, and of no other one."""
    try:
        if (folder / "manifest.json").is_file() or find_runs(folder):
            return False
        return any(True for _ in _folders(folder))
    except (OSError, ValueError):
        return False


def _folders(folder: Path) -> Iterator[tuple[Path, list[Recording]]]:
    """Yield ``folder`` if it holds traces itself, else the folders in it that do, each with its traces."""
    for count, (place, names, files) in enumerate(os.walk(folder)):
        if count >= MOST_FOLDERS:
            return
        names[:] = sorted(name for name in names if not name.startswith("."))
        if any(name.endswith(_OTHER_TRACES) for name in files):
            continue
        traces = [_recording(Path(place, name)) for name in sorted(files) if name.endswith(SUFFIXES)]
        recordings = [recording for recording in traces if recording is not None]
        if recordings:
            yield Path(place), recordings
            if count == 0:
                return


def _recording(path: Path) -> Recording | None:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if sniff_file(head, path) != Match.YES:
        return None
    text = head_text(head)
    stated, world, named = _RANK.search(text), _WORLD.search(text), _RANK_IN_NAME.search(path.name)
    if stated and (named or (world and int(world[1]) > 1)):
        return Recording(path, int(stated[1]), int(world[1]) if world else None)
    return Recording(path, int(named["rank"]) if named else None)


def _runs(folder: Path, place: Path, recordings: Sequence[Recording]) -> Iterator[tuple[tuple[float, str], Run]]:
    """Yield the runs in one folder, each with its age. Without ranks every file is a run: another start of the program.

    Jobs of different size are different jobs. A trace that states no size belongs to the only job, if there is one.
    """
    stated = {recording.world for recording in recordings} - {None}
    only = stated.pop() if len(stated) == 1 else None
    jobs: dict[int | None, dict[int, list[Recording]]] = {}
    for recording in sorted(recordings, key=attrgetter("age")):
        if recording.rank is not None:
            spans = jobs.setdefault(recording.world or only, {})
            spans.setdefault(recording.rank, []).append(recording)
        else:
            yield recording.age, Run(_name(folder, place, recording), (recording,))
    for spans in jobs.values():
        for back in range(1, 1 + max(map(len, spans.values()))):
            members = tuple(spans[rank][-back] for rank in sorted(spans) if len(spans[rank]) >= back)
            newest = max(members, key=attrgetter("age"))
            yield newest.age, Run(_name(folder, place, members[0]), members)


def _name(folder: Path, place: Path, recording: Recording) -> str:
    """Return the name of a run: the time in the name of its first file, or that name."""
    return "/".join((*place.relative_to(folder).parts, recording.time or recording.path.name))


def choose(folder: Path, name: str | None) -> tuple[Run, tuple[Run, ...]]:
    """Return the run ``name`` in ``folder``, or the newest, and all the others.

    Raises:
        UsageError: no run, or more than one, has this name; the error lists the runs.
        UnknownFormatError: there is no run at all.
    """
    aged = [aged for place, recordings in _folders(folder) for aged in _runs(folder, place, recordings)]
    if not aged:
        raise UnknownFormatError(f"{folder} holds no trace of PyTorch's profiler.")
    runs = tuple(run for _, run in sorted(aged, key=lambda pair: pair[0]))  # oldest first

    def file_names(run: Run) -> set[str]:
        return {name for recording in run.recordings for name in (recording.path.name, recording.time)} - {""}

    return choose_among(runs, name, file_names)
