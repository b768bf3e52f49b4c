"""Results of a sweep as a report: a row for each setting, with any outcome of its runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from traceviz.compare.sides.by_tags import BASE_NAMES
from traceviz.compare.sides.measures import busy_runs
from traceviz.compare.sides.sides import Side
from traceviz.core.errors import DamagedTraceError
from traceviz.core.units import counted
from traceviz.parsers.run.layout import is_run_folder
from traceviz.parsers.run.manifest import RunManifest, read_manifest
from traceviz.report import LISTING, Column, Fact, Grid, Prose, Report, Section, Verdict
from traceviz.report.verdicts import VerdictCode
from traceviz.sweep.orders import Order, State, Sweep, state_of

_MOST_REASONS = 50
"""Settings whose failures are reported one by one."""


def summary(sweep: Sweep) -> Report:
    """Return a table of the settings: number of finished runs, their times, and how the others ended."""
    runs: dict[str, list[RunManifest]] = {}
    for order in sweep.orders:
        manifest = _manifest(order.folder)
        found = runs.setdefault(_key(order, sweep.tags), [])
        if manifest is not None:
            found.append(manifest)
    first = {_key(order, sweep.tags): order for order in reversed(sweep.orders)}
    rows = tuple(_row(setting.tags, sweep.tags, runs, first) for setting in sweep.settings)
    columns = (
        *(Column(f"tag.{tag}", tag, importance=0) for tag in sweep.tags),
        Column("runs", "Runs", "count", importance=0),
        Column("finished", "Finished", "count", importance=0),
        Column("mean_ns", "Ran, mean", "ns", importance=0),
        Column("least_ns", "shortest", "ns", importance=2),
        Column("most_ns", "longest", "ns", importance=2),
        Column("ended", "Others", importance=0),
    )
    grid = Grid(columns, rows, complete=True)
    made = sum(map(len, runs.values()))
    failed = made - sum(manifest.status == "finished" for found in runs.values() for manifest in found)
    return Report(
        run=(Fact("source", "folder", str(sweep.folder)), Fact("runs", "runs", made, "count")),
        verdict=Verdict(VerdictCode.SWEEP, _sentence(sweep, made, failed)),
        sections=(Section("settings", "Settings", (grid, *_reasons(runs, first))),),
        schema=LISTING,
    )


def _sentence(sweep: Sweep, made: int, failed: int) -> str:
    wanted = len(sweep.orders)
    runs = (
        f"{made:,} of {counted(wanted, 'run')}" if made < wanted else f"{'all ' * (wanted > 1)}{counted(wanted, 'run')}"
    )
    ended = f", of which {failed:,} did not finish" if failed else ""
    return f"{counted(len(sweep.settings), 'setting')}, {runs} made{ended}."


def _key(order: Order, tags: Sequence[str]) -> str:
    return repr([order.task.tags.get(tag) for tag in tags])


def _row(
    tags: Mapping[str, str],
    columns: Sequence[str],
    runs: Mapping[str, Sequence[RunManifest]],
    first: Mapping[str, Order],
) -> tuple[str | int | float | None, ...]:
    key = next(key for key, order in first.items() if all(order.task.tags.get(tag) == tags[tag] for tag in tags))
    found = runs[key]
    times = [run.duration_ns for run in found if run.status == "finished" and run.duration_ns is not None]
    others = [run.ending.in_words or run.status for run in found if run.status != "finished"]
    distinct = dict.fromkeys(others)
    return (
        *(tags.get(tag) for tag in columns),
        len(found),
        sum(run.status == "finished" for run in found),
        round(statistics.fmean(times)) if times else None,
        min(times, default=None),
        max(times, default=None),
        "; ".join(f"{others.count(words)} × {words}" if others.count(words) > 1 else words for words in distinct)
        or None,
    )


def _reasons(runs: Mapping[str, Sequence[RunManifest]], first: Mapping[str, Order]) -> tuple[Prose, ...]:
    """Return the full reasons why runs did not finish. Table cells are shortened, and an exit code is no reason."""
    said = []
    for key, order in first.items():
        ended: dict[str, int] = {}
        for run in runs[key]:
            if run.status != "finished":
                last = "".join(run.ending.last_lines[-1:])
                words = f"{run.ending.in_words or run.status}{f' ({last})' if last else ''}"
                ended[words] = ended.get(words, 0) + 1
        if ended:
            counts = "; ".join(f"{count} × {words}" if count > 1 else words for words, count in ended.items())
            said.append(f"{order.label}: {counts}.")
    more = [f"... and {counted(len(said) - _MOST_REASONS, 'setting')} more."] if len(said) > _MOST_REASONS else []
    return tuple(Prose(text) for text in (*said[:_MOST_REASONS], *more))


def busy_in_words(sides: Sequence[Side]) -> str:
    """Return a sentence on runs during which other programs used the machine; empty if there are none.

    Repeats reduce chance. They do not correct times that were all taken on a busy machine.
    """
    busy = {side.label: busy_runs(side) for side in sides}
    count, runs = sum(busy.values()), sum(len(side.reports) for side in sides)
    if not count:
        return ""
    named = ", ".join(f"{label} ({number})" if number > 1 else label for label, number in busy.items() if number)
    return (
        f"Other programs used the machine during {count:,} of {counted(runs, 'run')}: {named}. "
        "Times of these runs are longer than they would be alone."
    )


def first_finished(sweep: Sweep, by: Sequence[str]) -> str:
    """Return the values of the file's first setting with a finished run, as the base of the comparison.

    It is empty if the comparison finds a base by its name, or no run finished.
    """
    named = any(value.lower() in BASE_NAMES for setting in sweep.settings for value in setting.tags.values())
    finished = {_key(order, by) for order in sweep.orders if state_of(order) is State.FINISHED}
    for setting in sweep.settings if not named else ():
        values = [setting.tags.get(tag, "") for tag in by]
        if repr(values) in finished and not any("," in value for value in values):
            return ",".join(values)
    return ""


def _manifest(folder: Path) -> RunManifest | None:
    try:
        return read_manifest(folder) if is_run_folder(folder) else None
    except DamagedTraceError:
        return None
