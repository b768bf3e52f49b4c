"""What the times of all sides consist of, for machines: pictures show the sides beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceviz.compare.attribution import classes_of, mean_classes
from traceviz.compare.changes.whole_runs import parts_of
from traceviz.compare.sides.sides import Side
from traceviz.report import CLASSES_OF_SIDES, PARTS_OF_SIDES, Column, Grid, Row


def classes_by_side(sides: Sequence[Side]) -> Iterator[Grid]:
    """Mean time of every class of step time on every side that lists its steps, for machines: they add up to the step.

    A class that a side does not measure is ``None``; its time there is in the classes after it.
    """
    keys = classes_of(sides)
    labels = {key: label for side in reversed(sides) for key, label in side.class_labels.items()}
    rows: list[Row] = []
    for side in sides:
        if side.classes and side.steps:
            means = mean_classes(side, keys)[1:]
            times = ((key, mean if key in side.measured else None) for key, mean in zip(keys, means, strict=True))
            rows += [(side.label, key, labels.get(key, key), time) for key, time in times]
    if rows:
        yield _of_machines("class", rows, CLASSES_OF_SIDES)


def parts_by_side(sides: Sequence[Side]) -> Iterator[Grid]:
    """Mean time of every exclusive part of the whole runs, of every side that tells them, for machines."""
    told = {side.label: parts_of(side) for side in sides}
    rows = [(label, key, words, time) for label, parts in told.items() for key, (words, time) in parts.items()]
    if rows:
        yield _of_machines("part", rows, PARTS_OF_SIDES)


def _of_machines(name: str, rows: Sequence[Row], title: str) -> Grid:
    columns = (Column("side", "Side"), Column(name, "Key"), Column("label", "Label"), Column("mean_ns", "Mean", "ns"))
    return Grid(columns, tuple(rows), title, audience="machine")
