"""The time of every step, by class; it shows waits and steps that differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traceviz.core.units import Value, counted, format_value
from traceviz.render.figures.reading import Row, of_trace, quantity, rows, titled
from traceviz.render.figures.values import Axis, Figure, NoFigure, Part, StackedBars, StackedRow
from traceviz.report import BY_STEP, EVERY_STEP, Bars, Report

MOST_BARS = 120
"""Limit of the bars of a figure; with more steps, a bar is the mean of several consecutive ones."""
MOST_RANKS = 4
"""Limit of ranks with a bar each per step; with more, a bar is the mean of all ranks."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of one rank: its number, and the time of each class in order."""

    number: Value
    rank: Value
    times: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Steps:
    """Steps in order of their numbers, and key and label of each class."""

    classes: tuple[tuple[str, str], ...]
    steps: tuple[_Step, ...]

    @property
    def ranks(self) -> tuple[Value, ...]:
        """Each rank once, in order."""
        return tuple(sorted({step.rank for step in self.steps}, key=quantity))


def steps(report: Report) -> Figure | NoFigure:
    """Draw the classes of each steady step; the whole step if the report has no classes."""
    found = _classified(report) or _plain(report)
    if found is None or not found.steps:
        return NoFigure("no single step is known in it")
    ranks = found.ranks
    numbers = tuple(dict.fromkeys(step.number for step in found.steps))
    side_by_side = len(ranks) <= MOST_RANKS
    # Return the smallest of 1, 2, 5, 10, 20, 50, ... that is not below ``least``.
    least = len(numbers) * (len(ranks) if side_by_side else 1) / MOST_BARS
    power: int = 10 ** math.floor(math.log10(max(least, 1)))
    each = next(part * power for part in (1, 2, 5, 10) if part * power >= least)
    bars = tuple(_rows(found, numbers, each, ranks if side_by_side else ()))
    how = counted(len(numbers), "steady step")
    of_ranks = f" on {counted(len(ranks), 'rank')}" if len(ranks) > 1 else ""
    # Return the classes of all steps together, as stated in the report.
    known: Mapping[str, Part] = {
        bar.key: Part(bar.key, bar.label, quantity(bar.value), bar.share)
        for block in report.blocks("breakdown")
        if isinstance(block, Bars)
        for bar in block.bars
    }
    whole = tuple(known[key] for key, _ in found.classes if key in known)
    return StackedBars(
        title="Time of every step" + (", by class" if len(found.classes) > 1 else ""),
        subtitle=f"{how}{of_ranks} {of_trace(report)}".strip(),
        axis=Axis("step time", "ns"),
        rows=bars,
        rows_label="step" if each == 1 else "steps",
        upright=True,
        whole=whole,
        notes=tuple(_notes(report, each, ranks, side_by_side=side_by_side)),
    )


def _classified(report: Report) -> _Steps | None:
    """Return steps with their classes, without classes that take no time in any step."""
    grid = titled(report, "breakdown", BY_STEP, "step")
    if grid is None:
        return None
    columns = [column for column in grid.columns if column.unit == "ns" and column.name != "dur_ns"]
    of_steps = list(rows(grid))
    classes = [column for column in columns if any(quantity(row[column.name]) for row in of_steps)]
    if not classes:
        return None
    found = [_Step(row["step"], row.get("process"), tuple(_time(row[one.name]) for one in classes)) for row in of_steps]
    return _Steps(tuple((column.name, column.label) for column in classes), tuple(found))


def _plain(report: Report) -> _Steps | None:
    """Return steps without their classes, except warm-up and cut ones."""
    grid = titled(report, "steps", EVERY_STEP, "step", "dur_ns")
    if grid is None:
        return None
    of_steps = [row for row in rows(grid) if not row.get("warmup") and not row.get("cut")]
    found = [_Step(row["step"], row.get("process"), (_time(row["dur_ns"]),)) for row in of_steps]
    return _Steps((("step", "step"),), tuple(found))


def _time(value: Value) -> float:
    return max(quantity(value), 0.0)


def _rows(found: _Steps, numbers: Sequence[Value], each: int, ranks: Sequence[Value]) -> Iterator[StackedRow]:
    """Return a bar per ``each`` steps and rank; of all ranks together if there are fewer than two."""
    by_number: dict[Value, list[_Step]] = {}
    for step in found.steps:
        by_number.setdefault(step.number, []).append(step)
    for begin in range(0, len(numbers), each):
        some = numbers[begin : begin + each]
        label, to = str(some[0]), "" if len(some) == 1 else f"to {some[-1]}"
        within = [step for number in some for step in by_number[number]]
        if len(ranks) < 2:
            yield _bar(label, to, found.classes, within)
            continue
        for rank in ranks:
            of_rank = [step for step in within if step.rank == rank]
            if of_rank:
                of = " ".join(filter(None, (to, f"of rank {rank}")))
                yield _bar(label, of, found.classes, of_rank, group=label)


def _bar(
    label: str, remark: str, classes: Sequence[tuple[str, str]], steps: Sequence[_Step], group: str = ""
) -> StackedRow:
    """Return a bar with the mean of some steps, and a mark for the longest."""
    means = [sum(step.times[number] for step in steps) / len(steps) for number in range(len(classes))]
    total = sum(means)
    parts = (
        Part(key, name, mean, mean / total if total else None) for (key, name), mean in zip(classes, means, strict=True)
    )
    most = max(sum(step.times) for step in steps) if len(steps) > 1 else None
    return StackedRow(label, tuple(parts), remark, most, group)


def _notes(report: Report, each: int, ranks: Sequence[Value], *, side_by_side: bool) -> Iterator[str]:
    if len(ranks) > 1 and side_by_side:
        named = ", ".join(str(rank) for rank in ranks)
        yield f"Each {'step' if each == 1 else 'place'} has a bar for each rank, from left to right: {named}."
    if each > 1:
        yield f"Each bar is the mean of {each} steps; the line above it is the longest of them."
    elif len(ranks) > 1 and not side_by_side:
        yield "Each bar is the mean of all ranks; the line above it is the slowest of them."
    warmup = [row for row in _every_step(report) if row.get("warmup")]
    if warmup:
        longest = format_value(max(quantity(row["dur_ns"]) for row in warmup), "ns")
        took = f"it took {longest}" if len(warmup) == 1 else f"the longest took {longest}"
        yield f"{counted(len(warmup), 'warm-up step')} left out: {took}."


def _every_step(report: Report) -> Iterator[Row]:
    grid = titled(report, "steps", EVERY_STEP, "step", "dur_ns")
    return iter(()) if grid is None else rows(grid)
