"""Predictions of the steps without each of their largest causes."""

from __future__ import annotations

from dataclasses import dataclass

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.capture.predictions import predictions
from traceviz.analyses.derived.capture.replay import recorded_graph
from traceviz.analyses.derived.capture.speedups import Prediction, WhatIf, describe_speedup
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.view import TraceView
from traceviz.core.units import format_ns
from traceviz.report import Block, Column, Fact, Facts, Grid, Prose, Section, Skipped

HOW = (
    "Each row: the mean steady step if the time of the cause vanished. The long end keeps every delay that no recorded "
    "dependency explains, and 15 % of the gain (25 % for communication). In the short end the whole time of the cause "
    "is gained, for causes other than input a little more, and waits in collectives whose ranks cannot be matched."
)
ON_CORES = (
    "Without a device, the cause and the rest of the program may share cores, which no event shows. So the gain has no "
    "upper bound."
)


@dataclass(frozen=True, slots=True)
class WhatIfAnalysis(Analysis[WhatIf]):
    """Intervals of step time without a cause, from a replay of the recorded dependencies."""

    slug = "what_if"
    title = "What if a cause vanished"

    def run(self, trace: TraceView) -> WhatIf | Skipped:
        """Predict for the largest causes of the steady steps."""
        if not steady_time(trace):
            return self.skipped("no steady steps were found")
        found = predictions(trace)
        if not found:
            return self.skipped("no cause with a recorded event takes much of the steps")
        graph = recorded_graph(trace)
        replayed, steady = (graph.steps.height, graph.all_steps) if graph is not None else (0, 0)
        return WhatIf(found, found[0].step_ns, replayed, steady, bool(trace.rank_busy))

    def describe(self, result: WhatIf) -> Section:
        """Describe the predictions, the greatest possible gain first."""
        some = result.replayed if result.replayed < result.steady else None
        facts = (
            Fact("step_ns", "mean steady step", round(result.step_ns), "ns"),
            *((Fact("replayed", "steps replayed", some, "count"),) if some is not None else ()),
        )
        columns = (
            Column("label", "Without", "text", 0),
            Column("step_range", "Step", "text", 0),
            Column("as_fast", "As fast", "text", 0),
            Column("share_of_steps", "Of steps", "ratio", 2, bar=True, additive=False),
            Column("not_proven", "Not proven because", "text", 9),
            Column("part", "Part", "text", 9),
            Column("step_ns", "Step", "ns", 9),
            Column("low_ns", "At least", "ns", 9),
            Column("high_ns", "At most", "ns", 9),
            Column("low_speedup", "Speed-up at least", "factor", 9),
            Column("high_speedup", "Speed-up at most", "factor", 9),
        )
        rows = tuple(_row(prediction) for prediction in result.found)
        how = HOW if result.has_device else f"{HOW} {ON_CORES}"
        labels: dict[str, list[str]] = {}
        for prediction in result.found:
            if prediction.reason:
                labels.setdefault(prediction.reason, []).append(prediction.label)
        unproven = (Prose(f"No gain is proven for {', '.join(of)}: {reason}.") for reason, of in labels.items())
        blocks: tuple[Block, ...] = (Facts(facts), Grid(columns, rows), *unproven, Prose(how))
        return Section(self.slug, self.title, blocks)


def _row(prediction: Prediction) -> tuple[str | int | float | None, ...]:
    low_ns, high_ns = round(prediction.low_ns), round(prediction.high_ns)
    words = f"{format_ns(low_ns)} to {format_ns(high_ns)}" if low_ns else f"at most {format_ns(high_ns)}"
    return (
        *(prediction.label, words, describe_speedup(prediction.low, prediction.high)),
        *(prediction.share, prediction.reason or None, prediction.key),
        *(round(prediction.step_ns), low_ns, high_ns, prediction.low, prediction.high),
    )
