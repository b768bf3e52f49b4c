"""Framework ops: their cost on host and device, and ops that run one by one, outside compiled functions.

Self time on the host is an op's own duration without the ops and iterators inside it on the same thread::

    MatMul:MatMul       |--------------------|
    Cast:Cast               |-----|
    MatMul, self time   |###|     |##########|
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceviz.analyses.base import Analysis, finding
from traceviz.analyses.derived.calls.host_calls import argument, calls_named
from traceviz.analyses.derived.calls.op_names import parsed_ops
from traceviz.analyses.derived.frames import bounds, codes, having, intervals, knowing, taken
from traceviz.analyses.derived.judged_time import judged_time, judged_words
from traceviz.analyses.derived.patterns import matches, replaced
from traceviz.analyses.derived.statistics import CALLS, frame_grid, ratio, share
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.core.arrays.intervals import IntervalSet, nesting
from traceviz.core.units import format_number, format_ratio
from traceviz.report import Column, Fact, Facts, Finding, Section, Skipped, hide_columns
from traceviz.report.findings.record import WARNING_SHARE
from traceviz.trace import schema


@dataclass(frozen=True, slots=True)
class EagerUse:
    """Ops that the program runs one by one, within the judged time of all processes.

    Args:
        calls: Ops in that time.
        eager_calls: Ops that run eagerly.
        steps: Steady steps; 0 if none were eager.
        cost_ns: Time in which eager ops are prepared and started while no device works.
        judged_ns: Judged time of all processes.
        judged_words: Text that names the judged time.
    """

    calls: int
    eager_calls: int
    steps: int
    cost_ns: int
    judged_ns: int
    judged_words: str

    @property
    def share(self) -> float | None:
        """Eager ops as a share of all ops; ``None`` if no op ran."""
        return ratio(self.eager_calls, self.calls)

    @property
    def per_step(self) -> float:
        """Eager ops per steady step; all of them if there are no steps."""
        return self.eager_calls / max(self.steps, 1)


@dataclass(frozen=True, slots=True)
class OpTimes:
    """Ops by type and by name, the most expensive first, and the number that run eagerly."""

    by_type: pl.DataFrame
    by_op: pl.DataFrame
    eager: EagerUse


@dataclass(frozen=True, slots=True)
class FrameworkOpsAnalysis(Analysis[OpTimes]):
    """Time per op of TensorFlow, JAX or XLA, on the host and on the device.

    Device time is that of the kernels, copies and fills whose trace event names the op.

    Args:
        eager_share: The program counts as eager if at least this share of ops run one by one,
        eager_per_step: if at least this many of them run in a step,
        min_share: and if starting them takes at least this share of the judged time while no device works.
    """

    slug = "framework_ops"
    title = "Framework ops"
    rules = ("TV407",)

    eager_share: float = 0.5
    eager_per_step: int = 10
    min_share: float = WARNING_SHARE

    def run(self, trace: TraceView) -> OpTimes | Skipped:
        """Aggregate ops on the host, and device work by its op."""
        if "pytorch" in trace.frameworks:
            return self.skipped("the trace is of PyTorch: see the operators")
        calls = _host_calls(trace)
        once = ~pl.col("again")
        sums = calls.group_by("text").agg(
            once.sum().cast(pl.Int64).alias("calls"),
            pl.col("dur_ns").filter(once).sum().alias("host_ns"),
            pl.col("self_ns").sum().alias("host_self_ns"),
            (pl.col("eager") & once).sum().cast(pl.Int64).alias("eager_calls"),
        )
        host = sums.with_columns(pl.col("text").cast(pl.String))
        work = pl.concat(
            [
                knowing(trace.frame(name, "dur_ns", "op"), "op").with_columns(pl.col("op").cast(pl.String))
                for name in schema.DEVICE_WORK
            ]
        )
        device = work.group_by(pl.col("op").alias("text")).agg(pl.col("dur_ns").sum().alias("device_ns"))
        if not host.height and not device.height:
            return self.skipped("the trace names no framework ops")
        both = host.join(device, on="text", how="full", coalesce=True)
        named = both.join(parsed_ops(both["text"]), on="text")
        by_op = named.with_columns(pl.col(_AMOUNTS).fill_null(0))  # 0 on host or device if an op did not run there
        ops = by_op.group_by("type").agg(pl.len().cast(pl.Int64).alias("ops"))
        by_type = _totals(by_op, "type").join(ops, on="type", maintain_order="left")
        return OpTimes(by_type, _totals(by_op, "op", "type"), _eager_use(trace, calls))

    def judge(self, result: OpTimes) -> tuple[Finding, ...]:
        """Return a finding on programs that run their ops one by one."""
        eager = result.eager
        if not eager.judged_ns or (eager.share or 0) < self.eager_share or eager.per_step < self.eager_per_step:
            return ()
        if eager.cost_ns < self.min_share * eager.judged_ns:
            return ()
        message = (
            f"{format_number(round(eager.per_step))} ops per step run one by one, {format_ratio(eager.share or 0)} of "
            f"all: starting them takes {format_ratio(eager.cost_ns / eager.judged_ns)} of the {eager.judged_words} "
            "while no device works."
        )
        evidence = (
            Fact("eager_calls", "ops run one by one", eager.eager_calls, "count"),
            Fact("eager_share", "of all ops", eager.share, "ratio"),
            Fact("eager_per_step", "per step", eager.per_step, "number"),
            Fact("cost_ns", "starting them, device idle", eager.cost_ns, "ns"),
        )
        return (finding("TV407", message, evidence, eager.cost_ns, eager.judged_ns, eager.judged_words),)

    def describe(self, result: OpTimes) -> Section:
        """Describe totals, ops by type, and every op."""
        by_op = result.by_op
        facts = (
            Fact("ops", "distinct ops", by_op.height, "count"),
            Fact("calls", "calls on the host", int(by_op["calls"].sum()), "count"),
            Fact("host_self_ns", "host time, summed over threads", int(by_op["host_self_ns"].sum()), "ns"),
        )
        on_device = Fact("device_ns", "device time, summed over streams", int(by_op["device_ns"].sum()), "ns")
        eager = Fact("eager_share", "ops run one by one (eager)", result.eager.share, "ratio")
        nothing = {fact.key for fact in (on_device, eager) if not fact.value}
        shown = tuple(fact for fact in (on_device, eager) if fact.key not in nothing)
        hidden = tuple(fact for fact in (on_device, eager) if fact.key in nothing)
        useless = {*(_ON_DEVICE if "device_ns" in nothing else ()), *(nothing & {"eager_share"})}  # only zeros
        times = hide_columns(_TIMES, useless)
        types = frame_grid((_TYPE, _OPS, *times), result.by_type, "By type")
        ops = frame_grid((_OP, _TYPE_OF_OP, *times), by_op, "By op")
        return Section(self.slug, self.title, (Facts((*facts, *shown)), Facts(hidden, audience="machine"), types, ops))


_TYPE = Column("type", "Op type", "text", 0)
_OPS = Column("ops", "Ops", "count", 4)
_OP = Column("op", "Op", "text", 0)
_TYPE_OF_OP = Column("type", "Type", "text", 2)
_TIMES = (
    CALLS,
    Column("host_ns", "Host total", "ns", 3),
    Column("host_self_ns", "Host self", "ns", 0, additive=True),
    Column("device_ns", "Device total", "ns", 0),
    Column("share_of_device_op_time", "Of device op time", "ratio", 1, bar=True),
    Column("eager_share", "Eager", "ratio", 4),
)

_ON_DEVICE = ("device_ns", "share_of_device_op_time")
_AMOUNTS = ("calls", "host_ns", "host_self_ns", "eager_calls", "device_ns")

_EAGER = r"^Eager(?:Local)?Execute: (.+)$"
_INPUT_OP = r"[^:]:[A-Z_]\w*$"
"""Input waits that are ops (``IteratorGetNext:IteratorGetNext``), not the call inside (``...Op::DoCompute``)."""
_FUNCTION = r"^Eager(?:Local)?Execute: __"
"""Calls of a traced function (``__inference_train_step_42``). The ops in it do not run one by one."""
_EAGER_START = r"^(?:TFE_Py_FastPathExecute|Eager(?:Local)?Execute: [^_]|Eager(?:Local)?Execute: _[^_])"
"""Calls that start an eager op. Functions are not started by the fast path."""
_EAGER_KERNEL = "EagerKernelExecute"
"""The op itself within its start. Without an accelerator this is the work, not the cost of starting it."""


def _host_calls(trace: TraceView) -> pl.DataFrame:
    """Return one row per op on the host: ``text, eager, again, dur_ns, self_ns, process_id, start_ns``.

    Newer TensorFlow records no op event inside an eager call, so the call stands for the op. An op directly inside
    another of the same name runs ``again``. Its time is counted already, except its part of the self time.
    """
    events = _nesting_events(trace)
    starts, ends = bounds(events)
    _, parent = nesting(starts, ends, events["thread_id"].to_numpy())
    role = events["role"].to_physical().to_numpy()
    is_inside = parent >= 0
    inner = ((role == _NUMBER["op"]) | (role == _NUMBER["iterator"])) & is_inside
    inside = np.zeros(events.height, dtype=np.int64)
    np.add.at(inside, parent[inner], (ends - starts)[inner])
    outer = np.zeros(events.height, dtype=bool)  # eager calls around events that count as ops themselves
    outer[parent[(role != _NUMBER["iterator"]) & is_inside]] = True
    in_eager = is_inside & (role[parent] == _NUMBER["eager"]) if role.size else is_inside
    names = codes(events["name"])
    again = (parent >= 0) & (names == names[parent])  # JAX records a call inside its wrapper of the same name
    calls = events.with_columns(
        pl.Series("self_ns", np.maximum(ends - starts - inside, 0)),
        pl.Series("outer", outer),
        pl.Series("in_eager", in_eager),
        pl.Series("again", again),
    ).filter((pl.col("role") == "op") | ((pl.col("role") == "eager") & ~pl.col("outer")))
    eager = pl.col("recorded").fill_null(pl.col("in_eager")) | (pl.col("role") == "eager")
    return calls.select("text", eager.alias("eager"), "again", "dur_ns", "self_ns", "process_id", "start_ns")


def _nesting_events(trace: TraceView) -> pl.DataFrame:
    """Return ops and the events that they nest with; ``role`` is op, iterator, eager (call) or function (call)."""
    name, category = pl.col("name"), pl.col("category")
    role = (
        pl.when((category == "op") | ((category == "input") & matches(name, _INPUT_OP)))
        .then(pl.lit("op"))
        .when((category == "pipeline") & name.str.starts_with("Iterator::"))
        .then(pl.lit("iterator"))
        .when(matches(name, _FUNCTION))
        .then(pl.lit("function"))
        .when((category == "runtime") & matches(name, _EAGER))
        .then(pl.lit("eager"))
    )
    text = replaced(pl.col("name"), _EAGER, "${1}:${1}").cast(pl.Categorical).alias("text")
    names = trace.host_names.select(role.cast(_ROLE).alias("role"), text)
    number = trace.host_name_rows
    rows = np.flatnonzero(names["role"].is_not_null().to_numpy()[number])
    timed = taken(trace.frame("host_ops", "start_ns", "dur_ns", "process_id", "thread_id", "op_id", "name"), rows)
    events = timed.with_columns(pl.col("dur_ns").fill_null(0)).hstack(taken(names, number[rows]))
    if not (events["start_ns"].is_sorted() and events["op_id"].is_sorted()):
        events = events.sort("start_ns", "op_id")
    recorded = argument(trace, "is_eager", "integer").select("op_id", (pl.col("integer") == 1).alias("recorded"))
    if not recorded.height:
        return events.with_columns(pl.lit(None, pl.Boolean).alias("recorded"))
    return events.join(recorded.unique("op_id"), on="op_id", how="left", maintain_order="left")


_ROLE = pl.Enum(["op", "iterator", "function", "eager"])
_NUMBER = {role: number for number, role in enumerate(_ROLE.categories)}


def _totals(by_op: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Sum by ``keys``, with shares; the most device time first, then the most host time."""
    sums = by_op.group_by(keys).agg(pl.col(_AMOUNTS).sum())
    seen = pl.when(pl.col("calls") > 0)  # host time is not known for an op that only the device names
    host = seen.then(pl.col("host_ns", "host_self_ns"))
    eager = seen.then(pl.col("eager_calls") / pl.col("calls")).alias("eager_share")
    whole = int(sums["device_ns"].sum())
    ordered = sums.sort("device_ns", "host_self_ns", *keys, descending=[True, True, *[False] * len(keys)])
    return ordered.with_columns(share("device_ns", whole, "share_of_device_op_time"), eager, host)


def _eager_use(trace: TraceView, calls: pl.DataFrame) -> EagerUse:
    count = eager = cost = judged = 0
    for process in trace.ranks:
        window = judged_time(trace, process)
        own = calls.filter((pl.col("process_id") == process) & ~pl.col("again"))
        own = own.filter(pl.Series(window.contains(own["start_ns"].to_numpy())))
        count, eager = count + own.height, eager + int(own["eager"].sum())
        cost += _starting(trace, process).intersect(window).intersect(trace.idle_of(process)).total
        judged += window.total
    return EagerUse(count, eager, training_steps(trace).steady.height, cost, judged, judged_words(trace))


def _starting(trace: TraceView, process_id: int) -> IntervalSet:
    """Return the time in which a thread of the process prepares and starts an eager op."""
    runtime = having(trace.host_names, "category", "runtime")
    starting = intervals(_own(trace, runtime.filter(matches(pl.col("name"), _EAGER_START)), process_id))
    if process_id in trace.rank_busy:
        return starting
    return starting.subtract(intervals(_own(trace, having(runtime, "name", _EAGER_KERNEL), process_id)))


def _own(trace: TraceView, names: pl.DataFrame, process_id: int) -> pl.DataFrame:
    return having(calls_named(trace, names), "process_id", process_id)
