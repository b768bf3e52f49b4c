"""Common parts of sections on step time by other programs' rules: the steps, and the blocks around their tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from traceviz.core.units import counted, format_ns
from traceviz.report import Bar, Bars, Block, Fact, Facts, Grid, Prose, Row


@dataclass(frozen=True, slots=True)
class BasisClass:
    """A class of step time: its key here, and its name in the other program."""

    key: str
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class BasisSteps:
    """Steps by the rules of another program.

    Args:
        frame: One row per process and step: ``process_id, step`` (its name), ``start_ns, step_ns``, and one column of
            nanoseconds per key of the program's classes; their sum is ``step_ns``.
    """

    frame: pl.DataFrame

    @property
    def count(self) -> int:
        """Number of steps."""
        return self.frame.height

    def total(self, column: str) -> int:
        """Return the sum of a column over all steps."""
        return int(self.frame[column].sum())

    def share(self, key: str) -> float:
        """Return class ``key`` as a share (0 to 1) of all step time."""
        whole = self.total("step_ns")
        return self.total(key) / whole if whole else 0.0

    def rows(self, classes: Iterable[BasisClass]) -> tuple[Row, ...]:
        """Return rows of the steps: name, process, start, duration, and the time of ``classes``."""
        return tuple(self.frame.select("step", "process_id", "start_ns", "step_ns", *(c.key for c in classes)).rows())


def class_totals(steps: BasisSteps, classes: Iterable[BasisClass]) -> pl.DataFrame:
    """Sum ``classes`` over all steps: ``class, label, total_ns, share_of_step`` (0 to 1), ``per_step_ns`` (mean)."""
    totals = ((c, steps.total(c.key)) for c in classes)
    rows = [(c.key, c.label, ns, steps.share(c.key), round(ns / steps.count)) for c, ns in totals]
    return pl.DataFrame(rows, ("class", "label", "total_ns", "share_of_step", "per_step_ns"), orient="row")


def basis_blocks(
    *,
    name: str,
    remark: str,
    steps: BasisSteps,
    totals: pl.DataFrame,
    facts: Iterable[Fact],
    grids: Iterable[Grid],
    conclusion: str,
) -> tuple[Block, ...]:
    """Return facts, the source of the rules, a stacked bar, the tables behind it, and the other program's conclusion.

    Args:
        name: The basis.
        remark: Text that names the program, and what its classes do not show.
        steps: The steps.
        totals: Their classes; those without time have no part in the bar.
        facts: Facts besides name, step time and number of steps.
        grids: The tables.
        conclusion: The program's conclusion on the steps.
    """
    whole = steps.total("step_ns")
    common = (
        Fact("basis", "basis", name),
        Fact("step_ns", "step time", whole, "ns"),
        Fact("steps", "steps", steps.count, "count"),
    )
    in_words = f"time of {counted(steps.count, 'step')} by the rules of {name} ({format_ns(whole)})"
    timed = totals.filter(pl.col("total_ns") > 0)[["class", "label", "total_ns", "share_of_step"]]
    bars = tuple(Bar(*total) for total in timed.iter_rows())
    return (
        Facts((*common, *facts), audience="machine"),
        Prose(f"Classes by the rules of {remark}"),
        Bars("Step time", in_words, "ns", bars),
        *grids,
        Prose(conclusion),
    )
