"""The classes of step time of a report against the simulator's own account."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from benchmarks.diagnosis.loader import MULTIPLE, SINGLE
from benchmarks.diagnosis.record import Kind, Record, Work
from traceviz.report import Report
from traceviz.report.document import Grid

COMPUTE, COMMUNICATION, COPIES, INPUT, CALLS, OTHER = "compute", "communication", "copies", "input", "calls", "other"
CLASSES = (COMPUTE, COMMUNICATION, COPIES, INPUT, CALLS, OTHER)
"""Classes in the order of their precedence: what the devices do, then what the host does while they idle."""
HOST_COLLECTIVES = "gloo:"
"""Start of the names of ranges in which ranks exchange data on the host, which is communication."""
_CAPTURE = re.compile("Capture|GraphInstantiate")
_REPORTED = {
    "device_compute": COMPUTE,
    "communication": COMMUNICATION,
    **dict.fromkeys(("copy_d2h", "copy_h2d", "other_device", "parameter_transfer"), COPIES),
    "input_wait": INPUT,
    **dict.fromkeys(("synchronisation", "allocation", "kernel_launch"), CALLS),
}
"""Classes of a report; the rest of its time is ``other``: compilation, blocked and computing hosts."""

Interval = tuple[int, int]


def find_errors(record: Record, recorded: Record, report: Report) -> dict[str, float]:
    """Return the error of each class as a share of step time.

    Nothing is returned if the report has no classes, or did not find the steps that there are.

    Args:
        record: What happened.
        recorded: The part of it that the capture covers: steps that it cuts are not compared.
        report: The report on the capture.
    """
    reported = reported_shares(report)
    steps = [_steps_within(record, recorded, rank) for rank in range(record.ranks)]
    steady = _steady_steps(report)
    if not reported or not any(steps) or len(steady) != sum(map(len, steps)):
        return {}
    by_rank = iter(steady)
    steps = [[step for step in of_rank if next(by_rank)] for of_rank in steps]
    account = dict.fromkeys(CLASSES, 0)
    for rank, of_rank in enumerate(steps):
        for name, ns in account_of(record, rank, of_rank).items():
            account[name] += ns
    total = sum(end - start for of_rank in steps for start, end in of_rank)
    return {name: abs(reported.get(name, 0.0) - account[name] / total) for name in CLASSES} if total else {}


def reported_shares(report: Report) -> dict[str, float]:
    """Return the shares of step time in a report by our classes; empty without steps."""
    shares: dict[str, float] = {}
    grid = next((grid for grid in report.grids("breakdown") if not grid.title), None)
    for row in _rows(grid):
        name = _REPORTED.get(str(row["class"]), OTHER)
        shares[name] = shares.get(name, 0.0) + float(str(row["share_of_step"]))
    return shares


def account_of(record: Record, rank: int, steps: list[Interval]) -> dict[str, int]:
    """Return the time of a rank in steps by class. Time of several classes belongs to the first of them."""
    edges: list[tuple[int, int, int]] = []  # time, position of the class, +1 or -1
    for position, start, end in _events_of(record, rank):
        edges += [(start, position, 1), (end, position, -1)]
    inside = len(CLASSES)
    for start, end in steps:
        edges += [(start, inside, 1), (end, inside, -1)]
    edges.sort()
    open_: list[int] = [0] * (inside + 1)
    account = dict.fromkeys(CLASSES, 0)
    for (time, position, change), (following, _, _) in pairwise(edges):
        open_[position] += change
        if open_[inside] > 0 and following > time:
            first = next((index for index in range(inside) if open_[index] > 0), inside - 1)
            account[CLASSES[first]] += following - time
    return account


def waits_for_ranks(record: Record) -> float:
    """Return the share of time in which ranks wait in collectives for a later rank and compute nothing."""
    latest: dict[int, int] = {}  # a collective ends at one time on all its ranks
    for work in record.device:
        if work.work is Work.COLLECTIVE:
            latest[work.end] = max(work.start, latest.get(work.end, 0))
    waits = (
        replace(work, end=latest[work.end]) if work.work is Work.COLLECTIVE else work
        for work in record.device
        if work.work in {Work.COLLECTIVE, Work.KERNEL}
    )
    waiting = replace(record, device=tuple(waits), spans=())
    ranks = range(record.ranks)
    total = sum(account_of(waiting, rank, [(0, record.end)])[COMMUNICATION] for rank in ranks)
    return total / max(1, record.ranks * record.end)


def _events_of(record: Record, rank: int) -> Iterator[tuple[int, int, int]]:
    """Yield class, start and end of what a rank does, by the definitions of docs/definitions.md.

    Work that was launched and has not started counts as its call. The capture of a graph is compilation, not a call.
    """
    launched = {span.correlation: span.end for span in record.spans if span.rank == rank and span.kind is Kind.API}
    for work in record.device:
        if work.rank == rank:
            name = {Work.KERNEL: COMPUTE, Work.COLLECTIVE: COMMUNICATION}.get(work.work, COPIES)
            yield CLASSES.index(name), work.start, work.end
            if launched.get(work.correlation, work.start) < work.start:
                yield CLASSES.index(CALLS), launched[work.correlation], work.start
    own = {facts.thread for facts in record.threads if facts.rank == rank and not facts.process}
    for span in record.spans:
        if span.rank != rank or span.thread not in own:
            continue
        if span.name in {SINGLE, MULTIPLE}:
            yield CLASSES.index(INPUT), span.start, span.end
        elif span.name.startswith(HOST_COLLECTIVES):
            yield CLASSES.index(COMMUNICATION), span.start, span.end
        elif span.kind is Kind.API and not _CAPTURE.search(span.name):
            yield CLASSES.index(CALLS), span.start, span.end


def _steps_within(record: Record, recorded: Record, rank: int) -> list[Interval]:
    spans = sorted(
        (span for span in record.spans if span.kind is Kind.STEP and span.rank == rank), key=lambda s: s.start
    )
    return [(s.start, s.end) for s in spans if recorded.start <= s.start and s.end <= recorded.end]


def _steady_steps(report: Report) -> list[bool]:
    """Return for each step of each rank whether it is steady, by rank and number."""
    grid = next((grid for grid in report.grids("steps") if grid.title == "Every step"), None)
    rows = sorted(_rows(grid), key=lambda row: (int(str(row.get("process") or 0)), int(str(row["start_ns"]))))
    return [not (row["warmup"] or row["cut"]) for row in rows]


def _rows(grid: Grid | None) -> list[dict[str, object]]:
    if grid is None:
        return []
    names = [column.name for column in grid.columns]
    return [dict(zip(names, row, strict=True)) for row in grid.rows]
