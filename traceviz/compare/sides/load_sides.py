"""Sides of a comparison from files: traces and runs are analysed, saved reports are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from traceviz.compare.sides.by_tags import BASE_NAMES, sides_by, with_base
from traceviz.compare.sides.labels import labels, numbered
from traceviz.compare.sides.sides import Side, fact
from traceviz.core.errors import DamagedTraceError, TracevizError, UsageError
from traceviz.parsers.run.layout import is_run_folder
from traceviz.parsers.sources import about, is_trace_folder, openable
from traceviz.render import json as saved
from traceviz.report import Report
from traceviz.untrusted.regular_files import check_regular

_HEAD = 1 << 20
_SCHEMA = re.compile(rb'"schema"\s*:\s*"traceviz\.')
"""What JSON of traceviz has near its begin, even where another program has sorted its keys."""

T = TypeVar("T")

Read = Callable[[Path], Report]
"""Analyses a trace."""
Recognise = Callable[[Path], None]
"""Refuses what is no trace, without reading it."""
Sides = tuple[list[Side], list[str]]
"""The sides, and what was left out."""


def is_saved_report(path: Path) -> bool:
    """Whether a file is a report saved as JSON, or another JSON document of traceviz."""
    with openable(path):
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith(b"{") and _SCHEMA.search(head) is not None


def load_report(path: Path) -> Report:
    """The report that was saved at ``path``.

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
    """A side of each path, then one of each group; the base first, and nothing left out.

    Args:
        paths: Traces, run folders, saved reports.
        groups: The same by the name of the side whose runs they are.
        base: Name of the side to compare with. Where empty, a group of
            :data:`traceviz.compare.sides.by_tags.BASE_NAMES`, else the first.
        read: Analyses a trace.
        recognise: Refuses what is no trace: all of them, before the first is read.

    Raises:
        UsageError: no side is called ``base``; a path is a folder of several runs.
        TracevizError: a side cannot be read; the message names it.
    """
    for path in (*paths, *(run for runs in groups.values() for run in runs)):
        check_regular(path, inside=not is_run_folder(path))  # of all, before the first is read
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
    final = numbered([side.label for side in sides])
    labelled = [Side(label, side.reports) for label, side in zip(final, sides, strict=True)]
    implied = next((label for label in groups if label.lower() in BASE_NAMES), "")
    return with_base(labelled, base or implied), []


def tagged_sides(
    paths: Iterable[Path], by: Sequence[str], base: str, read: Read, recognise: Recognise, *, by_size: bool = False
) -> Sides:
    """A side of every combination of tags, and the runs that lack one of them.

    Args:
        paths: Runs, saved reports of runs, and folders of such.
        by: Tags.
        base: Values of the side to compare with, separated by commas. Where empty, a value called ``baseline``,
            ``before``, ..., else those of the first path, or of a folder the smallest.
        read: Analyses a trace.
        recognise: Refuses what is no trace: all of them, before the first is read.
        by_size: Whether the base is the smallest in any case, as on an axis.

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
    """The runs and saved reports in a folder, by name; ``path`` itself where it is no folder of runs."""
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
    """The run or saved report that a path is, or the only one in it.

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
    """What ``of_trace`` makes of a trace; a saved report is loaded. Errors name the file."""
    try:
        with openable(path):
            return load_report(path) if is_saved_report(path) else of_trace(path)
    except TracevizError as error:
        raise (error if str(path) in error.what else about(error, path, always=True)) from error
