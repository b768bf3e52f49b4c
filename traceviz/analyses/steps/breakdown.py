"""Step time in exclusive classes that add up to the step exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.capture.kind import nothing_says_what_lanes_are
from traceviz.analyses.derived.capture.step_words import why_no_steps
from traceviz.analyses.derived.host.classes import CLASSES, LABELS, measured, sees_host, step_classes
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.statistics import frame_grid
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import OURS, check_basis
from traceviz.analyses.steps.bases.section import BasisSteps
from traceviz.core.units import counted, format_ns
from traceviz.report import BY_STEP, Bar, Bars, Block, Column, Fact, Facts, Grid, Prose, Section, Skipped


@dataclass(frozen=True)
class Breakdown:
    """Time per class in nanoseconds over the steady steps of all ranks.

    Args:
        by_step: ``step``, ``process``, ``dur_ns`` and a column per class, for every steady step.
        measured: Keys of the classes that the capture could see.
        host_only: True if a framework ran on the host alone, so that nothing of a device is missing.
        ranks: Number of ranks with these steps.
        host_seen: True if the capture holds any events of the host.
    """

    by_step: pl.DataFrame
    measured: frozenset[str]
    host_only: bool = False
    ranks: int = 1
    host_seen: bool = True

    @cached_property
    def times(self) -> dict[str, int]:
        """Time by key of the class."""
        return {key: int(self.by_step[key].sum()) for key in LABELS}

    @property
    def labels(self) -> dict[str, str]:
        """Special label for the rest of the classes, if it needs one."""
        if self.host_only:
            return {"host_compute": ON_HOST}
        return {} if self.host_seen else {"host_compute": NOT_SEEN}

    @property
    def steps(self) -> int:
        """Number of steady steps."""
        return self.by_step.height

    @property
    def step_ns(self) -> int:
        """All steady step time: the sum of the classes."""
        return sum(self.times.values())


@dataclass(frozen=True, slots=True)
class BreakdownAnalysis(Analysis[Breakdown | BasisSteps]):
    """Exclusive classes of steady step time, by the priority of :data:`traceviz.analyses.derived.host.classes.CLASSES`.

    With ``--basis``, the classes are those of another program (:mod:`traceviz.analyses.steps.bases.xprof` and
    :mod:`traceviz.analyses.steps.bases.kineto`).
    """

    slug = "breakdown"
    title = "Step time breakdown"

    def run(self, trace: TraceView) -> Breakdown | BasisSteps | Skipped:
        """Overlap the classes with the steady steps.

        Raises:
            UsageError: the options name a basis that does not exist.
        """
        basis = trace.options.basis
        check_basis(basis)
        if basis != OURS:
            from traceviz.analyses.steps.bases.others import steps_by  # noqa: PLC0415 (few ask for another basis)

            steps = steps_by(basis, trace)
            return self.skipped(steps) if isinstance(steps, str) else steps
        if not steady_time(trace):
            return self.skipped(f"{why_no_steps(trace)[0]}, so there is no step time to break down")
        if nothing_says_what_lanes_are(trace):
            return self.skipped("nothing says what its lanes are")
        host_only = "host_ops" in trace.tables and not trace.has_device_tables and not trace.tables.rows("devices")
        ranks = len(steady_time(trace))
        return Breakdown(step_classes(trace), measured(trace), host_only, ranks, host_seen=sees_host(trace))

    def describe(self, result: Breakdown | BasisSteps) -> Section:
        """Describe one stacked bar, and the table behind it."""
        if not isinstance(result, Breakdown):
            from traceviz.analyses.steps.bases.others import blocks_of  # noqa: PLC0415 (few ask for another basis)

            return Section(self.slug, self.title, blocks_of(result))
        total = result.step_ns
        times = result.times
        labels = {**LABELS, **result.labels}
        shown = [(c.key, labels[c.key], times[c.key]) for c in CLASSES if c.key in result.measured or times[c.key]]
        bars = tuple(Bar(key, label, time, time / total if total else 0.0) for key, label, time in shown)
        columns = (
            Column("class", "Class", "text", 0),
            Column("total_ns", "Total", "ns", 0, additive=True),
            Column("share_of_step", "Of step time", "ratio", 0, bar=True),
            Column("per_step_ns", "Per step", "ns", 1),
        )
        rows = tuple((bar.key, bar.value, bar.share, round(times[bar.key] / result.steps)) for bar in bars)
        of_ranks = f" of {result.ranks:,} ranks" if result.ranks > 1 else ""
        whole = f"time of {counted(result.steps, 'steady step')}{of_ranks} ({format_ns(total)})"
        facts = (Fact("basis", "basis", OURS), Fact("step_ns", "steady step time", total, "ns"))
        by_step = (  # which comparisons resample
            Column("step", "Step", "id", 0),
            Column("process", "Process", "id", 2),
            Column("dur_ns", "Duration", "ns", 0, additive=True),
            *(Column(bar.key, bar.label, "ns", 1) for bar in bars),
        )
        blocks: list[Block] = [
            Facts(facts, audience="machine"),
            Bars("Step time", whole, "ns", bars),
            Grid(columns, rows, audience="machine"),
            frame_grid(by_step, result.by_step, BY_STEP, audience="machine"),
        ]
        seen = {*result.measured, *(bar.key for bar in bars if bar.value)}
        seen |= {"input_wait", "profiler", "parameter_transfer"}
        unseen = [LABELS[c.key] for c in CLASSES if c.key not in seen]
        if result.host_only:
            blocks.append(Prose(f"No device was captured: {ON_HOST} is the program's own work."))
        elif unseen:
            blocks.append(Prose(f"Not recorded by this capture: {', '.join(unseen)}."))
        return Section(self.slug, self.title, tuple(blocks))


ON_HOST = "host compute"
"""Label for the rest of the classes if a framework ran on the host alone."""
NOT_SEEN = "device idle, host not recorded"
"""Label for the rest of the classes if the capture holds device work only, so that the host's work is not known."""
