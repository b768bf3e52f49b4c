"""One figure of a trace, a report or a comparison, for notebooks, papers and READMEs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from traceviz.render.figures.registry import figure as figure_of
from traceviz.render.figures.values import Figure
from traceviz.render.svg.draw import WIDTH, svg
from traceviz.report import Report

if TYPE_CHECKING:
    from traceviz.compare.compare import Comparison
    from traceviz.trace.tables import TraceTables


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure with its size. A notebook displays it; ``.svg`` is its text.

    Args:
        figure: Its values, independent of how they are drawn.
        width: Pixels.
        height: Pixels, for figures without a height of their own; ``None`` for a height that suits the figure.
    """

    figure: Figure
    width: int = WIDTH
    height: int | None = None

    @property
    def svg(self) -> str:
        """The text of an SVG file."""
        return svg(self.figure, self.width, height=self.height)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write an SVG file atomically and return its path.

        Raises:
            OutputExistsError: the file exists, and ``force`` is false.
            OutputError: the place cannot be written.
        """
        from traceviz.core.files import new_file

        place = Path(path)
        with new_file(place, force=force) as temporary:
            temporary.write_text(f"{self.svg}\n", encoding="utf-8")
        return place

    def __repr__(self) -> str:
        return f"<Plot {self.figure.title!r}, {self.width} pixels wide>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg


def plot(
    shown: Report | Comparison | TraceTables | str | os.PathLike[str],
    figure: str | None = None,
    *,
    width: int = WIDTH,
    height: int | None = None,
) -> Plot:
    """Create one figure of a report, a comparison, a trace or the file of one.

    Args:
        shown: A report, also of a comparison or a trend; tables, which are analysed; or a path, which is read.
        figure: Its name: steps, api, utilization, curve, ...; ``None`` for the most informative one.
        width: Pixels.
        height: Pixels; ``None`` for a height that suits the figure.

    Raises:
        UsageError: there is no such figure, or the report lacks it; the error lists the available figures.
    """
    return Plot(figure_of(_report(shown), figure), width, height)


def _report(shown: Report | Comparison | TraceTables | str | os.PathLike[str]) -> Report:
    if isinstance(shown, Report):
        return shown
    if isinstance(shown, str | os.PathLike):
        from traceviz.api import report_on

        return report_on(Path(shown))
    from traceviz.trace.tables import TraceTables

    if isinstance(shown, TraceTables):
        from traceviz.api import analyze

        return analyze(shown)
    from traceviz.compare.report.document import document

    return document(shown)
