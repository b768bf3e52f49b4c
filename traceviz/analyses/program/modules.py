"""Time of a PyTorch program by module, on the host and on the device, forward and backward.

Forward work belongs to the module that runs on the thread and at the time of its launch. Backward work is launched by
another thread. It belongs to the module of its forward operator (:mod:`traceviz.analyses.program.autograd`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from traceviz.analyses.base import Analysis
from traceviz.analyses.derived.frames import having
from traceviz.analyses.derived.launch.join import GraphTime
from traceviz.analyses.derived.statistics import CALLS, frame_grid, ratio, share
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.program.graph_words import graph_facts, graph_words
from traceviz.analyses.program.module_paths import ModuleSource, named_parts
from traceviz.analyses.program.operator_calls import of_pytorch
from traceviz.report import Column, Fact, Facts, Grid, Section, Skipped, hide_columns

_WHAT_TO_RECORD = (
    "the trace names no parts of the program: record with torch.profiler.profile(with_stack=True), which names every "
    "nn.Module, or put torch.profiler.record_function('name') around parts"
)
_WHAT_TO_ANNOTATE = (
    "the trace names no parts of the program, and its frames of Python hold no call of an nn.Module: put "
    "torch.profiler.record_function('name') around parts"
)
_INSTANCE = r"^(.+)_\d+$|^\d+\((.+)\)$"
"""Modules of a class that differ only by a number: ``Linear_3``, and ``3(Linear)`` in a sequence."""
_SEPARATOR = " / "
_OF_SOURCE = {
    "nn.Module": "calls of nn.Module",
    "module hierarchy": "the module hierarchy of operators",
    "ranges": "ranges of the program",
    "parts of graphs": "the program, for parts of graphs",
}


@dataclass(frozen=True, slots=True)
class ModuleTimes:
    """Parts of the program as a tree, each row followed by the rows inside it, the most expensive first.

    Args:
        source: Source of the names.
        exact: One row per part: ``path, name, level, instances, calls, host_ns, host_self_ns, device_ns,
            device_self_ns, backward_ns, share_of_device_time, share_of_host_time``.
        alike: The same, with modules that differ only by their number merged.
        device_ns: All device work of the capture, summed over streams.
        graphs: Known facts about the work of graphs.
    """

    source: ModuleSource
    exact: pl.DataFrame
    alike: pl.DataFrame
    device_ns: int
    graphs: GraphTime

    def total(self, column: str) -> int:
        """Return the sum of ``column`` over the outermost parts, which hold all others."""
        return int(having(self.exact, "level", 0)[column].sum())


@dataclass(frozen=True, slots=True)
class ModulesAnalysis(Analysis[ModuleTimes]):
    """Time per module (or range) of a PyTorch program, forward and backward.

    Args:
        depth: Levels of the tree that readers see.
        fold_below: Parts below this share of both device time and host time are for programs only.
    """

    slug = "modules"
    title = "Modules"

    depth: int = 8
    fold_below: float = 0.01

    def run(self, trace: TraceView) -> ModuleTimes | Skipped:
        """Sum host time, forward and backward device time over the tree of modules."""
        if not of_pytorch(trace):
            return self.skipped("the trace is not of PyTorch")
        named = named_parts(trace)
        if named is None:
            has_frames = "python" in trace.host_names["category"]
            return self.skipped(_WHAT_TO_ANNOTATE if has_frames else _WHAT_TO_RECORD)
        work = trace.device_work
        device_ns = int((work["end_ns"] - work["start_ns"]).sum())
        names = named.parts["path"].explode().unique().drop_nulls().to_list()
        kinds = {name: re.sub(_INSTANCE, r"\1\2", name) for name in names}
        kind = pl.col("path").list.eval(pl.element().replace_strict(kinds, return_dtype=pl.String))
        alike = named.parts.with_columns(kind.alias("path"))
        exact = _tree(named.parts, device_ns)
        return ModuleTimes(named.source, exact, _tree(alike, device_ns), device_ns, named.graphs)

    def describe(self, result: ModuleTimes) -> Section:
        """Describe the tree: exact for programs, shorter for readers."""
        backward = result.total("backward_ns")
        inside = result.total("device_ns") + backward
        facts = (
            Fact("modules", "named parts", result.exact.height, "count"),
            Fact("source", "named by", _OF_SOURCE[result.source], "text"),
            Fact("host_ns", "host time in them", result.total("host_ns"), "ns"),
        )
        forward = Fact("device_ns", "device time, forward", result.total("device_ns"), "ns")
        behind = Fact("backward_ns", "device time, backward", backward, "ns")
        of_all = Fact("inside_share", "together, of all device time", ratio(inside, result.device_ns), "ratio")
        device = (forward, *((behind,) if backward else ()), of_all, *graph_facts(result.graphs, "module"))
        shown = (*facts, *(device if inside else ()))
        hidden = tuple(fact for fact in (forward, behind, of_all) if fact not in shown)
        exact = frame_grid(_EXACT, result.exact, "Exact", audience="machine")
        grids = (exact, self._shorter(result, on_device=inside > 0))
        facts_of_all = (Facts(shown), Facts(hidden, audience="machine"))
        return Section(self.slug, self.title, (*facts_of_all, *grids, *graph_words(result.graphs, "module")))

    def _shorter(self, result: ModuleTimes, *, on_device: bool) -> Grid:
        weight = pl.max_horizontal("share_of_device_time", "share_of_host_time")
        rows = result.alike.filter((pl.col("level") < self.depth) & (weight >= self.fold_below))
        indented = pl.concat_str(pl.lit("  ").repeat_by("level").list.join(""), "name").alias("name")
        hidden = {"share_of_host_time"} if on_device else _ON_DEVICE
        hidden |= set() if result.total("backward_ns") else {"backward_ns"}
        hidden |= set() if (result.alike["instances"] > 1).any() else {"instances"}
        name = Column("name", "Range" if result.source == "ranges" else "Module", "text", 0)
        columns = (name, *hide_columns(_SHORTER, hidden))
        return frame_grid(columns, rows.with_columns(indented), _HEADINGS[result.source])


_HEADINGS: dict[ModuleSource, str] = {
    "nn.Module": "By class, those of one class and place together",
    "module hierarchy": "By module, numbered ones together",
    "ranges": "By range and what is around it",
    "parts of graphs": "By part of graphs",
}
_ON_DEVICE = frozenset({"device_ns", "device_self_ns", "backward_ns", "share_of_device_time"})
_TIMES = (
    CALLS,
    Column("device_ns", "Device forward", "ns", 0),
    Column("device_self_ns", "Device self", "ns", 5, additive=True),
    Column("backward_ns", "Device backward", "ns", 1),
    Column("share_of_device_time", "Of device time", "ratio", 2),
    Column("host_ns", "Host total", "ns", 0),
    Column("host_self_ns", "Host self", "ns", 4, additive=True),
    Column("share_of_host_time", "Of host time", "ratio", 2),
)
_EXACT = (
    Column("path", "Path", "text", 0),
    Column("name", "Module", "text", 0),
    Column("level", "Level", "count"),
    *_TIMES,
)
_SHORTER = (Column("instances", "Modules", "count", 3), *_TIMES)


def _tree(parts: pl.DataFrame, device_ns: int) -> pl.DataFrame:
    """Return totals over each part and all parts inside it, in the order of the tree."""
    whole = _with_all_inside(parts)
    host_ns = int(having(whole, "level", 0)["host_ns"].sum())
    device = (pl.col("device_ns") + pl.col("backward_ns")).alias("both")
    weighted = whole.with_columns(device).with_columns(
        share("both", device_ns, "share_of_device_time"), share("host_ns", host_ns, "share_of_host_time")
    )
    # In the order of a tree: siblings with the most device time come first, then the most host time.
    order = weighted.sort("both", "host_ns", "path", descending=[True, True, False]).with_row_index("rank")
    rank = {tuple(path): position for path, position in order[["path", "rank"]].iter_rows()}
    keys = [[rank[tuple(path[: level + 1])] for level in range(len(path))] for path in order["path"].to_list()]
    top_down = order.with_columns(pl.Series("key", keys, pl.List(pl.Int64))).sort("key").drop("rank", "key")
    return top_down.with_columns(pl.col("path").list.join(_SEPARATOR))


def _with_all_inside(parts: pl.DataFrame) -> pl.DataFrame:
    """Return one row per part, and per path around parts, with its own sums and those of all parts inside it."""
    own = parts.group_by("path").agg(
        pl.len().cast(pl.Int64).alias("instances"),
        pl.when(pl.col("calls").count() > 0).then(pl.col("calls").sum()),
        pl.col("host_self_ns", "device_self_ns", "backward_self_ns").sum(),
    )
    levels = pl.int_ranges(1, pl.col("path").list.len() + 1)
    around = own.with_columns(levels.alias("level")).explode("level")
    around = around.with_columns(pl.col("path").list.head(pl.col("level")))
    totals = around.group_by("path").agg(
        pl.col("host_self_ns").sum().alias("host_ns"),
        pl.col("device_self_ns").sum().alias("device_ns"),
        pl.col("backward_self_ns").sum().alias("backward_ns"),
    )
    level, name = pl.col("path").list.len().cast(pl.Int64) - 1, pl.col("path").list.last()
    joined = totals.join(own.drop("backward_self_ns"), on="path", how="left")
    zeros = pl.col("host_self_ns", "device_self_ns", "instances").fill_null(0)
    return joined.with_columns(level.alias("level"), name.alias("name"), zeros)
