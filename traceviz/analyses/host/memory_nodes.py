"""Memory nodes (NUMA, mostly one per socket) whose cores work for one program."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import finding, known
from traceviz.analyses.derived.frames import knowing
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.host.load import LEAST_SAMPLES, HostLoad
from traceviz.analyses.host.samples import CORE, Machine, judged_window
from traceviz.core.units import counted, format_number
from traceviz.report import STEADY_STEP_TIME, Fact, Finding

_NODE = re.compile(r"^machine\.memory_node\.(\d{1,4})\.cores$")
_MOST_CORES = 1 << 14


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Busy cores of each memory node in the judged time, for all programs, and the cores of each node."""

    busy: tuple[float, ...]
    cores: tuple[int, ...]


def node_use(trace: TraceView, machine: Machine) -> NodeUse | None:
    """Measure busy cores of each memory node; ``None`` if the machine has one, or its cores were not sampled."""
    stated = sorted((int(match[1]), value) for key, value in machine.settings.items() if (match := _NODE.match(key)))
    nodes = [cores for _, value in stated if (cores := frozenset(_listed_cores(value)))]
    if len(nodes) < 2:
        return None
    begin, end = judged_window(trace)
    frame = trace.frame("samples", "start_ns", "value", pl.col("metric").cast(pl.String))
    number = pl.col("metric").str.extract(CORE).cast(pl.Int64).alias("core")
    inside = knowing(frame.filter(pl.col("start_ns").is_between(begin, end)).select(number, "value"), "core")
    means = inside.group_by("core").agg(pl.col("value").mean() / 100, pl.len().alias("samples"))
    if not means.height or int(means["samples"].min()) < LEAST_SAMPLES:  # type: ignore[arg-type]
        return None
    of_core = dict(means[["core", "value"]].iter_rows())
    return NodeUse(
        tuple(sum(of_core.get(core, 0.0) for core in cores) for cores in nodes), tuple(len(cores) for cores in nodes)
    )


def _listed_cores(text: str) -> Iterable[int]:
    """Yield the cores of a text such as ``0-15,32-47``."""
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if match is not None:
            first = int(match[1])
            yield from range(first, min(int(match[2] or first), _MOST_CORES) + 1)


def nodes_finding(use: NodeUse | None, load: HostLoad, *, least_share: float, others_share: float) -> Finding | None:
    """Return TV619 if the host computes on cores of several nodes, and those of one would suffice.

    Args:
        use: Busy cores of each node.
        load: The judged time in figures.
        least_share: A node takes part if it has this share of all busy cores.
        others_share: No result if other programs use at least this share of the machine's cores.
    """
    others = load.neighbours
    if use is None or load.busy_cores is None or not load.steps.step_ns or not load.steps.on_host:
        return None
    if others is None or others.busy_cores >= others_share * others.cores:
        return None
    total = sum(use.busy)
    taking_part = [busy for busy in use.busy if total and busy >= least_share * total]
    if len(taking_part) < 2 or load.busy_cores > max(use.cores):
        return None
    each = " and ".join(format_number(round(busy, 1)) for busy in taking_part)
    message = (
        f"Cores of {counted(len(taking_part), 'memory node')} work for the steps ({each} busy cores), and its "
        f"{format_number(round(load.busy_cores, 1))} busy cores would fit into one of {max(use.cores)} cores."
    )
    facts = (
        *(Fact(f"node_{at}", f"busy cores, node {at}", busy, "number") for at, busy in enumerate(use.busy)),
        Fact("node_cores", "cores of a node", max(use.cores), "count"),
        Fact("busy_cores", f"busy cores of the program, {load.judged_words}", load.busy_cores, "number"),
    )
    return finding("TV619", message, known(facts), 0, load.steps.step_ns, STEADY_STEP_TIME)
