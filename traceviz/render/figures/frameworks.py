"""Shares of CUDA API time by function, a bar for each framework or each value of a tag, over all traces."""

from __future__ import annotations

from traceviz.render.figures.reading import about, grid_with, number, rows, sentences, text
from traceviz.render.figures.side_api import shares_by, stacked_shares
from traceviz.render.figures.values import NoFigure, StackedBars
from traceviz.report import Report

SLUG = "cuda_api"


def frameworks(report: Report) -> StackedBars | NoFigure:
    """Draw functions with at least 1 % of the API time of any framework."""
    grid = grid_with(report, SLUG, "by", "name", "share_of_api")
    if grid is None:
        said = sentences(report, SLUG)
        return NoFigure(said[0].rstrip(".") if said else "no trace recorded calls of the CUDA API")
    shares = shares_by((text(row["by"]), text(row["name"]), number(row["share_of_api"]) or 0.0) for row in rows(grid))
    by = next(column.label for column in grid.columns if column.name == "by")
    return stacked_shares(f"CUDA API time by function, for each {by.lower()}", about(report), shares, by.lower())
