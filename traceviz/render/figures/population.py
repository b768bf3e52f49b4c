"""Figures of all traces of an archive: verdicts, time at stake, outliers."""

from __future__ import annotations

from traceviz.render.figures.reading import Row, about, grid_with, number, rows, text, titled
from traceviz.render.figures.values import (
    Axis,
    NoFigure,
    Part,
    RankedBar,
    RankedBars,
    SignedBar,
    SignedBars,
    StackedBars,
    StackedRow,
)
from traceviz.report import Bars, Report

MOST = 12
"""Limit of the bars of a figure."""
_EVERY = "Every figure"
"""Title of the grid with all outlying figures."""


def verdicts(report: Report) -> StackedBars | NoFigure:
    """Draw the number of traces by verdict on their input."""
    bars = next((block for block in report.blocks("verdicts") if isinstance(block, Bars)), None)
    if bars is None:
        return NoFigure("no trace has a verdict")
    parts = tuple(Part(bar.key, bar.label, number(bar.value) or 0.0, bar.share) for bar in bars.bars if bar.share > 0)
    return StackedBars(bars.title, about(report), Axis("traces", "count"), (StackedRow("traces", parts),), whole=parts)


def at_stake(report: Report) -> RankedBars | NoFigure:
    """Draw the findings with the most time at stake over all traces; the times are upper bounds."""
    grid = grid_with(report, "at_stake", "code", "name", "stake_ns", "gpu_stake_ns")
    table = list(rows(grid)) if grid is not None else []
    of_gpus = any(number(row["gpu_stake_ns"]) for row in table)
    key, share = ("gpu_stake_ns", "share_of_gpu") if of_gpus else ("stake_ns", "share_of_recorded")
    drawn = [row for row in table if number(row[key])][:MOST]
    if not drawn:
        return NoFigure("no finding has time at stake")
    return RankedBars(
        "Time at stake over all traces",
        about(report),
        Axis("device time at most" if of_gpus else "time at most", "ns"),
        tuple(
            RankedBar(
                text(row["code"]),
                f"{text(row['name'])} ({text(row['code'])})",
                number(row[key]),
                number(row[share]),
                detail=f"{text(row['traces'])} traces",
            )
            for row in drawn
        ),
        notes=("Upper bounds, which may overlap: they do not add up.",),
    )


def outliers(report: Report) -> SignedBars | NoFigure:
    """Draw figures of traces that are far from those of similar traces, in modified z-scores."""
    grid = titled(report, "outliers", _EVERY) or grid_with(report, "outliers", "source", "metric", "score")
    table = list(rows(grid)) if grid is not None else []
    scored = [row for row in table if number(row["score"]) is not None]
    drawn = sorted(scored, key=lambda row: -abs(number(row["score"]) or 0.0))[:MOST]
    if not drawn:
        return NoFigure("no trace stands out")
    left = len(table) - len(drawn)
    return SignedBars(
        "Traces that stand out",
        about(report),
        Axis("modified z-score", "number"),
        tuple(
            SignedBar(
                text(row["metric"]),
                f"{text(row['metric'])}: {text(row['source'])}{_rank(row)}",
                number(row["score"]),
                f"{text(row['shown'])} against {text(row['shown_median'])}",
            )
            for row in drawn
        ),
        notes=(
            *((f"{left:,} more figures of traces stand out.",) if left else ()),
            "Against the median of each trace's like: the same job and tags, or the same framework and GPU.",
        ),
    )


def _rank(row: Row) -> str:
    rank = row["rank"]
    return "" if rank is None else f", rank {rank}"
