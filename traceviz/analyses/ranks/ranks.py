"""Several ranks side by side: step times, arrivals at collectives, and ranks that keep the others waiting.

In synchronised training all ranks have the same step time, because fast ones wait for slow ones in the collectives. So
a rank is judged by its *own time*, its step time without waiting in collectives. A slow rank waits the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from traceviz.analyses.base import Analysis, by_knowledge, finding
from traceviz.analyses.derived.device.names import rank_numbers, world_sizes
from traceviz.analyses.derived.judged_time import judged_words
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.excess import causes_of_ranks, largest_excess, lines_of_ranks
from traceviz.analyses.ranks.lateness import find_shared_lateness
from traceviz.analyses.ranks.rank_grids import arrivals_grid, cautions, collectives_grid, steps_grid, times_grid
from traceviz.analyses.ranks.rank_times import RanksResult, RankTimes, mean, rank_times
from traceviz.analyses.ranks.stragglers import find_rounds, modified_scores, step_imbalance
from traceviz.analyses.ranks.waits import are_ranks, find_waits
from traceviz.core.lazy_module import Later
from traceviz.core.units import counted, format_ns, format_ratio
from traceviz.report import Fact, Finding, Prose, Section, Skipped
from traceviz.report.findings.record import WARNING_SHARE
from traceviz.report.findings.registry import record_of

if TYPE_CHECKING:
    from traceviz.report.findings import tv503_late_collectives as tv503
else:
    tv503 = Later("traceviz.report.findings.tv503_late_collectives")


@dataclass(frozen=True, slots=True)
class RanksAnalysis(Analysis[RanksResult]):
    """Ranks of one job: imbalance of their steps, skew of their arrivals, stragglers.

    Args:
        straggler_score: Above this modified z-score of its own time (of three ranks or more), a rank is a straggler,
        straggler_share: provided that at least this share of the judged time could be saved.
        spread_floor: Spread of own times, as a share of their median, that is normal between equal ranks.
        imbalance_share: Least excess of the slowest rank's median step over the median rank's for a finding.
        late_share: Waiting in collectives is a finding from this share of the judged time on;
        blame_share: the finding names a rank if its own time exceeds the median of the others by more than this share,
        blame_wait: provided that this explains at least this part of the others' waiting. Else they take turns at being
            late.
        tolerance: Collectives whose ends differ by more than this share of the time between them are not compared.
    """

    slug = "ranks"
    title = "Ranks"
    rules = ("TV501", "TV502", "TV503")

    straggler_score: float = 3.5
    straggler_share: float = 0.02
    spread_floor: float = 0.01
    imbalance_share: float = WARNING_SHARE
    late_share: float = WARNING_SHARE
    blame_share: float = 0.02
    blame_wait: float = 0.5
    tolerance: float = 0.1

    def run(self, trace: TraceView) -> RanksResult | Skipped:
        """Compare the ranks."""
        numbers = rank_numbers(trace)
        if len(numbers) < 2:
            return self.skipped("the capture is of a single rank")
        if not are_ranks(trace):
            return self.skipped("the processes use no devices, and nothing says that they are ranks of one job")
        ordered = sorted(numbers.items(), key=lambda item: (item[1], item[0]))
        found = find_waits(trace, self.tolerance)
        skew, compared, waits = found.skew, found.compared, found.of_ranks
        ranks = tuple(rank_times(trace, process, number, skew, waits[process]) for process, number in ordered)
        own_ns = tuple(rank.own_ns for rank in ranks)
        lateness = find_shared_lateness(find_rounds(trace), waits) if compared else None
        known = iter(modified_scores([time for time in own_ns if time is not None], self.spread_floor))
        return RanksResult(
            ranks=ranks,
            own_ns=own_ns,
            scores=tuple(0.0 if time is None else next(known) for time in own_ns),
            worlds=world_sizes(trace),
            imbalance=step_imbalance(find_rounds(trace), {process: own.away for process, own in waits.items()}),
            skew=skew,
            compared=compared,
            causes=causes_of_ranks(trace),
            lines=lines_of_ranks(trace),
            judged_words=judged_words(trace),
            shared=lateness.key if lateness is not None else "",
        )

    def judge(self, result: RanksResult) -> tuple[Finding, ...]:
        """Return findings on stragglers, unequal steps, and waiting for late ranks."""
        uneven = self._imbalance(result)
        # Waits outside compared collectives are derived from the rank with most work: name it, if it is always the same
        # one and not late by a cause that all ranks share.
        is_derived = 2 * result.collective_wait_ns < result.wait_ns
        late = () if uneven and is_derived and not result.shared else self._late(result)
        return (*self._straggler(result), *uneven, *late)

    def _straggler(self, result: RanksResult) -> tuple[Finding, ...]:
        worst = max(range(len(result.ranks)), key=lambda place: result.scores[place])
        rank, score, own = result.ranks[worst], result.scores[worst], result.own_ns[worst]
        if own is None or score <= self.straggler_score or not result.imbalance.is_mostly_slowest(rank.process_id):
            return ()
        others = median(time for place, time in enumerate(result.own_ns) if place != worst and time is not None)
        # If the rank were as fast as the others, the job would gain at most the others' wait.
        slower_ns = (own - others) * rank.rounds
        waits = [other.known_wait_ns for other in result.ranks if other is not rank and other.judged_ns]
        cost = round(min(slower_ns, mean(waits)) if result.compared else slower_ns)
        if cost < self.straggler_share * result.judged_ns:
            return ()
        unit = rank.unit
        excess = largest_excess(result.ranks, rank, result.causes, result.lines)
        more = sum(other > self.straggler_score for other in result.scores) - 1
        message = (
            f"Rank {rank.rank} needs {format_ns(round(own))} {unit} for its own work, the others "
            f"{format_ns(round(others))} (median). {excess.sentence(unit)}"
        )
        message += f" {counted(more, 'more rank')} stand out, too." if more else ""
        evidence = (
            Fact("rank", "rank", rank.rank, "id"),
            Fact("own_ns", f"its own time {unit}", round(own), "ns"),
            Fact("others_ns", f"median of the others' {unit}", round(others), "ns"),
            Fact("score", "modified z-score", round(score, 1), "number"),
            Fact("wait_ns", "its waiting in collectives", rank.wait_ns, "ns"),
            Fact("mean_wait_ns", "mean waiting of all ranks", result.wait_ns if result.compared else None, "ns"),
            Fact("cause", "most of the difference", excess.what),
        )
        rest = record_of("TV501").advice
        advice = (excess.advice(rank.rank, unit), *rest[1:]) if excess.has_place else rest
        of = f"{result.judged_words} of a rank"
        return (finding("TV501", message, evidence, cost, result.judged_ns, of, advice=advice),)

    def _imbalance(self, result: RanksResult) -> tuple[Finding, ...]:
        imbalance = result.imbalance
        if imbalance.share is None or imbalance.share < self.imbalance_share:
            return ()
        timed = [rank for rank in result.ranks if rank.process_id in imbalance.medians]
        slowest = max(timed, key=lambda rank: imbalance.medians[rank.process_id])
        sums = [rank.own_ns or 0.0 for rank in timed]
        slow = min(max(sums), (1 + self.imbalance_share) * median(sums))
        if imbalance.are_steps and (slowest.own_ns or 0.0) < slow:
            return ()  # most of its steps take longer, but their sum does not: no rank is slow
        excess = largest_excess(result.ranks, slowest, result.causes, result.lines)
        unit, median_of = (slowest.unit, " (median)") if imbalance.are_steps else ("in all", "")
        message = (
            f"Rank {slowest.rank} needs {format_ns(round(imbalance.medians[slowest.process_id]))} {unit} for its own "
            f"work{median_of}, {format_ratio(imbalance.share)} more than the median rank "
            f"({format_ns(round(imbalance.middle_ns))}). {excess.sentence(unit)}"
        )
        evidence = (
            Fact("rank", "rank with the most work of its own", slowest.rank, "id"),
            Fact("slowest_factor", "its median own time, of the median rank's", 1 + imbalance.share, "factor"),
            Fact("lost_ns", "slowest rank less the mean, summed over steps", imbalance.lost_ns, "ns"),
            Fact("cause", "most of the difference", excess.what),
        )
        cost = imbalance.lost_ns
        return (finding("TV502", message, evidence, cost, result.judged_ns, f"{result.judged_words} of a rank"),)

    def _late(self, result: RanksResult) -> tuple[Finding, ...]:
        cost = result.wait_ns
        if not cost or cost < self.late_share * result.judged_ns:
            return ()
        blamed = self._blamed(result)
        first: tuple[str, ...] = ()
        in_collectives = 2 * result.collective_wait_ns >= cost
        waited = (
            f"Ranks wait for one another {'in collectives ' if in_collectives else ''}for "
            f"{format_ratio(cost / result.judged_ns)} of the {result.judged_words}, and compute nothing meanwhile"
        )
        evidence: tuple[Fact, ...] = (
            Fact("wait_ns", "waiting, mean over ranks", cost, "ns"),
            Fact("collectives", "collectives compared", result.skew.collectives, "count"),
        )
        if blamed is None:
            message = f"{waited}; no rank needs more time for its own work than the others: they are late in turn."
        else:
            rank, own, others = blamed
            unit = rank.unit
            message = (
                f"{waited}; rank {rank.rank} needs most time for its own work ({format_ns(round(own))} {unit}, the "
                f"others {format_ns(round(others))}), and arrives last at {rank.last:,} of "
                f"{counted(rank.arrivals, 'collective')}."
            )
            excess = largest_excess(result.ranks, rank, result.causes, result.lines)
            if (result.causes.height or result.lines.height) and excess.time_ns > (own - others) / 2:
                message += f" {excess.sentence(unit)}"
                first = (excess.advice(rank.rank, unit),)
            evidence = (
                Fact("rank", "rank with the most work of its own", rank.rank, "id"),
                Fact("own_ns", f"its own time {unit}", round(own), "ns"),
                Fact("others_ns", f"median of the others' {unit}", round(others), "ns"),
                Fact("last", "collectives at which it is last", rank.last, "count"),
                Fact("cause", "most of the difference", excess.what),
                *evidence,
            )
        unfit = (*((tv503.OF_TURNS,) if blamed else ()), *((tv503.OF_SLOW_RANK,) if first or not blamed else ()))
        advice = (*first, *(line for line in record_of("TV503").advice if line not in unfit))
        of = f"{result.judged_words} of a rank"
        return (finding("TV503", message, evidence, cost, result.judged_ns, of, advice=advice),)

    def _blamed(self, result: RanksResult) -> tuple[RankTimes, float, float] | None:
        """Return the rank with the most work of its own, its own time and the others' time, if it stands out at all.

        The rank that arrives last most often need not be the cause. It may have waited for another one elsewhere, or be
        late by little each time.
        """
        known = [(own, place) for place, own in enumerate(result.own_ns) if own is not None]
        if len(known) < 2:
            return None
        own, place = max(known, key=lambda pair: pair[0])
        others, rank = median(time for time, other in known if other != place), result.ranks[place]
        waited = [other.known_wait_ns for other in result.ranks if other is not rank and other.judged_ns]
        explains = (own - others) * rank.rounds >= self.blame_wait * mean(waited)
        explains = explains and result.imbalance.is_mostly_slowest(rank.process_id)
        return (rank, own, others) if own - others > self.blame_share * others and explains else None

    def describe(self, result: RanksResult) -> Section:
        """Describe the number of ranks, one row per rank, and the comparable parts."""
        imbalance = result.imbalance
        slowest = None if imbalance.share is None else 1 + imbalance.share
        lost, of_steps = imbalance.lost_ns if imbalance.steps.height else None, imbalance.are_steps
        facts = (
            Fact("count", "ranks captured", len(result.ranks), "count"),
            Fact("world_size", "ranks of the job", result.worlds[0] if len(result.worlds) == 1 else None, "count"),
            Fact("slowest_factor", f"slowest rank's own {'step' if of_steps else 'time'} / median", slowest, "factor"),
            Fact("lost_ns", f"lost to unequal {'steps' if of_steps else 'work'}", lost, "ns"),
            Fact("collectives", "collectives compared", result.skew.collectives, "count"),
            Fact("wait_ns", "waiting in them, mean", result.collective_wait_ns if result.compared else None, "ns"),
        )
        grids = (times_grid(result), arrivals_grid(result), collectives_grid(result), steps_grid(result))
        remarks = (Prose(text) for text in cautions(result))
        return Section(self.slug, self.title, (*by_knowledge(facts), *grids, *remarks))
