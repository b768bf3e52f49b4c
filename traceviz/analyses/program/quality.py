"""Figures of quality that the program stated during its run: losses, accuracies, errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.program.metric_names import MetricName, read_name
from traceviz.core.units import format_number
from traceviz.report import (
    OVER_TIME,
    STATED,
    Block,
    Column,
    Fact,
    Facts,
    Grid,
    Lane,
    Prose,
    Row,
    Section,
    Skipped,
    Timeline,
)
from traceviz.trace import schema

_SPLITS = ("validation", "test", None, "train")
"""Parts of the data, the most informative about quality first."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure over the run.

    Args:
        name: Name in the program.
        said: Content of the name.
        source: Source of the values.
        values: ``start_ns``, ``step``, ``epoch``, ``value`` in the order of time; a value that was not finite is null.
    """

    name: str
    said: MetricName
    source: str
    values: pl.DataFrame

    @property
    def finite(self) -> pl.DataFrame:
        """The values that are numbers."""
        return self.values.filter(pl.col("value").is_not_null())

    @property
    def first(self) -> float | None:
        """The first value; ``None`` if it was not finite."""
        return _number(self.values["value"][0])

    @property
    def last(self) -> float | None:
        """The last value; ``None`` if it was not finite."""
        return _number(self.values["value"][-1])

    @property
    def best(self) -> dict[str, float | int | None]:
        """The best value with its ``step`` and ``epoch``, the earliest of equal ones; empty if none is known."""
        if not self.said.better or not self.finite.height:
            return {}
        values = self.finite["value"]
        place = values.arg_min() if self.said.better == "lower" else values.arg_max()
        assert place is not None
        return self.finite.row(place, named=True)


@dataclass(frozen=True, slots=True)
class Quality:
    """All figures, and the times of the first and the last value."""

    metrics: tuple[Metric, ...]
    window: tuple[int, int]


@dataclass(frozen=True, slots=True)
class QualityAnalysis(Analysis[Quality]):
    """Losses, accuracies and errors that the program stated: the first, the last, the best, and their course.

    Args:
        points: Values of each that the JSON report lists, evenly over the run, the first and last among them.
        slices: Slices of the pictures.
        pictures: Figures that are drawn over time.
    """

    slug = "quality"
    title = "Quality"

    points: int = 200
    slices: int = 60
    pictures: int = 6

    def run(self, trace: TraceView) -> Quality | Skipped:
        """Collect each figure from the one source, process and name that has most of it."""
        stated = trace.frame("metrics", *schema.table("metrics").arrow.names)
        if not stated.height:
            return self.skipped("the program stated no figure of quality")
        metrics = tuple(_metrics(stated))
        times = stated["start_ns"].to_numpy()
        return Quality(metrics, (int(times.min()), int(times.max())))

    def describe(self, result: Quality) -> Section:
        """Describe figures with a row each, pictures of those that have a direction, and the values for machines."""
        rows = tuple(
            (
                *(
                    metric.name,
                    metric.said.label,
                    metric.said.split,
                    metric.said.better or None,
                    metric.first,
                    metric.last,
                ),
                *(metric.best.get(key) for key in ("value", "step", "epoch")),
                *(metric.values.height, metric.source),
            )
            for metric in result.metrics
        )
        grid = Grid(_COLUMNS, rows, STATED, complete=True)
        course = tuple(row for metric in result.metrics for row in _course(metric, self.points))
        blocks: list[Block] = [Facts((Fact("metrics", "figures stated", len(result.metrics), "count"),), "machine")]
        blocks += [grid, *_pictures(result, self.pictures, self.slices)]
        for metric in result.metrics:
            odd, label = metric.values.height - metric.finite.height, metric.said.label
            if metric.said.better and metric.last is None:
                text = f"The last {label} is no finite number: the training has diverged, or divided by zero."
                blocks.append(Prose(text))
            elif metric.said.better and odd:
                blocks.append(Prose(f"{odd} of {metric.values.height} values of {label} are no finite numbers."))
        blocks.append(Grid(_COURSE, course, OVER_TIME, audience="machine"))
        return Section(self.slug, self.title, tuple(blocks))


_COLUMNS = (
    Column("name", "Name", "text", 9),
    Column("label", "Figure", "text", 0),
    Column("split", "Of", "text", 9),
    Column("better", "Better", "text", 3),
    Column("first", "First", "number", 1),
    Column("last", "Last", "number", 0),
    Column("best", "Best", "number", 0),
    Column("best_step", "At step", "count", 4),
    Column("best_epoch", "In epoch", "count", 2),
    Column("count", "Values", "count", 3),
    Column("source", "Told by", "text", 2),
)
_COURSE = (
    Column("label", "Figure", "text", 0),
    Column("start_ns", "At", "ns", 0),
    Column("step", "Step", "count", 1),
    Column("epoch", "Epoch", "count", 1),
    Column("value", "Value", "number", 0),
)


def _metrics(stated: pl.DataFrame) -> Iterator[Metric]:
    """Yield each figure once. Several ranks may state it, and Keras also gives it to TensorBoard by another name."""
    order = {source: place for place, source in enumerate(_TRUST)}
    texts = stated.with_columns(pl.col("name", "source").cast(pl.String))
    best: dict[tuple[str, str | None], tuple[tuple[int, int, int, str], Metric]] = {}
    for (source, name, process), values in sorted(
        texts.partition_by("source", "name", "process_id", as_dict=True).items()
    ):
        said = read_name(str(name), str(source))
        rank = (order.get(str(source), len(order)), -values.height, int(str(process)), str(name))
        ordered = values[["start_ns", "step", "epoch", "value"]].sort("start_ns", "step", maintain_order=True)
        known = best.get((said.what, said.split))
        if known is None or rank < known[0]:
            best[said.what, said.split] = rank, Metric(str(name), said, str(source), ordered)
    yield from sorted((metric for _, metric in best.values()), key=_place)


_TRUST = ("keras", "lightning", "transformers", "program", "tensorboard")
"""Order of sources if several report the same figure, the most trusted first."""


def _place(metric: Metric) -> tuple[bool, int, int, str]:
    """Return the sort key: figures with a direction first, then part of the data, then time of the first value."""
    first = int(metric.values["start_ns"][0])
    return not metric.said.better, _SPLITS.index(metric.said.split), first, metric.said.label


def _course(metric: Metric, points: int) -> Iterator[Row]:
    rows = metric.values[["start_ns", "step", "epoch", "value"]]
    places = np.unique(np.linspace(0, rows.height - 1, min(points, rows.height)).round().astype(np.int64))
    for row in rows[places.tolist()].iter_rows():
        yield (metric.said.label, *row)


def _pictures(result: Quality, most: int, slices: int) -> Iterator[Timeline]:
    """Yield the course of figures with a direction and several values, from the smallest to the largest."""
    begin, end = result.window
    lanes = tuple(
        _lane(metric, begin, end, slices)
        for metric in result.metrics
        if metric.said.better and metric.finite.height >= _COURSE_OF and metric.finite["value"].n_unique() > 1
    )
    if lanes and end > begin:
        title = "From the first value to the last, each until the next; the height is between the values on the right"
        yield Timeline(title, 0, end - begin, lanes[:most])


_COURSE_OF = 3
"""Least number of values for a course; they are not all equal."""


def _lane(metric: Metric, begin: int, end: int, slices: int) -> Lane:
    """Return the last value up to the end of each slice."""
    finite = metric.finite
    values, times = finite["value"].to_numpy(), finite["start_ns"].to_numpy()
    ends = begin + (end - begin) * np.arange(1, slices + 1) / slices
    places = np.searchsorted(times, ends, side="right") - 1
    low, high = float(values.min()), float(values.max())
    shown = (None if place < 0 else (float(values[place]) - low) / (high - low) for place in places.tolist())
    return Lane(metric.said.label, tuple(shown), f"{format_number(low)} to {format_number(high)}")


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
