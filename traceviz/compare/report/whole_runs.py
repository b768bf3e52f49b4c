"""Whole runs of two or more sides: measures such as total time and energy, and quality of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traceviz.compare.changes.whole_runs import (
    ALIKE,
    BETTER,
    EPOCH,
    EPOCHS,
    PARTS,
    QUALITY,
    TRAINING,
    WORSE,
    MeasureChange,
    MeasureChanges,
    QualityChange,
    QualityChanges,
    Stated,
    compare_measures,
    stated_figures,
)
from traceviz.compare.compare import Pair
from traceviz.compare.effect import Outcome, typical
from traceviz.compare.options import Limits
from traceviz.compare.report.change_table import Blocks, Cell, change_table, change_words, percent_ends
from traceviz.compare.sides.basis import TOTAL
from traceviz.compare.sides.measures import measures_of, stopped
from traceviz.compare.sides.sides import Side, grid, rows
from traceviz.core.units import Value, counted, format_change, format_number, format_speed, format_value
from traceviz.report import OVER_TIME, STATED, Block, Column, Grid, Prose, Row

# Measures -------------------------------------------------------------------------------------------------------------

_SHORT = {
    "training_ns": "to the last step",
    "start_ns": "to the first step",
    "host_memory_peak_bytes": "host memory, most",
    "device_memory_peak_bytes": "device memory, most",
}
"""Short names that let six columns fit 80 cells; other measures keep the names of the report."""


def _whole(value: float) -> Value:
    """Return whole numbers as such: 12 epochs, and 12,345 bytes."""
    return int(value) if value.is_integer() else value


def _measure_words(change: MeasureChange) -> str:
    if change.unit == "count":
        return format_change(_whole(change.new - change.base), "number")
    return change_words(change.base, change.new, change.unit, change.ratio)


def _percent_interval(change: MeasureChange) -> str | None:
    """Format ``−71.8, −50.3``, in percent as the heading states; ``None`` if there is none, or it has no width."""
    if change.interval is None:
        return None
    low, high = (end.removesuffix(" %") for end in percent_ends(change.interval))
    return None if low == high else f"{low}, {high}"


MEASURES_TABLE: tuple[Cell[MeasureChange], ...] = (
    (Column("key", "Key", "text", 9), lambda change: change.key),
    (Column("label", "Measure", "text", 0), lambda change: _SHORT.get(change.key, change.label)),
    (Column("base", "Base", "text", 0), lambda change: format_value(_whole(change.base), change.unit)),
    (Column("new", "New", "text", 0), lambda change: format_value(_whole(change.new), change.unit)),
    (Column("change", "Change", "text", 0), _measure_words),
    (Column("interval", "95 % interval, %", "text", 1, shorten=False, restates=True), _percent_interval),
    (Column("verdict", "Verdict", "text", 0, shorten=False), lambda change: change.verdict or None),
    (Column("about", "Is", "text", 9), lambda change: change.about or None),
    (Column("unit", "unit", "text", 9), lambda change: change.unit),
    (Column("better", "better", "text", 9), lambda change: change.better),
    (Column("base_value", "base_value", "number", 9), lambda change: change.base),
    (Column("new_value", "new_value", "number", 9), lambda change: change.new),
    (Column("ratio", "ratio", "ratio", 9, signed=True), lambda change: change.ratio),
    (
        Column("low_ratio", "low_ratio", "ratio", 9, signed=True),
        lambda change: change.interval[0] if change.interval else None,
    ),
    (
        Column("high_ratio", "high_ratio", "ratio", 9, signed=True),
        lambda change: change.interval[1] if change.interval else None,
    ),
    (Column("base_runs", "base_runs", "count", 9), lambda change: change.runs[0]),
    (Column("new_runs", "new_runs", "count", 9), lambda change: change.runs[1]),
)


def measure_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (compares whole runs)
    """Make a row for every measure, and sentences on the epochs and the intervals."""
    measures = pair.measures
    if measures.why_not:
        return [], measures.why_not
    title = "figures of whole runs that both sides have"
    table = change_table(MEASURES_TABLE, measures.changes, title, complete=True)
    return [table, *map(Prose, _measure_remarks(pair, measures))], ""


def _measure_remarks(pair: Pair, measures: MeasureChanges) -> Iterator[str]:
    for side, ended in zip((pair.base, pair.new), measures.stopped, strict=True):
        if ended:
            count, runs = sum(map(bool, map(stopped, side.reports))), len(side.reports)
            who = side.label if runs == 1 else f"{count} of {runs} runs of {side.label}"
            yield f"{who} did not end by {'itself' if count == 1 else 'themselves'} ({'; '.join(ended)})."
    is_said = pair.judgement.effect is not None and pair.judgement.effect.interval is None
    if not is_said and any(change.verdict and change.runs == (1, 1) for change in measures.changes):
        yield (
            "Of one run on each side, intervals are of its steps and epochs, and what a restart alone changes is not "
            "known. Without one, changes by less than a fifth are not judged. Several runs of a side (--group) tell."
        )


_SAME = 0.05
"""Relative difference below which epochs take equally long; they also do if it may be chance."""


def epochs_words(measures: MeasureChanges) -> str:
    """Return that the sides trained for different numbers of epochs, and how the time per epoch changed.

    It is empty if the numbers are equal or unknown.
    """
    epochs, epoch, training = (measures.of(key) for key in (EPOCHS, EPOCH, TRAINING))
    if epochs is None or epoch is None or epoch.ratio is None or epochs.base == epochs.new:
        return ""
    counts = " → ".join(format_number(round(count, 1)) for count in (epochs.base, epochs.new))
    times = " → ".join(dict.fromkeys(format_value(value, "ns") for value in (epoch.base, epoch.new)))
    each = ", each longer" if epoch.ratio > 0 else ", each shorter"
    if epoch.verdict == Outcome.NO_CHANGE or abs(epoch.ratio) < _SAME:
        each = " at the same time per epoch"
    elif epoch.verdict == Outcome.UNKNOWN:
        each = ""
    said = f"{counts} epochs{each} ({times})"
    if training is None or training.ratio is None:
        return f"{said}."
    return f"{said}: time to the end of training {format_change(training.ratio, 'ratio')}."


_OF_SIDES: tuple[tuple[str, str, int], ...] = (
    ("total_ns", "Total", 0),
    ("training_ns", "Training", 2),
    ("start_ns", "To first step", 4),
    ("first_epoch_ns", "First epoch", 5),
    ("epoch_ns", "Per epoch", 1),
    ("epochs", "Epochs", 2),
    ("samples_per_second", "Samples per s", 1),
    ("latency_p50_ns", "p50", 3),
    ("latency_p95_ns", "p95", 3),
    ("latency_p99_ns", "p99", 4),
    ("energy_j", "Energy, J", 3),
    ("energy_per_sample_j", "J per sample", 4),
    ("host_memory_peak_bytes", "Memory", 2),
    ("device_memory_peak_bytes", "Device memory", 3),
    ("cpu_mean", "Cores busy", 3),
)
"""Measures in the table of sides: key, heading, importance. Others are for machines."""
TOTAL_SPEEDUP = "total_speedup"


def measures_by_side(sides: Sequence[Side]) -> list[Block]:
    """Make a row for every side with its measures, and its speed-up over the base by total time.

    Args:
        sides: The base first.

    Returns:
        Nothing if fewer than two sides have any.
    """
    measured = {side.label: measures_of(side) for side in sides}
    if sum(map(bool, measured.values())) < 2:
        return []
    known = {key: measure for of_side in measured.values() for key, measure in of_side.items()}
    shown = [column for column in _OF_SIDES if column[0] in known]
    others = [(key, measure.label, 9) for key, measure in known.items() if key not in {key for key, *_ in shown}]
    keys = [key for key, *_ in (*shown, *others)]
    columns = (
        Column("side", "Side", "text", 0),
        Column("runs", "Runs", "count", 4),
        *(Column(key, label, known[key].unit, importance) for key, label, importance in (*shown, *others)),
        Column("compared", "Total, against the base", "text", 0, shorten=False, restates=True),
        Column(TOTAL_SPEEDUP, "Speed-up, total", "factor", 9),
    )
    rows = tuple(
        (
            side.label,
            len(side.reports),
            *(typical(np.array(of_side[key].values)) if key in of_side else None for key in keys),
            *_compare_total(sides[0], side),
        )
        for side, of_side in zip(sides, measured.values(), strict=True)
    )
    return [Grid(columns, rows, "each side, over its whole runs", complete=True)]


def _compare_total(base: Side, side: Side) -> tuple[str | None, float | None]:
    """Return the verdict on the total time, ``1.25× slower``, and its speed-up; ``None`` if it cannot be judged."""
    total = compare_measures(base, side, Limits()).of(TOTAL.key)
    if total is None or total.verdict == Outcome.UNKNOWN or not total.new:
        return ("base" if side is base else None), None
    speedup = total.base / total.new
    same = "base" if side is base else total.verdict if total.verdict == Outcome.NO_CHANGE else ""
    return same or format_speed(speedup), speedup


# Quality --------------------------------------------------------------------------------------------------------------


def _quality_interval(change: QualityChange) -> str | None:
    """Format ``−0.131 to −0.118``; ``None`` if there is none, or repeats do not differ."""
    if change.interval is None or change.interval[0] == change.interval[1]:
        return None
    return " to ".join(format_change(end, "number") for end in change.interval)


QUALITY_TABLE: tuple[Cell[QualityChange], ...] = (
    (Column("label", "Figure", "text", 0), lambda change: change.label),
    (Column("split", "Of", "text", 9), lambda change: change.split),
    (Column("better", "Better", "text", 4), lambda change: change.better or None),
    (Column("base", "Base", "number", 0), lambda change: change.base.mean),
    (Column("new", "New", "number", 0), lambda change: change.new.mean),
    (Column("difference", "Change", "number", 0, signed=True), lambda change: change.difference),
    (Column("interval", "95 % interval", "text", 1, shorten=False, restates=True), _quality_interval),
    (Column("base_scatter", "Scatter, base", "number", 3), lambda change: change.base.scatter),
    (Column("new_scatter", "Scatter, new", "number", 3), lambda change: change.new.scatter),
    (Column("base_best", "Best, base", "number", 2), lambda change: change.base.best),
    (Column("new_best", "Best, new", "number", 2), lambda change: change.new.best),
    (Column("base_best_epoch", "In epoch, base", "number", 9), lambda change: change.base.best_epoch),
    (Column("new_best_epoch", "In epoch, new", "number", 9), lambda change: change.new.best_epoch),
    (Column("verdict", "Verdict", "text", 0, shorten=False), lambda change: change.verdict or None),
    (Column("low", "low", "number", 9, signed=True), lambda change: change.interval[0] if change.interval else None),
    (Column("high", "high", "number", 9, signed=True), lambda change: change.interval[1] if change.interval else None),
    (Column("base_runs", "base_runs", "count", 9), lambda change: len(change.base.final)),
    (Column("new_runs", "new_runs", "count", 9), lambda change: len(change.new.final)),
)


def quality_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (compares whole runs)
    """Make a row for every figure that both sides state, and sentences on chance."""
    quality = pair.quality
    if quality.why_not:
        return [], quality.why_not
    title = "final values, and the best ones; scatter is the standard deviation of repeats"
    table = change_table(QUALITY_TABLE, quality.changes, title, complete=True)
    return [table, *map(Prose, _quality_remarks(quality))], ""


def _quality_remarks(quality: QualityChanges) -> Iterator[str]:
    judged = [change for change in quality.changes if change.verdict]
    for change in judged:
        for name, side in (("base", change.base), ("new side", change.new)):
            if len(side.values) < len(side.final):
                runs = f"{len(side.final) - len(side.values)} of {len(side.final)} runs of the {name}"
                yield f"The final {change.label} is no finite number in {runs}: the training diverged."
    if any(not change.is_of_repeats and change.difference is not None for change in judged):
        yield (
            "One run on each side: what chance alone (another seed) does to the quality is not known, and a change by "
            "less than a fifth of the loss, or of what is missing to a perfect figure, is not judged. Several runs of "
            "a side (--group, --by) tell."
        )


def quality_words(quality: QualityChanges, speed: str = "") -> str:
    """Return `` But validation accuracy is worse: 0.98 → 0.85 (one run of each side).``; empty if nothing is stated.

    Args:
        quality: The compared figures.
        speed: ``better`` or ``worse`` for the time; empty if it is neither.
    """
    change = quality.leading
    if change is None:
        return ""
    figures = f"{_format_mean(change.base)} → {_format_mean(change.new)}"
    if change.verdict in {WORSE, BETTER}:
        head = "But " if speed not in {"", change.verdict} else ""
        return f" {_sentence(f'{head}{change.label} is {change.verdict}: {figures} ({_chance(change)}).')}"
    if change.verdict == ALIKE:
        return f" {_sentence(change.label)} is alike: {figures}."
    if _format_mean(change.base) == _format_mean(change.new):
        return f" {_sentence(change.label)} is {_format_mean(change.new)} on both sides."
    return f" {_sentence(change.label)} {figures}, which may be chance."


def _format_mean(side: Stated) -> str:
    return "diverged" if side.mean is None else format_number(side.mean)


def _chance(change: QualityChange) -> str:
    ends, odd = _quality_interval(change), _not_finite(change.base) or _not_finite(change.new)
    if odd:
        return odd
    if ends:
        return f"95 % interval of the change {ends}"
    return "repeats do not differ" if change.is_of_repeats else "one run of each side"


def _not_finite(side: Stated) -> str:
    count = len(side.final) - len(side.values)
    return f"no finite number in {count} of {counted(len(side.final), 'run')}" if count else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


_MOST_FIGURES = 5


def quality_by_side(sides: Sequence[Side]) -> list[Block]:
    """Make a row for each of three and more sides with its final figures, the most informative first.

    Return nothing if fewer than two sides have any.
    """
    stated = [stated_figures(side) for side in sides]
    if len(sides) < 3 or sum(map(bool, stated)) < 2:
        return []
    known = {label: one for of_side in reversed(stated) for label, one in of_side.items()}
    counts = {label: sum(label in of_side for of_side in stated) for label in known}
    order = sorted(known, key=lambda label: (not known[label].better, -counts[label], PARTS.index(known[label].split)))
    columns = [Column("side", "Side", "text", 0), Column("runs", "Runs", "count", 4)]
    for place, label in enumerate(order):
        importance = min(place // 2, 3) if known[label].better and place < _MOST_FIGURES else 9
        columns.append(Column(f"final.{label}", _sentence(label), "number", importance))
        columns.append(Column(f"scatter.{label}", f"Scatter of {label}", "number", 9))
    rows: list[Row] = []
    for side, of_side in zip(sides, stated, strict=True):
        figures = [of_side.get(label) for label in order]
        cells = [value for one in figures for value in ((one.mean, one.scatter) if one else (None, None))]
        rows.append((side.label, len(side.reports), *cells))
    return [Grid(tuple(columns), tuple(rows), "final figures of each side, mean over its runs", complete=True)]


_MOST_CURVES = 8
"""Most runs with learning curves; more could not be distinguished."""


def learning_curves(sides: Sequence[Side]) -> list[Block]:
    """List the course of the figures that have a direction, for the first runs of all sides, for figures.

    Return nothing if fewer than two sides have any.
    """
    columns = (
        Column("side", "Side"),
        Column("run", "Run"),
        Column("label", "Figure"),
        Column("epoch", "Epoch", "count"),
        Column("step", "Step", "count"),
        Column("start_ns", "At", "ns"),
        Column("value", "Value", "number"),
    )
    runs = [
        (side, f"{side.label}, run {number}" if len(side.reports) > 1 else side.label, report)
        for side in sides
        for number, report in enumerate(side.reports, 1)
        if rows(grid(report, QUALITY, OVER_TIME))
    ]
    every = sorted(runs, key=lambda run: run[0].reports.index(run[2]))[:_MOST_CURVES]  # one of each side first
    table: list[Row] = []
    for side, name, report in every:
        judged = {row["label"] for row in rows(grid(report, QUALITY, STATED)) if row.get("better")}
        table += [
            (side.label, name, *(row.get(column.name) for column in columns[2:]))
            for row in rows(grid(report, QUALITY, OVER_TIME))
            if row["label"] in judged
        ]
    several = len({row[0] for row in table}) > 1
    return [Grid(columns, tuple(table), OVER_TIME, audience="machine")] if several else []
