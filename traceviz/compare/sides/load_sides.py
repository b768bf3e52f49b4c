"""Sides of a comparison from files: analyse traces and runs, read saved reports, and time all steps in the same way."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TypeVar

from traceviz.analyses.options import StepTime
from traceviz.compare.sides.by_tags import BASE_NAMES, sides_by, with_base
from traceviz.compare.sides.sides import Side, fact
from traceviz.core.errors import DamagedTraceError, TracevizError, UsageError
from traceviz.parsers.run.layout import is_run_folder
from traceviz.parsers.sources import is_trace_folder, openable, with_trace_path
from traceviz.render import json as saved
from traceviz.report import EVERY_STEP, Grid, Report
from traceviz.untrusted.regular_files import check_regular

_OF_HOST = "host_dur_ns"
"""Column of device steps with the host's time for each."""


def step_time(report: Report) -> StepTime | None:
    """Return whether a report's steps are timed by host or device; ``None`` if it has none."""
    blocks = (block for section in report.sections if section.slug == "steps" for block in section.blocks)
    grid = next((block for block in blocks if isinstance(block, Grid) and block.title == EVERY_STEP), None)
    if grid is None or not grid.rows:
        return None
    return "device" if _OF_HOST in {column.name for column in grid.columns} else "host"


def are_mixed(reports: Iterable[Report]) -> bool:
    """Return whether some reports have steps of the host, and others steps of devices."""
    return {"host", "device"} <= {step_time(report) for report in reports}


def align_step_time(sided: Callable[[Read], Sides], read: Callable[[Path, StepTime], Report]) -> Sides:
    """Return the sides that ``sided`` makes of the reports of ``read``, with steps that are timed in the same way.

    Saved reports stay as they are. If no choice gives the same timing, the sides with host steps are returned.
    """
    known: dict[Path, Report] = {}

    def analysed(wanted: StepTime) -> Read:
        def analyse(path: Path) -> Report:
            if path not in known or (wanted != "auto" and step_time(known[path]) not in {wanted, None}):
                known[path] = read(path, wanted)
            return known[path]

        return analyse

    wants: tuple[StepTime, ...] = ("auto", "device", "host")
    for wanted in wants:
        sides, left_out = sided(analysed(wanted))
        if not are_mixed(report for side in sides for report in side.reports):
            break
    return sides, left_out


_HEAD = 1 << 20
_SCHEMA = re.compile(rb'"schema"\s*:\s*"traceviz\.')
"""Pattern near the start of any traceviz JSON, even if another program has sorted its keys."""

T = TypeVar("T")

Read = Callable[[Path], Report]
"""Analyses a trace."""
Recognise = Callable[[Path], None]
"""Refuses files that are not traces, without reading them."""
Sides = tuple[list[Side], list[str]]
"""The sides, and the names of the runs left out."""


def is_saved_report(path: Path) -> bool:
    """Return whether a file is a report saved as JSON, or another JSON document of traceviz."""
    with openable(path):
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"{") and _SCHEMA.search(head) is not None


def load_report(path: Path) -> Report:
    """Load the report that was saved at ``path``.

    Raises:
        DamagedTraceError: it is damaged, of another version, or a comparison.
    """
    try:
        return saved.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DamagedTraceError(f"{path} is not a JSON report.", f"It is not UTF-8: {error.reason}.") from None


def named_sides(
    paths: Sequence[Path], groups: Mapping[str, Sequence[Path]], base: str, read: Read, recognise: Recognise
) -> Sides:
    """Return a side for each path, then one for each group, with the base first. No run is left out.

    Args:
        paths: Traces, run folders, saved reports.
        groups: Such paths for each side of several runs, by its name.
        base: Name of the side to compare with. If empty, a group of :data:`traceviz.compare.sides.by_tags.BASE_NAMES`,
            else the first.
        read: Analyses a trace.
        recognise: Refuses files that are not traces; checks all of them before the first is read.

    Raises:
        UsageError: no side is called ``base``; a path is a folder of several runs.
        TracevizError: a side cannot be read; the message names it.
    """
    for path in (*paths, *(run for runs in groups.values() for run in runs)):
        check_regular(path, inside=not is_run_folder(path))  # checks all paths before the first is read
    runs = [one_run(path) for path in paths]
    members = {label: [one_run(path) for path in of_group] for label, of_group in groups.items()}
    for run in (*runs, *(run for of_group in members.values() for run in of_group)):
        _of_file(run, recognise)
    reports = [_of_file(run, read) for run in runs]
    names = [_run_name(report) for report in reports]
    alone = [Side("", (report,)) for report in reports]
    distinct = labels([str(path) for path in paths], names, [side.tags for side in alone])
    sides = [
        *(Side(label, side.reports) for label, side in zip(distinct, alone, strict=True)),
        *(Side(label, tuple(_of_file(run, read) for run in of_group)) for label, of_group in members.items()),
    ]
    final = number_equal_names([side.label for side in sides])
    labelled = [Side(label, side.reports) for label, side in zip(final, sides, strict=True)]
    implied = next((label for label in groups if label.lower() in BASE_NAMES), "")
    return with_base(labelled, base or implied), []


def tagged_sides(
    paths: Iterable[Path], by: Sequence[str], base: str, read: Read, recognise: Recognise, *, by_size: bool = False
) -> Sides:
    """Return a side for every combination of tags, and the runs that lack one of the tags.

    Args:
        paths: Runs, saved reports of runs, and folders of such.
        by: Tags.
        base: Values of the side to compare with, separated by commas. If empty, a value called ``baseline``,
            ``before``, ..., else the values of the first path, or for a folder the smallest.
        read: Analyses a trace.
        recognise: Refuses files that are not traces; checks all of them before the first is read.
        by_size: True if the default base is always the smallest, as on an axis.

    Raises:
        UsageError: no run has the tags, or the base.
        TracevizError: a run cannot be read; the message names it.
    """
    given = [(path, runs_in(path)) for path in paths]
    runs = [run for _, of_path in given for run in of_path]
    for run in runs:
        _of_file(run, recognise)
    in_order = not by_size and len(given) > 1 and given[0][1] == (given[0][0],)
    return sides_by(((run.name, _of_file(run, read)) for run in runs), by, base, in_order=in_order)


def runs_in(path: Path) -> tuple[Path, ...]:
    """Return the runs and saved reports in a folder, by name; for other paths, ``path`` itself."""
    check_regular(path, inside=False)
    with openable(path):
        if not path.is_dir() or is_run_folder(path):
            return (path,)
        runs = tuple(entry for entry in sorted(path.iterdir()) if is_run_folder(entry) or is_saved_report(entry))
    return runs or (path,)


def _run_name(report: Report) -> str | None:
    name = fact(report, "run", "name")
    return None if name is None else str(name)


def one_run(path: Path) -> Path:
    """Return the run or saved report at a path, or the only one in it.

    Raises:
        UsageError: it is a folder of several runs.
    """
    runs = (path,) if is_trace_folder(path) else runs_in(path)
    if len(runs) > 1:
        raise UsageError(
            f"{path} holds {len(runs)} runs: {', '.join(run.name for run in runs[:3])}{', ...' * (len(runs) > 3)}.",
            "A side is one run, or a group of runs.",
            f'Name the runs, group them (--group "NAME={path / "*"}"), or group them by tags (--by TAG).',
        )
    return runs[0]


def _of_file(path: Path, of_trace: Callable[[Path], T]) -> T | Report:
    """Load a saved report, or apply ``of_trace`` to a trace. Errors name the file."""
    try:
        with openable(path):
            return load_report(path) if is_saved_report(path) else of_trace(path)
    except TracevizError as error:
        raise (error if str(path) in error.what else with_trace_path(error, path, always=True)) from error


# Labels of the sides of a comparison ----------------------------------------------------------------------------------


_SUFFIXES = re.compile(
    r"(\.pt)?(\.trace)?\.json(\.gz)?$|\.xplane\.pb(\.gz)?$|\.(nsys-rep|qdrep|qdstrm|sqlite|nvvp|nvprof|sql|csv)$"
)
"""File name suffixes that identify the format."""


def labels(
    paths: Sequence[str], names: Sequence[str | None] = (), tags: Sequence[Mapping[str, str]] = ()
) -> tuple[str, ...]:
    """Return a name for each side.

    Args:
        paths: Paths that the user gave.
        names: Names of the runs, if they have any. They come first because users chose them.
        tags: Tags of the runs; those that differ are the second choice.

    Returns:
        Distinct names, in the order of ``paths``; a repeated path gets a number.
    """
    given = [name for name in names if name]
    if len(given) == len(paths) == len(set(given)):
        return tuple(given)
    keys = dict.fromkeys(key for of_side in tags for key in of_side)
    differing = [key for key in keys if len({of_side.get(key) for of_side in tags}) > 1]
    tagged = [" ".join(f"{key}={of_side[key]}" for key in differing if key in of_side) for of_side in tags]
    if len(tagged) == len(paths) == len(set(tagged)) and all(tagged):
        return tuple(tagged)
    return number_equal_names(_shortest(paths))


def _shortest(paths: Sequence[str]) -> list[str]:
    """Return the file names without their format if they are distinct; else the differing parts of the paths."""
    names = [PurePath(path).name or path for path in paths]
    for candidate in ([_SUFFIXES.sub("", name) or name for name in names], names):
        if _tell_apart(candidate, paths):
            return candidate
    parts = [PurePath(path).parts for path in paths]
    least = min(map(len, parts))
    same = next((index for index in range(least) if len({path[-1 - index] for path in parts}) > 1), 0)
    different = [path[: len(path) - same] for path in parts]
    tails = (["/".join(path[-count:]) for path in different] for count in range(1, max(map(len, different)) + 1))
    return next((tail for tail in tails if _tell_apart(tail, paths)), list(paths))


def shorten_names(names: Sequence[str]) -> list[str]:
    """Return long names without the words that all start and end with, except for the ones next to the difference.

    Names of at most :data:`_LONGEST_NAME` characters stay as they are; so do all if they would become equal.

    ``job_17_of_the_long_study_before_repair_gpu0`` and ``..._after_repair_gpu0`` become ``study_before_repair``
    and ``study_after_repair``.
    """
    words = [[match.span() for match in _WORD.finditer(name)] for name in names]
    least = min(map(len, words))
    if max(map(len, names)) <= _LONGEST_NAME or least == 0:
        return list(names)

    def are_equal(place: int) -> bool:
        return len({name[slice(*spans[place])] for name, spans in zip(names, words, strict=True)}) == 1

    first = next((place for place in range(least) if not are_equal(place)), least)
    if first == least:  # one is the start of the other, as in "run" and "run (2)"
        return list(names)
    last = next((place for place in range(least - first) if not are_equal(-1 - place)), least - first)
    shorter = [
        name[spans[max(first - 1, 0)][0] : spans[min(len(spans) - last, len(spans) - 1)][1]]
        for name, spans in zip(names, words, strict=True)
    ]
    return shorter if len(set(shorter)) == len(set(names)) else list(names)


_WORD = re.compile(r"[^\W_]+")
_LONGEST_NAME = 40
"""Characters up to which a name is left as it is."""


def _tell_apart(names: Sequence[str], paths: Sequence[str]) -> bool:
    """Return whether different paths have different names."""
    return len(set(names)) == len(set(paths))


def number_equal_names(names: Sequence[str]) -> tuple[str, ...]:
    """Number equal names, from the second on: ``run``, ``run (2)``."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(distinct)
