"""Quality beside speed: final and best figures of two sides, or of many, and what a sentence says of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceviz.compare.changes.quality import (
    ALIKE,
    BETTER,
    PARTS,
    WORSE,
    QualityChange,
    QualityChanges,
    Stated,
    stated_of,
)
from traceviz.compare.compare import Pair
from traceviz.compare.sides.sides import Side
from traceviz.core.units import counted, format_change, format_number
from traceviz.report import Block, Column, Grid, Prose, Row

Blocks = tuple[list[Block], str]
"""Blocks of a pair; and why there is nothing to compare, empty where there is."""

COLUMNS = (
    Column("label", "Figure", "text", 0),
    Column("split", "Of", "text", 9),
    Column("better", "Better", "text", 4),
    Column("base", "Base", "number", 0),
    Column("new", "New", "number", 0),
    Column("difference", "Change", "number", 0, signed=True),
    Column("interval", "95 % interval", "text", 1),
    Column("base_scatter", "Scatter, base", "number", 3),
    Column("new_scatter", "Scatter, new", "number", 3),
    Column("base_best", "Best, base", "number", 2),
    Column("new_best", "Best, new", "number", 2),
    Column("base_best_epoch", "In epoch, base", "number", 9),
    Column("new_best_epoch", "In epoch, new", "number", 9),
    Column("verdict", "Verdict", "text", 0),
    *(Column(name, name, "number", 9, signed=True) for name in ("low", "high")),
    *(Column(name, name, "count", 9) for name in ("base_runs", "new_runs")),
)


def quality_blocks(pair: Pair, per: str) -> Blocks:  # noqa: ARG001 (of whole runs, whatever a step is)
    """A row for every figure that both sides state, and what is to be known of chance."""
    quality = pair.quality
    if quality.why_not:
        return [], quality.why_not
    title = "final values, and the best ones; scatter is the standard deviation of repeats"
    return [Grid(COLUMNS, tuple(map(_row, quality.changes)), title, complete=True), *map(Prose, _remarks(quality))], ""


def _row(change: QualityChange) -> Row:
    base, new = change.base, change.new
    low, high = change.interval or (None, None)
    return (
        *(change.label, change.split, change.better or None),
        *(base.mean, new.mean, change.difference, _ends(change)),
        *(base.scatter, new.scatter, base.best, new.best, base.best_epoch, new.best_epoch),
        *(change.verdict or None, low, high, len(base.final), len(new.final)),
    )


def _ends(change: QualityChange) -> str | None:
    """``−0.131 to −0.118``; ``None`` where there is none, or repeats do not differ."""
    if change.interval is None or change.interval[0] == change.interval[1]:
        return None
    return " to ".join(format_change(end, "number") for end in change.interval)


def _remarks(quality: QualityChanges) -> Iterator[str]:
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
    """`` But validation accuracy is worse: 0.98 → 0.85 (one run of each side).``; empty where nothing is stated.

    Args:
        quality: What was compared.
        speed: Whether the time is ``better`` or ``worse``; empty where it is neither.
    """
    change = quality.leading
    if change is None:
        return ""
    figures = f"{_shown(change.base)} → {_shown(change.new)}"
    if change.verdict in {WORSE, BETTER}:
        head = "But " if speed not in {"", change.verdict} else ""
        return f" {_sentence(f'{head}{change.label} is {change.verdict}: {figures} ({_chance(change)}).')}"
    if change.verdict == ALIKE:
        return f" {_sentence(change.label)} is alike: {figures}."
    if _shown(change.base) == _shown(change.new):
        return f" {_sentence(change.label)} is {_shown(change.new)} on both sides."
    return f" {_sentence(change.label)} {figures}, which may be chance."


def _shown(side: Stated) -> str:
    return "diverged" if side.mean is None else format_number(side.mean)


def _chance(change: QualityChange) -> str:
    ends, odd = _ends(change), _not_finite(change.base) or _not_finite(change.new)
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
    """A row for every side with its final figures, the most telling first; none where fewer than two have any."""
    stated = [stated_of(side) for side in sides]
    if sum(map(bool, stated)) < 2:
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
