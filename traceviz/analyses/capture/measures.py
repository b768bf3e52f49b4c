"""Figures of the whole run, which a study compares in addition to its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis, known
from traceviz.analyses.capture.measure import KINDS, Measure
from traceviz.analyses.capture.times import Batch, batch_of, measures_of_time
from traceviz.analyses.capture.usage import measures_of_use
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import format_signal, format_value
from traceviz.report import MEASURES, Column, Fact, Facts, Grid, Section, Skipped

_OUTCOMES = frozenset({"finished", "failed", "killed", "interrupted", "timed-out"})
"""Possible ends of a program."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of the program.

    Args:
        key: One of :data:`_OUTCOMES`; ``None`` if it is not known.
        reason: Text that gives the reason of a failure.
        code: Its exit code.
        signal: The signal that ended it.
    """

    key: str | None = None
    reason: str | None = None
    code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class RunMeasures:
    """All measured figures in the order of :data:`KINDS`, the end of the program, and the samples of a step."""

    measures: tuple[Measure, ...]
    outcome: Outcome
    batch: Batch | None


@dataclass(frozen=True, slots=True)
class MeasuresAnalysis(Analysis[RunMeasures]):
    """Total time, epochs, samples per second, latency, energy and memory, as far as they were measured."""

    slug = "measures"
    title = "The whole run in figures"

    def run(self, trace: TraceView) -> RunMeasures | Skipped:
        """Collect each figure from its source."""
        rows = trace.frame("settings", "key", "value", "process_id").filter(pl.col("process_id").is_null())
        stated = dict(rows.select(pl.col("key", "value").cast(pl.String)).drop_nulls().iter_rows())
        outcome, batch = _outcome(stated), batch_of(trace, stated)
        found = (*measures_of_time(trace, stated, outcome.key, batch), *measures_of_use(trace, batch))
        if not found and outcome.key is None:
            return self.skipped("nothing of the whole run was measured")
        order = list(KINDS)
        return RunMeasures(tuple(sorted(found, key=lambda measure: order.index(measure.key))), outcome, batch)

    def describe(self, result: RunMeasures) -> Section:
        """Describe the figures for readers, and in base units."""
        outcome, batch = result.outcome, result.batch
        facts = (
            Fact("outcome", "the program", outcome.key),
            Fact("reason", "because", outcome.reason),
            Fact("exit_code", "exit code", outcome.code, "id"),
            Fact("signal", "signal", outcome.signal, "id"),
            Fact("batch", "samples of a step", None if batch is None else batch.size, "number"),
        )
        for_people = tuple(
            (m.kind.label, format_value(m.value, m.kind.unit), _interval(m), m.about) for m in result.measures
        )
        ended_well = outcome.key == "finished"
        shown = known(fact for fact in facts if fact.key in {"outcome", "reason"} and not ended_well)
        rest = tuple(fact for fact in facts if fact not in shown)
        rows = tuple(
            (
                *(m.key, m.kind.label, m.value, m.kind.unit, m.kind.better),
                *(m.count, *(m.interval or (None, None)), m.about),
            )
            for m in result.measures
        )
        blocks = (
            *((Facts(shown),) if shown else ()),
            Facts(rest, audience="machine"),
            Grid(_COLUMNS, rows, MEASURES, audience="machine", complete=True),
            *((Grid(_FOR_PEOPLE, for_people, complete=True),) if for_people else ()),
        )
        return Section(self.slug, self.title, blocks)


def _outcome(stated: Mapping[str, str]) -> Outcome:
    """Return the end of the program as the manifest of the run states it."""
    code, signal = (_whole(stated.get(f"run.exit.{key}")) for key in ("code", "signal"))
    key = stated.get("run.ending.outcome") or stated.get("run.status")
    if key not in _OUTCOMES:
        return Outcome(None, None, code, signal)
    reason = stated.get("run.ending.reason")
    if reason is None and key != "finished":
        reason = format_signal(signal) if signal else None if code is None else f"exit code {code}"
    return Outcome(key, reason or None, code, signal)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 9 else None


_COLUMNS = (
    Column("key", "Key"),
    Column("label", "Measure"),
    Column("value", "Value", "number"),
    Column("unit", "Unit"),
    Column("better", "Better"),
    Column("count", "Observations", "count"),
    Column("low", "Low", "number"),
    Column("high", "High", "number"),
    Column("about", "About"),
)

_FOR_PEOPLE = (
    Column("label", "Measure", importance=0),
    Column("shown", "Value", importance=0),
    Column("interval", "95 % interval", importance=2, shorten=False, restates=True),
    Column("about", "About", importance=1),
)


def _interval(measure: Measure) -> str | None:
    """Format an interval as ``1.20 to 1.31 s``, with the unit once if it is the same."""
    if measure.interval is None:
        return None
    low, high = (format_value(end, measure.kind.unit) for end in measure.interval)
    shared = next(
        (unit for unit in (" ns", " µs", " ms", " s", "/s") if low.endswith(unit) and high.endswith(unit)), ""
    )
    return f"{low.removesuffix(shared)} to {high}"
