"""Several ranks side by side: step times, arrivals at collectives, and who keeps the others waiting.

In synchronised training all ranks have the same step time, whoever is slow: the others wait for it in the collectives.
So a rank is judged by its *own time*, its step time without waiting in collectives; the slow one waits the least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

import polars as pl

from traceviz.analyses.base import WARNING_SHARE, Analysis, finding
from traceviz.analyses.derived.frames import intervals
from traceviz.analyses.derived.host_classes import CLASS_TABLES, LABELS, host_classes
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.rank_names import rank_numbers, stated_ranks, world_sizes
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.step_search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import Skew, collective_skew, host_collectives, host_communication
from traceviz.analyses.ranks.stragglers import LEAST_RANKS, StepImbalance, modified_scores, step_imbalance
from traceviz.intervals import IntervalSet
from traceviz.report import Audience, Block, Column, Fact, Facts, Finding, Grid, Prose, Section, Skipped
from traceviz.units import counted, format_ns, format_ratio


@dataclass(frozen=True, slots=True)
class RankTimes:
    """One rank; times in nanoseconds within its judged time, unless said otherwise.

    Args:
        rank: Its number.
        process_id: Its process.
        steps: Steady steps.
        median_step_ns, mean_step_ns: Their duration; ``None`` without steps.
        judged_ns: Steady step time, else from its first to its last device work.
        classes: Time of each class of step time; they add up to ``judged_ns``.
        busy_ns: Time in which a device works for it; ``None`` where the capture could record none.
        wait_ns: Time in which it waits in collectives for other ranks and computes nothing; ``None`` where its
            collectives could not be compared.
        arrivals: Collectives compared, in the whole capture.
        median_skew_ns: Median of its arrival after the first rank's.
        last: Collectives at which it arrived last.
        kernels: Kernels in the whole capture; ``None`` where it could record none.
        api_ns: Time in which any thread is in a CUDA call; ``None`` where none were recorded.
    """

    rank: int
    process_id: int
    steps: int
    median_step_ns: float | None
    mean_step_ns: float | None
    judged_ns: int
    classes: Mapping[str, int]
    busy_ns: int | None
    wait_ns: int | None
    arrivals: int
    median_skew_ns: float | None
    last: int
    kernels: int | None
    api_ns: int | None

    @property
    def rounds(self) -> int:
        """Steps, or 1 where there are none and the judged time is taken as a whole."""
        return self.steps or 1

    @property
    def device_compute_ns(self) -> int | None:
        """Time in which a device computes for it; ``None`` where the capture could record none."""
        return None if self.busy_ns is None else self.classes["device_compute"]

    @property
    def communication_ns(self) -> int | None:
        """Time in which it communicates and computes nothing; ``None`` where none was recorded."""
        return self.classes["communication"] if self.busy_ns is not None or self.classes["communication"] else None

    def share(self, part: int | None) -> float | None:
        """``part`` as a share of its judged time."""
        return None if part is None else ratio(part, self.judged_ns)


@dataclass(frozen=True, slots=True)
class RanksResult:
    """All ranks.

    Args:
        ranks: In the order of their numbers.
        own_ns: Own time of each rank per step: judged time without waiting in collectives, or ``None``.
        scores: Modified z-score of each own time.
        worlds: Numbers of ranks of the job that the traces state.
        imbalance: The ranks' steps side by side.
        skew: Their collectives side by side.
        compared: Whether the collectives of all ranks could be compared.
        judged_words: What the judged time is, in words.
    """

    ranks: tuple[RankTimes, ...]
    own_ns: tuple[float | None, ...]
    scores: tuple[float, ...]
    worlds: tuple[int, ...]
    imbalance: StepImbalance
    skew: Skew
    compared: bool
    judged_words: str

    @property
    def judged_ns(self) -> int:
        """Mean of the ranks' judged times: findings are about the time of the job, not about the sum over ranks.

        Ranks without judged time, such as those that mark no steps while others do, do not count.
        """
        return _mean([rank.judged_ns for rank in self.ranks if rank.judged_ns])

    @property
    def wait_ns(self) -> int:
        """Mean of the waits of the ranks with judged time."""
        return _mean([rank.wait_ns or 0 for rank in self.ranks if rank.judged_ns])


@dataclass(frozen=True, slots=True)
class RanksAnalysis(Analysis[RanksResult]):
    """Ranks of one job: imbalance of their steps, skew of their arrivals, stragglers.

    Args:
        straggler_score: Above this modified z-score of its own time (of three ranks or more), a rank is a straggler,
        straggler_share: provided that at least this share of the judged time could be saved.
        spread_floor: Spread of own times, as a share of their median, that is normal between equal ranks.
        imbalance_share: An excess of the slowest rank's median step over the median rank's is a finding from here on.
        late_share: Waiting in collectives from this share of the judged time on is a finding.
        tolerance: Collectives whose ends differ by more than this share of the time between them are not compared.
    """

    slug: ClassVar[str] = "ranks"
    title: ClassVar[str] = "Ranks"
    needs: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = (*CLASS_TABLES, "collectives", "settings")
    rules: ClassVar[tuple[str, ...]] = ("TV501", "TV502", "TV503")
    expected: ClassVar[bool] = False

    straggler_score: float = 3.5
    straggler_share: float = 0.02
    spread_floor: float = 0.01
    imbalance_share: float = WARNING_SHARE
    late_share: float = WARNING_SHARE
    tolerance: float = 0.1

    def run(self, trace: TraceView) -> RanksResult | Skipped:
        """Put the ranks side by side."""
        numbers = rank_numbers(trace)
        if len(numbers) < 2:
            return self.skipped("the capture is of a single rank")
        if not (trace.rank_busy or stated_ranks(trace) or host_collectives(trace).height):
            return self.skipped("the processes use no devices, and nothing says that they are ranks of one job")
        skew = collective_skew(trace, self.tolerance)
        ranks = tuple(
            _rank_times(trace, process, numbers[process], skew)
            for process in sorted(numbers, key=lambda p: (numbers[p], p))
        )
        compared = all(rank.wait_ns is not None for rank in ranks)
        own = tuple(_own_ns(rank, compared=compared) for rank in ranks)
        known = iter(modified_scores([time for time in own if time is not None], self.spread_floor))
        return RanksResult(
            ranks=ranks,
            own_ns=own,
            scores=tuple(0.0 if time is None else next(known) for time in own),
            worlds=world_sizes(trace),
            imbalance=step_imbalance(training_steps(trace)),
            skew=skew,
            compared=compared,
            judged_words=judged_words(trace),
        )

    def judge(self, result: RanksResult) -> tuple[Finding, ...]:
        """Stragglers, unequal steps, and waiting for late ranks."""
        return (*self._straggler(result), *self._imbalance(result), *self._late(result))

    def _straggler(self, result: RanksResult) -> tuple[Finding, ...]:
        worst = max(range(len(result.ranks)), key=lambda place: result.scores[place])
        rank, score, own = result.ranks[worst], result.scores[worst], result.own_ns[worst]
        if own is None or score <= self.straggler_score:
            return ()
        others = median(time for place, time in enumerate(result.own_ns) if place != worst and time is not None)
        cost = _straggler_cost(result, worst, (own - others) * rank.rounds)
        if cost < self.straggler_share * result.judged_ns:
            return ()
        unit = "per step" if rank.steps else "in all"
        key, excess = _excess(result, rank)
        more = sum(other > self.straggler_score for other in result.scores) - 1
        message = (
            f"Rank {rank.rank} needs {format_ns(round(own))} {unit} for its own work, the others "
            f"{format_ns(round(others))} (median). Most of the difference is {LABELS[key]} "
            f"({format_ns(excess)} {unit})."
        )
        message += f" {counted(more, 'more rank')} stand out, too." if more else ""
        evidence = (
            Fact("rank", "rank", rank.rank, "id"),
            Fact("own_ns", f"its own time {unit}", round(own), "ns"),
            Fact("others_ns", f"median of the others' {unit}", round(others), "ns"),
            Fact("score", "modified z-score", round(score, 1), "number"),
            Fact("wait_ns", "its waiting in collectives", rank.wait_ns, "ns"),
            Fact("mean_wait_ns", "mean waiting of all ranks", result.wait_ns if result.compared else None, "ns"),
            Fact("cause", "most of the difference", LABELS[key]),
        )
        return (finding("TV501", message, evidence, cost, result.judged_ns, f"{result.judged_words} of a rank"),)

    def _imbalance(self, result: RanksResult) -> tuple[Finding, ...]:
        share = result.imbalance.share
        if share is None or share < self.imbalance_share:
            return ()
        timed = [rank for rank in result.ranks if rank.median_step_ns is not None]
        slowest = max(timed, key=lambda rank: rank.median_step_ns or 0)
        middle = median(rank.median_step_ns or 0 for rank in timed)
        message = (
            f"The median step of rank {slowest.rank} takes {format_ns(round(slowest.median_step_ns or 0))}, "
            f"{format_ratio(share)} longer than that of the median rank ({format_ns(round(middle))})."
        )
        evidence = (
            Fact("rank", "slowest rank", slowest.rank, "id"),
            Fact("slowest_factor", "its median step, of the median rank's", 1 + share, "factor"),
            Fact("lost_ns", "slowest rank less the mean, summed over steps", result.imbalance.lost_ns, "ns"),
        )
        cost = result.imbalance.lost_ns
        return (finding("TV502", message, evidence, cost, result.judged_ns, f"{result.judged_words} of a rank"),)

    def _late(self, result: RanksResult) -> tuple[Finding, ...]:
        cost = result.wait_ns
        if not cost or cost < self.late_share * result.judged_ns:
            return ()
        last = max(result.ranks, key=lambda rank: rank.last)
        message = (
            f"Ranks wait for one another in collectives for {format_ratio(cost / result.judged_ns)} of the "
            f"{result.judged_words}, and compute nothing meanwhile; rank {last.rank} arrives last at {last.last:,} of "
            f"{counted(last.arrivals, 'collective')}."
        )
        evidence = (
            Fact("wait_ns", "waiting, mean over ranks", cost, "ns"),
            Fact("rank", "rank that arrives last most often", last.rank, "id"),
            Fact("last", "collectives at which it is last", last.last, "count"),
            Fact("collectives", "collectives compared", result.skew.collectives, "count"),
        )
        return (finding("TV503", message, evidence, cost, result.judged_ns, f"{result.judged_words} of a rank"),)

    def describe(self, result: RanksResult) -> Section:
        """How many ranks there are, one row per rank, and what could be compared."""
        imbalance = result.imbalance
        slowest = None if imbalance.share is None else 1 + imbalance.share
        lost = imbalance.lost_ns if imbalance.steps.height else None
        facts = (
            Fact("count", "ranks captured", len(result.ranks), "count"),
            Fact("world_size", "ranks of the job", result.worlds[0] if len(result.worlds) == 1 else None, "count"),
            Fact("slowest_factor", "slowest rank's step / median", slowest, "factor"),
            Fact("lost_ns", "lost to unequal steps", lost, "ns"),
            Fact("collectives", "collectives compared", result.skew.collectives, "count"),
            Fact("wait_ns", "waiting in them, mean", result.wait_ns if result.compared else None, "ns"),
        )
        known = tuple(fact for fact in facts if fact.value is not None)
        unknown = Facts(tuple(fact for fact in facts if fact.value is None), audience="machine")
        blocks: list[Block] = [Facts(known), unknown, _times_grid(result), _arrivals_grid(result)]
        blocks += [_collectives_grid(result), _steps_grid(result)]
        blocks += [Prose(text) for text in _cautions(result)]
        return Section(self.slug, self.title, tuple(blocks))


def _rank_times(trace: TraceView, process: int, number: int, skew: Skew) -> RankTimes:
    judged = judged_time(trace, process)
    sets = _classes(trace, process)
    steps = training_steps(trace).steady.filter(pl.col("process_id") == process)
    durations = steps["end_ns"] - steps["start_ns"]
    arrivals = skew.arrivals.filter(pl.col("process_id") == process)
    kernels = trace.frame("kernels", "process_id")
    calls = trace.frame("cuda_api", "start_ns", "dur_ns", "process_id").filter(pl.col("process_id") == process)
    return RankTimes(
        rank=number,
        process_id=process,
        steps=steps.height,
        median_step_ns=_number(durations.median()),
        mean_step_ns=_number(durations.mean()),
        judged_ns=judged.total,
        classes={key: owned.intersect(judged).total for key, owned in sets.items()},
        busy_ns=trace.rank_busy[process].intersect(judged).total if process in trace.rank_busy else None,
        wait_ns=_exposed_wait(arrivals, sets["communication"].intersect(judged)) if arrivals.height else None,
        arrivals=arrivals.height,
        median_skew_ns=_number(arrivals["skew_ns"].median()),
        last=int(arrivals["last"].sum()),
        kernels=int((kernels["process_id"] == process).sum()) if "kernels" in trace.tables else None,
        api_ns=intervals(calls).intersect(judged).total if "cuda_api" in trace.tables else None,
    )


def _classes(trace: TraceView, process: int) -> dict[str, IntervalSet]:
    """Classes of step time; where no device works for the rank, collectives of the host count as communication."""
    sets = host_classes(trace)[process].sets
    alone = host_communication(trace, process).intersect(sets["host_compute"])
    if not len(alone):
        return sets
    return {**sets, "communication": alone, "host_compute": sets["host_compute"].subtract(alone)}


def _mean(values: Sequence[int]) -> int:
    return round(sum(values) / len(values)) if values else 0


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _exposed_wait(arrivals: pl.DataFrame, alone: IntervalSet) -> int:
    """Time at the begin of the collectives, as long as the wait, in which communication runs and nothing computes."""
    starts = arrivals["start_ns"].to_numpy()
    return IntervalSet.of(starts, starts + arrivals["wait_ns"].to_numpy()).intersect(alone).total


def _own_ns(rank: RankTimes, *, compared: bool) -> float | None:
    """Judged time per step without waiting; if the waiting of a rank is unknown, without exposed communication."""
    away = (rank.wait_ns or 0) if compared else rank.classes["communication"]
    return (rank.judged_ns - away) / rank.rounds if rank.judged_ns else None


def _straggler_cost(result: RanksResult, place: int, slower_ns: float) -> int:
    """What the job gains at most if the rank is no longer slower than the others: no more than these wait."""
    waits = [rank.wait_ns or 0 for at, rank in enumerate(result.ranks) if at != place and rank.judged_ns]
    return round(min(slower_ns, _mean(waits)) if result.compared else slower_ns)


def _excess(result: RanksResult, rank: RankTimes) -> tuple[str, int]:
    """The class whose time per step exceeds the median of the other ranks most, and by how much."""
    others = [other for other in result.ranks if other is not rank]
    excess = {
        key: time / rank.rounds - median(other.classes[key] / other.rounds for other in others)
        for key, time in rank.classes.items()
        if key != "communication"
    }
    key = max(excess, key=lambda name: excess[name])
    return key, round(excess[key])


# Grids


def _times_grid(result: RanksResult) -> Grid:
    scored = len(result.ranks) >= LEAST_RANKS
    columns = (
        Column("rank", "Rank", "id", 0),
        Column("steps", "Steps", "count", 3),
        Column("median_step_ns", "Step, median", "ns", 0),
        Column("mean_step_ns", "Step, mean", "ns", 4),
        Column("own_ns", "Own time", "ns", 0),
        Column("busy_share", "Device busy", "ratio", 1),
        Column("compute_share", "Compute", "ratio", 2),
        Column("communication_share", "Exposed comm.", "ratio", 1),
        Column("input_share", "Input wait", "ratio", 1),
        Column("slowest", "Slowest in", "count", 3),
        Column("score", "Score", "number", 3 if scored else 9),
        Column("kernels", "Kernels", "count", 4),
        Column("api_ns", "In CUDA calls", "ns", 5),
        Column("judged_ns", "Judged time", "ns", 5),
    )
    rows = tuple(
        (
            *(rank.rank, rank.steps, rank.median_step_ns, rank.mean_step_ns, None if own is None else round(own)),
            *(rank.share(rank.busy_ns), rank.share(rank.device_compute_ns), rank.share(rank.communication_ns)),
            rank.share(rank.classes["input_wait"]),
            result.imbalance.slowest(rank.process_id) if result.imbalance.steps.height else None,
            *(score if scored else None, rank.kernels, rank.api_ns, rank.judged_ns),
        )
        for rank, own, score in zip(result.ranks, result.own_ns, result.scores, strict=True)
    )
    without = "waiting in collectives" if result.compared else "exposed communication"
    return Grid(columns, rows, f"Own time: per step, without {without}; shares of {result.judged_words}")


def _arrivals_grid(result: RanksResult) -> Grid:
    columns = (
        Column("rank", "Rank", "id", 0),
        Column("collectives", "Collectives", "count", 1),
        Column("median_skew_ns", "Skew, median", "ns", 0),
        Column("last", "Last at", "count", 0),
        Column("wait_ns", "Waits", "ns", 0),
        Column("wait_share", "Of its time", "ratio", 1, bar=True),
        Column("clock_ns", "Clock ahead", "ns", 2),
    )
    rows = tuple(
        (
            *(rank.rank, rank.arrivals, rank.median_skew_ns, rank.last, rank.wait_ns),
            rank.share(rank.wait_ns),
            result.skew.clock_ns.get(rank.process_id),
        )
        for rank in result.ranks
    )
    audience: Audience = "all" if result.skew.collectives else "machine"
    return Grid(columns, rows, "Arrivals at collectives (skew: after the first rank)", audience=audience)


def _collectives_grid(result: RanksResult) -> Grid:
    """Collectives by group and name; for machines where there is only one."""
    columns = (
        Column("name", "Collective", "text", 0),
        Column("group", "Group", "text", 1),
        Column("calls", "Calls", "count", 1),
        Column("transfer_ns", "Transfer", "ns", 0),
        Column("wait_ns", "Waiting, summed over ranks", "ns", 0),
        Column("median_skew_ns", "Last after first, median", "ns", 1),
    )
    instances = result.skew.arrivals.group_by("group", "name", "index").agg(
        pl.col("transfer_ns").first(), pl.col("wait_ns").sum(), pl.col("skew_ns").max()
    )
    grouped = instances.group_by("group", "name").agg(
        pl.len().alias("calls"),
        pl.col("transfer_ns", "wait_ns").sum(),
        pl.col("skew_ns").median().alias("median_skew_ns"),
    )
    ordered = grouped.sort("wait_ns", "group", "name", descending=[True, False, False])
    rows = tuple(ordered.select(column.name for column in columns).iter_rows())
    audience: Audience = "all" if len(rows) > 1 else "machine"
    return Grid(columns, rows, "By collective", audience=audience)


def _steps_grid(result: RanksResult) -> Grid:
    numbers = {rank.process_id: rank.rank for rank in result.ranks}
    columns = (
        Column("step", "Step", "id", 0),
        Column("slowest", "Slowest rank", "id", 0),
        Column("max_ns", "Slowest", "ns", 0),
        Column("mean_ns", "Mean", "ns", 0),
    )
    steps = result.imbalance.steps.select("step", "slowest", "max_ns", "mean_ns").iter_rows()
    rows = tuple((step, numbers[slowest], longest, mean) for step, slowest, longest, mean in steps)
    return Grid(columns, rows, "Steps that all ranks have", audience="machine")


def _cautions(result: RanksResult) -> list[str]:
    """What the figures leave open, and how clocks were aligned."""
    captured, skew, cautions = len(result.ranks), result.skew, []
    if len(result.worlds) > 1:
        sizes = ", ".join(f"{size:,}" for size in result.worlds)
        cautions.append(f"The traces state different numbers of ranks ({sizes}): they may not be of one job.")
    elif result.worlds and result.worlds[0] > captured:
        cautions.append(
            f"{captured} of {result.worlds[0]:,} ranks were captured: the others may arrive later, or wait longer."
        )
    if skew.collectives:
        cautions.append(
            "Clocks of the ranks were aligned on the ends of their collectives. Transfer is the shortest duration over "
            "the ranks; what a rank is longer in a collective is its wait."
        )
    if skew.unequal:
        cautions.append(
            f"Of {counted(skew.unequal, 'kind')} of collective the ranks recorded different numbers; as many "
            "as all have were compared."
        )
    if skew.unaligned:
        late = ", ".join(str(rank.rank) for rank in result.ranks if rank.process_id in skew.unaligned)
        cautions.append(
            f"Collectives do not end together with those of the other ranks, and were not compared: rank {late}."
        )
    if skew.ambiguous:
        cautions.append(f"{counted(skew.ambiguous, 'process group')} with more ranks than members: not compared.")
    if not (skew.arrivals.height or skew.point_to_point or skew.unaligned):
        cautions.append(
            "No collectives that several ranks have in common were recorded: who waits for whom is not known."
        )
    if skew.point_to_point and not skew.collectives:
        cautions.append("Transfers between two ranks (send, receive) are not compared: each has a partner of its own.")
    return cautions
