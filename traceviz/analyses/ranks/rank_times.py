"""Results of one rank of a job and of all ranks: times, classes of step time, and arrivals at collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.derived.frames import having, intervals
from traceviz.analyses.derived.judged_time import judged_time
from traceviz.analyses.derived.statistics import ratio
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collective_skew import Skew
from traceviz.analyses.ranks.stragglers import StepImbalance, find_rounds
from traceviz.analyses.ranks.waits import Waiting


@dataclass(frozen=True, slots=True)
class RankTimes:
    """One rank; times in nanoseconds within its judged time, unless stated otherwise.

    Args:
        rank: Its number.
        process_id: Its process.
        steps: Steady steps.
        rounds: The same, or 1 if there are none that can be compared, and the judged time counts as a whole.
        median_step_ns, mean_step_ns: Their duration; ``None`` without steps.
        judged_ns: Steady step time, else from its first to its last device work.
        classes: Time of each class of step time; they add up to ``judged_ns``.
        busy_ns: Time in which a device works for it; ``None`` if the capture could record none.
        wait_ns: Time in which it waits in collectives for other ranks and computes nothing; ``None`` if its collectives
            could not be compared.
        known_wait_ns: All its waits for other ranks whose length is known.
        away_ns: Time that is not its own: it waits for others, or communicates if waiting cannot be distinguished.
        arrivals: Collectives compared, in the whole capture.
        median_skew_ns: Median of its arrival after the first rank's.
        last: Collectives at which it arrived last.
        kernels: Kernels in the whole capture; ``None`` if it could record none.
        api_ns: Time in which any thread is in a CUDA call; ``None`` if none were recorded.
    """

    rank: int
    process_id: int
    steps: int
    rounds: int
    median_step_ns: float | None
    mean_step_ns: float | None
    judged_ns: int
    classes: Mapping[str, int]
    busy_ns: int | None
    wait_ns: int | None
    known_wait_ns: int
    away_ns: int
    arrivals: int
    median_skew_ns: float | None
    last: int
    kernels: int | None
    api_ns: int | None

    @property
    def unit(self) -> str:
        """Text of the time that :attr:`own_ns` is about."""
        return "per step" if self.rounds == self.steps else "in all"

    @property
    def device_compute_ns(self) -> int | None:
        """Time in which a device computes for it; ``None`` if the capture could record none."""
        return None if self.busy_ns is None else self.classes["device_compute"]

    @property
    def communication_ns(self) -> int | None:
        """Time in which it communicates and computes nothing; ``None`` if none was recorded."""
        return self.classes["communication"] if self.busy_ns is not None or self.classes["communication"] else None

    @property
    def own_ns(self) -> float | None:
        """Judged time per step without :attr:`away_ns`; ``None`` if it is not judged."""
        return (self.judged_ns - self.away_ns) / self.rounds if self.judged_ns else None

    def share(self, part: int | None) -> float | None:
        """Return ``part`` as a share of its judged time."""
        return None if part is None else ratio(part, self.judged_ns)


@dataclass(frozen=True, slots=True)
class RanksResult:
    """All ranks.

    Args:
        ranks: Ranks in the order of their numbers.
        own_ns: Own time of each rank per step: judged time without waiting for others, or ``None``.
        scores: Modified z-score of each own time.
        worlds: Sizes of the job that the traces state.
        imbalance: Comparison of the ranks' steps.
        skew: Comparison of their collectives.
        compared: True if the collectives of all ranks could be compared.
        causes: Causes of the time of each rank, if none uses a device,
        lines: and lines of their main threads in a step, by samples of their stacks (see :mod:`.excess`).
        judged_words: Text that names the judged time.
        shared: Class of step time by which ranks are late, if all ranks have it (see :mod:`.lateness`); may be empty.
    """

    ranks: tuple[RankTimes, ...]
    own_ns: tuple[float | None, ...]
    scores: tuple[float, ...]
    worlds: tuple[int, ...]
    imbalance: StepImbalance
    skew: Skew
    compared: bool
    causes: pl.DataFrame
    lines: pl.DataFrame
    judged_words: str
    shared: str = ""

    @property
    def judged_ns(self) -> int:
        """Mean of the ranks' judged times. Findings are about the time of the job, not about the sum over ranks.

        Ranks without judged time do not count, for example those that mark no steps while others do.
        """
        return mean([rank.judged_ns for rank in self.ranks if rank.judged_ns])

    @property
    def wait_ns(self) -> int:
        """Mean of all known waits of the ranks with judged time."""
        return mean([rank.known_wait_ns for rank in self.ranks if rank.judged_ns])

    @property
    def collective_wait_ns(self) -> int:
        """Mean of their waits in compared collectives."""
        return mean([rank.wait_ns or 0 for rank in self.ranks if rank.judged_ns])


def rank_times(trace: TraceView, process: int, number: int, skew: Skew, waits: Waiting) -> RankTimes:
    """Return the rank with that ``number``, whose process is ``process``."""
    judged = judged_time(trace, process)
    steps = having(training_steps(trace).steady, "process_id", process)
    durations = steps["end_ns"] - steps["start_ns"]
    arrivals = having(skew.arrivals, "process_id", process)
    kernels = trace.frame("kernels", "process_id")
    calls = having(trace.frame("cuda_api", "start_ns", "dur_ns", "process_id"), "process_id", process)
    return RankTimes(
        rank=number,
        process_id=process,
        steps=steps.height,
        rounds=steps.height if steps.height and find_rounds(trace).are_steps else 1,
        median_step_ns=_number(durations.median()),
        mean_step_ns=_number(durations.mean()),
        judged_ns=judged.total,
        classes={key: owned.intersect(judged).total for key, owned in waits.classes.items()},
        busy_ns=trace.rank_busy[process].intersect(judged).total if process in trace.rank_busy else None,
        wait_ns=waits.compared.intersect(judged).total if arrivals.height else None,
        known_wait_ns=waits.known.intersect(judged).total,
        away_ns=waits.away.intersect(judged).total,
        arrivals=arrivals.height,
        median_skew_ns=_number(arrivals["skew_ns"].median()),
        last=int(arrivals["last"].sum()),
        kernels=int((kernels["process_id"] == process).sum()) if "kernels" in trace.tables else None,
        api_ns=intervals(calls).intersect(judged).total if "cuda_api" in trace.tables else None,
    )


def mean(values: Sequence[int]) -> int:
    """Return the mean in whole nanoseconds; 0 for no values."""
    return round(sum(values) / len(values)) if values else 0


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
