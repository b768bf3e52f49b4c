"""Captures in a TensorBoard log folder: ``plugins/profile/<run>/<host>.xplane.pb``, at any depth."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from traceviz.core.errors import UnknownFormatError, UsageError

SUFFIXES = (".xplane.pb", ".xplane.pb.gz")
PROFILES = Path("plugins") / "profile"
MOST_FOLDERS = 10_000
"""Maximum number of folders to search: a log folder has few."""
_TIMESTAMP = re.compile(r"^\d{4}(_\d\d){5}")


@dataclass(frozen=True, slots=True)
class Run:
    """One capture.

    Args:
        name: Name of its folder, after the path to the log folder that holds it.
        files: The files of its hosts, sorted.
    """

    name: str
    files: tuple[Path, ...]

    @property
    def timestamp(self) -> str | None:
        """Start time of the run, as the profiler names its folder."""
        last = self.name.rsplit("/", 1)[-1]
        return last if _TIMESTAMP.match(last) else None

    @property
    def written(self) -> float:
        """Modification time of its newest file."""
        return max(file.stat().st_mtime for file in self.files)


def captures_in(folder: Path, suffixes: tuple[str, ...] = SUFFIXES) -> tuple[Path, ...]:
    """Return the files directly in ``folder`` that are captures by their names."""
    try:
        return tuple(sorted(entry for entry in folder.iterdir() if entry.name.endswith(suffixes) and entry.is_file()))
    except OSError:
        return ()


def find_runs(folder: Path, suffixes: tuple[str, ...] = SUFFIXES) -> tuple[Run, ...]:
    """Return runs in ``folder``, oldest first: its own captures if any, else those of all log folders in it."""
    own = captures_in(folder, suffixes)
    if own:
        return (Run(folder.resolve().name, own),)
    runs = [
        Run("/".join((*prefix, run.name)), files)
        for prefix, profiles in _profile_folders(folder)
        for run in sorted(entry for entry in profiles.iterdir() if entry.is_dir())
        if (files := captures_in(run, suffixes))
    ]
    # Sort runs by the time in their names or, if a name lacks one, by the time of their files.
    if all(run.timestamp for run in runs):
        return tuple(sorted(runs, key=lambda run: (run.timestamp or "", run.name)))
    return tuple(sorted(runs, key=lambda run: (run.written, run.name)))


def _profile_folders(folder: Path) -> Iterator[tuple[tuple[str, ...], Path]]:
    """Yield folders ``plugins/profile`` in, at or around ``folder``, each with the path to it."""
    whole = folder.resolve()
    if whole.parts[-2:] == PROFILES.parts:
        yield (), folder
        return
    if whole.name == PROFILES.parts[0] and (folder / PROFILES.name).is_dir():
        yield (), folder / PROFILES.name
        return
    for count, (place, names, _) in enumerate(os.walk(folder)):
        if count >= MOST_FOLDERS:
            return
        names[:] = sorted(name for name in names if not name.startswith("."))
        profiles = Path(place) / PROFILES
        if PROFILES.parts[0] in names and profiles.is_dir():
            yield Path(place).relative_to(folder).parts, profiles


def choose_run(folder: Path, name: str | None, suffixes: tuple[str, ...] = SUFFIXES) -> tuple[Run, tuple[Run, ...]]:
    """Return the run ``name`` in ``folder``, or the newest, and all the others.

    Raises:
        UsageError: no run, or more than one, has this name; the error lists the runs.
        UnknownFormatError: there is no run at all.
    """
    runs = find_runs(folder, suffixes)
    if not runs:
        raise UnknownFormatError(f"{folder} holds no profile data.", *no_capture(folder))
    return choose_among(runs, name)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


AnyRun = TypeVar("AnyRun", bound=_Named)


def choose_among(
    runs: tuple[AnyRun, ...], name: str | None, more_names: Callable[[AnyRun], Iterable[str]] = lambda _: ()
) -> tuple[AnyRun, tuple[AnyRun, ...]]:
    """Return the run ``name`` of ``runs``, oldest first, or the newest, and all the others.

    Args:
        runs: At least one.
        name: The name of a run, or the last part of it; ``None`` for the newest.
        more_names: Other accepted names of a run.

    Raises:
        UsageError: no run, or more than one, has this name; the error lists the runs.
    """
    if name is None:
        return runs[-1], runs[:-1]
    matching = [run for run in runs if name in {run.name, run.name.rsplit("/", 1)[-1], *more_names(run)}]
    if len(matching) > 1:
        raise UsageError(
            f"More than one run is called {name!r}.", fix=f"Say which: {', '.join(run.name for run in matching)}."
        )
    if not matching:
        raise UsageError.unknown("run", name, (run.name for run in runs))
    return matching[0], tuple(run for run in runs if run != matching[0])


def note_choice(run: AnyRun, others: Sequence[AnyRun], name: str | None) -> str:
    """Return the note on the choice of ``run`` among ``others``; ``name`` is the run that the caller named."""
    why = "the newest" if name is None else "as asked for"
    shown = ", ".join(other.name for other in reversed(others[-5:])) + (", ..." if len(others) > 5 else "")
    return f"Run {run.name} was read, {why}. Others: {shown} (--run NAME)."


HOW_TO_PROFILE = (
    "Record a profile: TensorBoard(log_dir, profile_batch=(10, 20)) as a callback of Keras, "
    "tf.profiler.experimental.start(log_dir) and stop(), or jax.profiler.start_trace(log_dir) and stop_trace()."
)


def looks_like_logs(folder: Path) -> bool:
    """Return whether TensorBoard would read ``folder``: it holds event files or a folder of profiles."""
    for count, (place, names, files) in enumerate(os.walk(folder)):
        if count >= MOST_FOLDERS:
            break
        if any(".tfevents." in name for name in files) or (Path(place) / PROFILES).is_dir():
            return True
        names[:] = [name for name in names if not name.startswith(".")]
    return False


_UNFINISHED = "plugins/profile holds no capture (*.xplane.pb), so none was finished."
_PLOTS_ONLY = "there is no plugins/profile in it, only what TensorBoard plots."


def no_capture(folder: Path) -> tuple[str, str]:
    """Return why a log folder cannot be read, and what to do."""
    why = _UNFINISHED if any(True for _ in _profile_folders(folder)) else _PLOTS_ONLY
    return f"It is a log folder without profile data: {why}", HOW_TO_PROFILE
