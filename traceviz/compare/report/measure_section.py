"""The whole run in figures: total time, epochs, samples per second, energy, memory; of two sides, or of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traceviz.compare.changes.measures import EPOCH, EPOCHS, TRAINING, MeasureChange, MeasureChanges, compare_measures
from traceviz.compare.compare import Pair
from traceviz.compare.effect import Ends, typical
from traceviz.compare.options import Limits
from traceviz.compare.outcome import Outcome
from traceviz.compare.sides.basis import TOTAL
from traceviz.compare.sides.measures import Measure, measures_of, stopped
from traceviz.compare.sides.sides import Side
from traceviz.core.units import Value, format_change, format_number, format_value
from traceviz.report import Block, Column, Grid, Prose, Row

Blocks = tuple[list[Block], str]
"""Blocks of a pair; and why there is nothing to compare, empty where there is."""

COLUMNS = (
    Column("key", "Key", "text", 9),
    Column("label", "Measure", "text", 0),
    Column("base", "Base", "text", 0),
    Column("new", "New", "text", 0),
    Column("change", "Change", "text", 0),
    Column("interval", "95 % interval, %", "text", 1),
    Column("verdict", "Verdict", "text", 0),
    Column("about", "Is", "text", 9),
    *(Column(name, name, "text", 9) for name in ("unit", "better")),
    *(Column(name, name, "number", 9) for name in ("base_value", "new_value")),
    *(Column(name, name, "ratio", 9, signed=True) for name in ("ratio", "low_ratio", "high_ratio")),
    *(Column(name, name, "count", 9) for name in ("base_runs", "new_runs")),
)


def measure_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (of whole runs, whatever a step is)
    """A row for every measure, what is to be known of the epochs and the intervals, and the parts of the runs."""
    measures = pair.measures
    if measures.why_not:
        return [], measures.why_not
    rows = tuple(map(_row, measures.changes))
    title = "figures of whole runs that both sides have"
    return [Grid(COLUMNS, rows, title, complete=True), *map(Prose, _remarks(pair, measures))], ""


_SHORT = {
    "training_ns": "to the last step",
    "start_ns": "to the first step",
    "host_memory_peak_bytes": "host memory, most",
    "device_memory_peak_bytes": "device memory, most",
}
"""Names that leave room for six columns in 80 cells, beside the names of the report."""


def _row(change: MeasureChange) -> Row:
    low, high = change.interval or (None, None)
    return (
        change.key,
        _SHORT.get(change.key, change.label),
        format_value(_whole(change.base), change.unit),
        format_value(_whole(change.new), change.unit),
        _change(change),
        _ends(change.interval),
        change.verdict or None,
        change.about or None,
        *(change.unit, change.better),
        *(change.base, change.new),
        *(change.ratio, low, high),
        *change.runs,
    )


def _whole(value: float) -> Value:
    """Whole numbers as such: 12 epochs, and 12,345 bytes."""
    return int(value) if value.is_integer() else value


def _change(change: MeasureChange) -> str:
    if change.unit == "ratio":
        return f"{format_change(round((change.new - change.base) * 100, 1), 'number')} points"
    if change.unit == "count":
        return format_change(_whole(change.new - change.base), "number")
    return format_change(change.ratio, "ratio")


def _ends(interval: Ends | None) -> str | None:
    """``−71.8, −50.3``: in percent, as the heading says; ``None`` where there is none, or it leaves no room."""
    if interval is None:
        return None
    low, high = (
        format_change(end, "ratio").removesuffix(" %") if end <= FAR else f">+{FAR * 100:.0f}" for end in interval
    )
    return None if low == high else f"{low}, {high}"


def _remarks(pair: Pair, measures: MeasureChanges) -> Iterator[str]:
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


FAR = 10.0
"""Changes by more times the base than this are shown as more than it."""
_SAME = 0.05
"""Epochs whose times differ by less than this share, or not beyond chance, take equally long."""


def epochs_words(measures: MeasureChanges) -> str:
    """That one side trained for fewer epochs, and whether each took as long; empty where that is not so, or unknown."""
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
"""Measures in the table of sides: key, heading, importance; others are for machines."""
TOTAL_SPEEDUP = "total_speedup"


def measures_by_side(sides: Sequence[Side]) -> list[Block]:
    """A row for every side with its measures, and how many times as fast as the base it is by its total time.

    Args:
        sides: The base first.

    Returns:
        Nothing where fewer than two sides have any.
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
        Column(TOTAL_SPEEDUP, "Speed-up, total", "factor", 0),
    )
    rows = tuple(
        (
            side.label,
            len(side.reports),
            *(_typical(measured[side.label].get(key)) for key in keys),
            _speedup(sides[0], side),
        )
        for side in sides
    )
    return [Grid(columns, rows, "each side, over its whole runs", complete=True)]


def _speedup(base: Side, side: Side) -> float | None:
    """How many times as fast the total time is; ``None`` where that cannot be judged."""
    total = compare_measures(base, side, Limits()).of(TOTAL.key)
    return None if total is None or total.verdict == Outcome.UNKNOWN or not total.new else total.base / total.new


def _typical(measure: Measure | None) -> float | None:
    return None if measure is None else typical(np.array(measure.values))
