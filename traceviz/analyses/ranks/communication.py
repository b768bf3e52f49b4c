"""Communication between devices: its time, and the part that no compute hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from traceviz.analyses.base import Analysis, by_knowledge, finding
from traceviz.analyses.derived.capture.kind import why_no_device_work
from traceviz.analyses.derived.device.names import device_names
from traceviz.analyses.derived.device.work import communication_names, exposed, judged_device_ns
from traceviz.analyses.derived.frames import are_named, having, knowing, parts_by, unions_by
from traceviz.analyses.derived.host.copy_purposes import places_of, telling_ranges
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.statistics import CALLS, DURATION_COLUMNS, TOTAL, frame_grid, ratio, totals_by
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.collectives import COLUMNS, collective_times
from traceviz.analyses.ranks.waits import known_waits
from traceviz.core.arrays.intervals import IntervalSet
from traceviz.core.lazy_module import Later
from traceviz.core.units import format_ns, format_ratio
from traceviz.report import Block, Column, Fact, Facts, Finding, Prose, Section, Skipped
from traceviz.report.findings.registry import record_of

if TYPE_CHECKING:
    from traceviz.report.findings import tv504_exposed_communication as tv504
else:
    tv504 = Later("traceviz.report.findings.tv504_exposed_communication")


@dataclass(frozen=True, slots=True)
class Gathering:
    """Communication that gathers sharded parameters: its share of exposed judged time, and the place of its calls."""

    exposed_ns: int
    place: str


NOT_GATHERING = Gathering(0, "")
MOSTLY = 0.5
"""Communication of one kind is named as the main part from this part of the exposed communication on."""


@dataclass(frozen=True, slots=True)
class SharedStreams:
    """Communication on streams that also run at least half of the compute kernels of their device.

    Args:
        share: Its share of the time of all communication; ``None`` if streams were not recorded.
        exposed_ns: Its part that is exposed, within judged time and without waiting for other ranks.
        streams: Names of the streams for people.
    """

    share: float | None = None
    exposed_ns: int = 0
    streams: str = ""


NO_STREAMS = SharedStreams()


@dataclass(frozen=True, slots=True)
class CommunicationTimes:
    """Communication kernels by name, and their union over streams, summed over devices.

    Args:
        by_name: One row per kernel name, the largest total first.
        collectives: One row per collective, group and type (see :mod:`traceviz.analyses.ranks.collectives`).
        busy_ns: Time in which at least one communication kernel runs.
        exposed_ns: The part of ``busy_ns`` in which no other kernel runs on that device.
        judged_exposed_ns: The part of ``exposed_ns`` within judged time, without waiting for other ranks.
        waiting_ns: Exposed judged time that waits for ranks that arrive later; ``None`` if no ranks can be compared.
        judged_ns: Judged time of all devices.
        judged_words: Text that names the judged time.
        gathering: Communication that was called in ranges that gather sharded parameters.
        shared: Communication on streams of the computing.
    """

    by_name: pl.DataFrame
    collectives: pl.DataFrame
    busy_ns: int
    exposed_ns: int
    judged_exposed_ns: int
    waiting_ns: int | None
    judged_ns: int
    judged_words: str
    gathering: Gathering = NOT_GATHERING
    shared: SharedStreams = NO_STREAMS

    @property
    def overlap_share(self) -> float | None:
        """The part of communication during which compute runs; ``None`` if there is no communication."""
        return ratio(self.busy_ns - self.exposed_ns, self.busy_ns)


@dataclass(frozen=True, slots=True)
class CommunicationAnalysis(Analysis[CommunicationTimes]):
    """NCCL, RCCL and other kernels that move data between devices; copies are not communication.

    Args:
        exposed_share: Exposed communication from this share of the judged time on is a finding.
        tolerance: Ends of a collective on two ranks that differ by at least this share of the time between collectives
            are not aligned. Waiting is then not known.
        shared_share: Exposed communication on the stream of the computing is a finding from this share of the judged
            time on.
    """

    slug = "communication"
    title = "Communication"
    rules = ("TV504", "TV507")

    exposed_share: float = 0.10
    tolerance: float = 0.1
    shared_share: float = 0.02

    def run(self, trace: TraceView) -> CommunicationTimes | Skipped:
        """Separate communication kernels from compute kernels and overlay them per device."""
        described = "collectives" in trace.tables and trace.tables.rows("collectives")
        if (why := why_no_device_work(trace)) and not described:
            return self.skipped(why)
        columns = ("start_ns", "dur_ns", "device_id", "process_id", "name", "correlation_id", "stream")
        kernels = trace.frame("kernels", *columns)
        if names := communication_names(trace):
            is_communication = are_named(kernels["name"], names)
            communication, computing = kernels.filter(is_communication), kernels.filter(~is_communication)
            compute = unions_by(computing, "device_id")
        else:
            communication, computing, compute = kernels.head(0), kernels.head(0), trace.kernel_unions
        waiting = known_waits(trace, self.tolerance)
        alone = [
            (part.intersect(judged_time(trace, process)), waiting.get(process, IntervalSet.empty()))
            for process, own in parts_by(communication, "process_id").items()
            for part in exposed(own, compute).values()
        ]
        return CommunicationTimes(
            by_name=totals_by(communication, "name"),
            collectives=collective_times(trace, compute),
            busy_ns=sum(busy.total for busy in unions_by(communication, "device_id").values()),
            exposed_ns=sum(part.total for part in exposed(communication, compute).values()),
            judged_exposed_ns=sum(part.subtract(waits).total for part, waits in alone),
            waiting_ns=sum(part.intersect(waits).total for part, waits in alone) if waiting else None,
            judged_ns=judged_device_ns(trace),
            judged_words=judged_words(trace),
            gathering=_gathering(trace, communication, compute, waiting),
            shared=_shared_streams(trace, communication, computing, compute, waiting),
        )

    def judge(self, result: CommunicationTimes) -> tuple[Finding, ...]:
        """Return TV504 if devices do nothing but communicate for long, and TV507 if their streams force them to."""
        return (*self._exposed(result), *self._shared(result))

    def _shared(self, result: CommunicationTimes) -> tuple[Finding, ...]:
        shared = result.shared
        is_most = shared.share is not None and shared.share >= MOSTLY
        if not is_most or not shared.exposed_ns or shared.exposed_ns < self.shared_share * result.judged_ns:
            return ()
        message = (
            f"Communication and compute run in order on {shared.streams}, so they cannot overlap: "
            f"{format_ratio(shared.exposed_ns / result.judged_ns)} of the {result.judged_words} is such communication "
            f"({format_ns(shared.exposed_ns)})."
        )
        evidence = (
            Fact("streams", "streams", shared.streams),
            Fact("exposed_ns", "exposed communication on them", shared.exposed_ns, "ns"),
            Fact("shared_share", "of all communication", shared.share, "ratio"),
        )
        return (finding("TV507", message, evidence, shared.exposed_ns, result.judged_ns, result.judged_words),)

    def _exposed(self, result: CommunicationTimes) -> tuple[Finding, ...]:
        cost = result.judged_exposed_ns
        if not cost or cost < self.exposed_share * result.judged_ns:
            return ()
        gathers = result.gathering.exposed_ns >= MOSTLY * cost
        # The collective with the largest exposed part; if none is described, the largest kernel.
        described = result.collectives.sort("exposed_ns", "name", descending=[True, False])
        ranked, of = (described, "exposed_ns") if described.height else (result.by_name, "total_ns")
        part = "mostly" if 2 * int(ranked[of][0]) >= int(ranked[of].sum()) else "the largest part in"
        largest = str(ranked["name"][0])
        largest += f", of sharded parameters in {result.gathering.place}" if gathers else ""
        message = (
            f"For {format_ratio(cost / result.judged_ns)} of the {result.judged_words}, devices communicate and "
            f"compute nothing ({format_ns(cost)}, {part} {largest}); compute hides "
            f"{format_ratio(result.overlap_share or 0.0)} of the communication."
        )
        evidence = (
            Fact("exposed_ns", "exposed communication", cost, "ns"),
            *(Fact("waiting_ns", "besides, waiting for late ranks", w, "ns") for w in (result.waiting_ns,) if w),
            Fact("overlap_share", "hidden by compute", result.overlap_share, "ratio"),
            *(Fact("gathering_ns", "of sharded parameters", g, "ns") for g in (result.gathering.exposed_ns,) if g),
            Fact("largest", "largest", largest),
        )
        advice = sorted(record_of("TV504").advice, key=lambda line: gathers and line not in tv504.OF_SHARDED)
        return (finding("TV504", message, evidence, cost, result.judged_ns, result.judged_words, advice=tuple(advice)),)

    def describe(self, result: CommunicationTimes) -> Section:
        """Describe exposed and hidden communication, the kernels, and their collectives."""
        facts = (
            Fact("total_ns", "kernel time, summed", int(result.by_name["total_ns"].sum()), "ns"),
            Fact("exposed_ns", "not hidden by compute", result.exposed_ns, "ns"),
            Fact("overlap_share", "hidden by compute", result.overlap_share, "ratio"),
            Fact("shared_share", "on streams of the computing", result.shared.share, "ratio"),
            Fact("waiting_ns", "of it waiting for other ranks", result.waiting_ns, "ns"),
            Fact("busy_ns", "device time", result.busy_ns, "ns"),
            Fact("calls", "calls", int(result.by_name["calls"].sum()), "count"),
        )
        columns = (Column("name", "Kernel", "text", 0), CALLS, TOTAL, *DURATION_COLUMNS)
        blocks: tuple[Block, ...] = (*by_knowledge(facts), frame_grid(columns, result.by_name))
        if not result.by_name.height:
            silent = (Facts(facts, audience="machine"), frame_grid(columns, result.by_name, audience="machine"))
            blocks = (Prose("No communication kernel ran."), *silent)
        described = (frame_grid(COLUMNS, result.collectives, "Collectives"),) if result.collectives.height else ()
        return Section(self.slug, self.title, (*blocks, *described))


def _gathering(
    trace: TraceView, communication: pl.DataFrame, compute: dict[int, IntervalSet], waiting: Mapping[int, IntervalSet]
) -> Gathering:
    """Return communication called in ranges that gather parameters. Gradients are sent in others (``post``)."""
    exposed_ns, places = 0, []
    for process, own in parts_by(communication, "process_id").items():
        telling = having(telling_ranges(trace, process), "purpose", "parameters")
        telling = telling.filter(~pl.col("place").str.contains("(?i)post|reduce"))
        if not telling.height:
            continue
        keys = ("correlation_id", "thread_id", pl.col("start_ns").alias("call_ns"))
        calls = having(trace.frame("cuda_api", "process_id", *keys), "process_id", process)
        once = knowing(calls.drop("process_id"), "correlation_id").unique("correlation_id", keep="first")
        called = own.with_row_index("row").join(once, on="correlation_id")
        gathered = called.join(places_of(called, telling), on="row")
        window = judged_time(trace, process).subtract(waiting.get(process, IntervalSet.empty()))
        exposed_ns += sum(part.intersect(window).total for part in exposed(gathered, compute).values())
        places.append(gathered[["place", "dur_ns"]])
    if not exposed_ns:
        return NOT_GATHERING
    totals = pl.concat(places).group_by("place").agg(pl.col("dur_ns").sum())
    return Gathering(exposed_ns, str(totals.sort("dur_ns", "place", descending=[True, False])["place"][0]))


def _shared_streams(
    trace: TraceView,
    communication: pl.DataFrame,
    computing: pl.DataFrame,
    compute: dict[int, IntervalSet],
    waiting: Mapping[int, IntervalSet],
) -> SharedStreams:
    """Find the streams with at least half of the compute of a device, and the communication on them."""
    if not communication.height or communication["stream"].null_count() or _has_programs(trace):
        return NO_STREAMS
    keys = ("process_id", "device_id")
    of_stream = knowing(computing, "stream").group_by(*keys, "stream").agg(pl.col("dur_ns").sum())
    main = of_stream.filter(pl.col("dur_ns") >= MOSTLY * pl.col("dur_ns").sum().over(keys))
    shared = communication.join(main.select(*keys, "stream"), on=[*keys, "stream"], how="semi")
    exposed_ns = sum(
        part.intersect(judged_time(trace, process)).subtract(waiting.get(process, IntervalSet.empty())).total
        for process, own in parts_by(shared, "process_id").items()
        for part in exposed(own, compute).values()
    )
    share_of_all = ratio(int(shared["dur_ns"].sum()), int(communication["dur_ns"].sum()))
    devices = device_names(trace)
    pairs = shared.select("device_id", "stream").unique().sort("device_id", "stream").rows()
    named = [f"stream {stream} ({devices[device]})" for device, stream in pairs]
    rest = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return SharedStreams(share_of_all, exposed_ns, f"{(', ' if rest else ' and ').join(named[:_NAMED])}{rest}")


_NAMED = 2
"""Most streams that are named."""


def _has_programs(trace: TraceView) -> bool:
    """Return whether compiled programs run on the devices: their order is that of the compiler, not of streams."""
    return "device_ops" in trace.tables and bool(trace.tables.rows("device_ops"))
